"""PCI devices that a host gives to its guests: which they are, and what is told of them. Pure."""
