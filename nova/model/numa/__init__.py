"""NUMA and PCI: a host's topology, a guest's requirements on it, and the one rule that decides whether they fit."""
