"""Guests on their host: definition, lifecycle, devices and volumes."""
