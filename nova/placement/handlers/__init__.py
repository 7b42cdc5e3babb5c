"""Operation handlers: each calls the conductor once and returns a view of the result."""
