"""A guest's local disks: planned as values, created by tools, with one module for each back end."""
