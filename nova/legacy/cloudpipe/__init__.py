"""Cloudpipe: a VPN server for each project with networks of nova-network."""
