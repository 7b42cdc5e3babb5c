"""Keeps rows; transactions begin and end here. Queries return wire values and take the transaction they run in."""
