"""Servers: states, actions, migrations, groups, and the values of requests and answers."""
