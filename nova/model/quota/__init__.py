"""Quotas: limits, the resources that count, and usage over time."""
