"""A guest's local disks: planned as values, made by tools, one kind a file."""
