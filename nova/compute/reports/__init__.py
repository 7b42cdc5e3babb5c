"""Reports of this host, sent on its own initiative or on request."""
