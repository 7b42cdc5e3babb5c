"""NUMA and PCI: a host's topology, what a guest requires of it, and the one rule for whether it fits."""
