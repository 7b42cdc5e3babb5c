"""Cells: their records, and what super conductors do for each of them."""
