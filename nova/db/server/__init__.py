"""Servers: rows, states, lists, actions, migrations and groups."""
