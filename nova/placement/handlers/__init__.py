"""What each operation does: one call to the conductor, and the view of its answer."""
