"""Interfaces that few clouds still need: EC2 and S3, certificates, XML, the VNC viewer and VPN servers.

In the core only ``nova.cmd`` imports from this package, to plug it in.
"""
