"""The EC2-compatible compute API: requests by ``Action``, responses in XML, ids such as ``i-0000000a``.

``app`` parses and answers a request; ``actions`` is the table of supported actions; each module of ``handlers`` has the
actions of one resource. This package never uses the database or another service directly. It calls the conductor as
the compute API does, and the same policy rules apply. Sources: the EC2 API reference; the responses of nova's EC2 API.
"""
