"""Composition root: one module for each service, which creates the real objects and runs it."""
