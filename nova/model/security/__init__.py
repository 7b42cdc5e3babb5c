"""Certificates, wrapped secrets, and the security mode of a cloud."""
