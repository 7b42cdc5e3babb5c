"""A whole cloud in one process: what ``nova-all`` is made of. Each daemon is as it is elsewhere; see ``cloud.py``."""
