"""nova-network: networks, addresses, floating addresses and security groups."""
