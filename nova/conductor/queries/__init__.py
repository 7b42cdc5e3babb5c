"""Queries and small writes of ConductorRPC: one class per resource, one method per call of a contract."""
