"""A small Neutron: networks, subnets, ports, routers and security groups, in memory."""
