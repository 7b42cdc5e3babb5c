"""A Nova-compatible compute control plane: a set of daemons over a few shared floors."""
