"""Quotas: limits, what counts toward them, and usage over time."""
