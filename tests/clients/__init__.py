"""Clients that others wrote judge the cloud, unmodified: ``python -m tests.clients``."""
