"""The metadata service for guests (169.254.169.254), as a WSGI application."""
