"""Implementation of `bin/test`."""
