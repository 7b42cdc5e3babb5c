"""Nova-compatible compute control plane: a set of services on top of a few shared layers."""
