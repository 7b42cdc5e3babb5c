"""Fakes that tests hand in: small, with state, failing when asked to."""
