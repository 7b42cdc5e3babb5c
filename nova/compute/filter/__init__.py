"""Packet filters: the traffic that this host's guests may receive and send."""
