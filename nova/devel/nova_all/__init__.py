"""A whole cloud in one process: the parts of ``nova-all``. Each service runs as elsewhere; see ``cloud.py``."""
