"""Guest consoles for users: the token service, and the proxies that relay sessions."""
