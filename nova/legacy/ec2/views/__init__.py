"""What answers show of the cloud's values, as trees of elements."""
