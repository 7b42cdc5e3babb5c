"""nova-network as the network back end: its networks are rows of the cell, and its hosts are told their states."""
