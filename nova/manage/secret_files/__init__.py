"""``nova-manage secrets split``: move the secrets of nova.conf into one file for each service, readable only by it."""
