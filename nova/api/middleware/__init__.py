"""What stands in front of the compute API, outermost first in ``app.build``."""
