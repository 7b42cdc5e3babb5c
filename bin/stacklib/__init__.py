"""Implementation of ``bin/stack``: a whole cloud on one machine, from nothing. Standard library only."""
