"""Networks, addresses, ports, and the security groups that filter their traffic."""
