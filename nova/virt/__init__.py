"""Hypervisor drivers, controlled by specs."""
