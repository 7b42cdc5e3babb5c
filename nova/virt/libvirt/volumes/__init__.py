"""Volumes on this host: connection types, one module each, and records of the guests that use them."""
