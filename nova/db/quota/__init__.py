"""Quotas: limits, the ledger of what counts toward them, and usage audits."""
