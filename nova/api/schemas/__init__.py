"""Request bodies and query strings, one module for each noun."""
