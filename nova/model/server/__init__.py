"""Servers: states, actions, migrations, groups, and the values that requests and answers carry."""
