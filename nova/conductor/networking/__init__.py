"""Networking: the contract that Neutron's and nova-network's back ends share, and the options of the latter."""
