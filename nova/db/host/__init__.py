"""Hosts: services, nodes, aggregates, enrolment and heartbeats."""
