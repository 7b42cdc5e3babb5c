"""Tempest, unmodified, against a sandbox of ours: which of its tests, with what configuration, and what came of it."""
