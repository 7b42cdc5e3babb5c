"""What each operation does: policy, one conductor call (two for an action), the view."""
