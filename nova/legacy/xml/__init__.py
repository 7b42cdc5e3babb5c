"""XML for the API at /v2, a format of old releases, made from the same tables and responses as JSON. Handlers and views
are independent of it."""
