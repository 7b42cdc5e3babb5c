"""Queries of periodic tasks, and figures of the cloud as a whole."""
