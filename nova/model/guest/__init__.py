"""Guests on a host: orders, metadata and config drive, consoles, and resources that have no record."""
