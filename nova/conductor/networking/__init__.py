"""Networking: the interface that the Neutron and nova-network back ends share, and nova-network's options."""
