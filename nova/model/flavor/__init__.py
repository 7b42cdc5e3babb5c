"""Flavors and their extra specs."""
