"""Request bodies and query strings, a module a noun."""
