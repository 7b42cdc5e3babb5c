"""Tells guests what they are: the metadata service (169.254.169.254), as a WSGI application."""
