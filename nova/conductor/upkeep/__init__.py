"""Periodic upkeep that conductors do automatically."""
