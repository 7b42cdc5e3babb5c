"""PCI devices for guests: selection and reported inventory. Pure."""
