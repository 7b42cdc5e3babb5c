"""Payload classes as tables: a name, a version, and where each field comes from."""
