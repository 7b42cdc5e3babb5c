"""Fakes for tests: small, stateful, with failures on demand."""
