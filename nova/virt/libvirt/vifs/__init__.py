"""A guest's network interfaces, one kind a file: the host's side is prepared, and a spec comes back."""
