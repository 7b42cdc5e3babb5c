"""Keeps one host's guests as ordered."""
