"""The nova-network back end: its networks are rows of the cell, and its hosts receive their states."""
