"""Payload classes as tables: a name, a version, and the source of each field."""
