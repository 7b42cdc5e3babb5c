"""Guests on a host: orders to it, metadata and config drive, consoles, and resources without a record."""
