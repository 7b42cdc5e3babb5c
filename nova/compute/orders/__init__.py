"""Admission, ordering and execution of orders, and the wrappers around their handlers."""
