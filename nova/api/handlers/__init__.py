"""Handlers of the operations: policy, one conductor call (two for an action), the view."""
