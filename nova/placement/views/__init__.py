"""Answers, from the values that the conductor gives. Fields that came with a version stand in tables."""
