"""Small in-memory Neutron: networks, subnets, ports, routers and security groups."""
