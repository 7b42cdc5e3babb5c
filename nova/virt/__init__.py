"""Drives a hypervisor from specs."""
