"""Amazon's dialect of the compute API: requests by ``Action``, answers in XML, ids such as ``i-0000000a``.

``app`` takes a request apart and answers it; ``actions`` is the table of what can be asked; a module of ``handlers``
has a noun's actions. Nothing here knows the database or another service: all is asked of the conductor, by the calls
of the compute API, and the same policy rules hold. Facts: EC2's API reference; what nova's EC2 API answered.
"""
