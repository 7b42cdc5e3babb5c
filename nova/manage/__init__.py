"""Operators' tools: ``nova-manage``, ``nova-status`` and the implementation of their commands."""
