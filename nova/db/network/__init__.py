"""nova-network: networks, fixed addresses, floating IPs and security groups."""
