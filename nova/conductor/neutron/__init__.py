"""Neutron as the network back end: its ports are servers' interfaces."""
