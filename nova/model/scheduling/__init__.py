"""Scheduling: requirements of flavors, images and hints on a host, and decisions of the scheduler."""
