"""``nova-manage secrets split``: the secrets of nova.conf into a file for each daemon, which it alone may read."""
