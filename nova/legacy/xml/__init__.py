"""XML below /v2: what the API once spoke, by the same tables and answers as JSON. No handler and no view knows it."""
