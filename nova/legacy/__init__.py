"""Interfaces that few clouds still need: EC2 and S3, certificates, XML, the VNC viewer and VPN servers.

The core imports nothing from here but in ``nova.cmd``, which puts it where it belongs.
"""
