"""The database layer: transactions begin and end here. Queries return wire values and take their transaction as an
argument."""
