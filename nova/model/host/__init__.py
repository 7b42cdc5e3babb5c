"""Compute hosts, services, aggregates and cells."""
