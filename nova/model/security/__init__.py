"""Certificates, encrypted secrets, and the security mode of a cloud."""
