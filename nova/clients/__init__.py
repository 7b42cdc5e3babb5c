"""Clients of other OpenStack services: only the calls that nova uses, with typed answers."""
