"""The Placement API: resource providers, inventories and allocations, compatible with the reference's clients.

Structured like :mod:`nova.api`. ``app.build`` stacks the middleware. ``dispatch`` finds the row of ``routes.ROUTES``
and checks in this order: version, path, method, policy, content type, query, body. Handlers make one call to the
conductor (:class:`~nova.rpc.contracts.placement.PlacementRPC`), which decides everything about data. This package only
handles formats: version ranges are in tables, other differences in named functions of ``versions``.
"""
