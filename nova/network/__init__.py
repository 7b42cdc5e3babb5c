"""nova-network: sets up one host's bridges, gateway addresses, DHCP and address translation as ordered."""
