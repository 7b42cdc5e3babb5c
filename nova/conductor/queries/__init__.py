"""Reads, and the small writes beside them: one class a noun, each method one call of a contract."""
