"""Picks the real objects and runs one daemon: the composition root, one module a daemon."""
