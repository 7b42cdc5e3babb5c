"""Volumes of the volume service on this host: how each kind is reached, and who uses what. One kind a file."""
