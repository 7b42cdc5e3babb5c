"""Scheduling: what flavors, images and hints require of a host, and what the scheduler decides."""
