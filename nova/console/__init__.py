"""Consoles of guests for their users: the tokens' service, and the proxies that carry sessions."""
