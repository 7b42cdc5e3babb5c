"""Guests that go from one host to another: off (``cold``) or running (``live``)."""
