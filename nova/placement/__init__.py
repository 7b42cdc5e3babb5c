"""Placement's API: resource providers, what they have and who holds it, as the reference's clients know it.

Made like :mod:`nova.api`: ``app.build`` stacks the middleware; ``dispatch`` finds the row of ``routes.ROUTES``
and checks in this order: version, path, method, policy, content type, query, body; the handler makes one call to the
conductor (:class:`~nova.rpc.contracts.placement.PlacementRPC`), which decides everything about what is there. What is
here is form: spans of versions in tables, named functions in ``versions`` for what behaves differently.
"""
