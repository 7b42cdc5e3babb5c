"""The tables of the two schemas, ``api`` and ``cell``."""
