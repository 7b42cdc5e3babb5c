"""Flavors and the extra specs that they may have."""
