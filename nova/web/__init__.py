"""The layers that all HTTP APIs share: authentication context, request ids, access log, error responses, validation of
bodies and queries against tables, microversions, the router, and the dispatcher.

This package knows no operation, no version number and no body format. An API passes in its own (``errors.ErrorFormat``,
``schema.Body``, ``routing.APIRoute``, ``microversions.Microversions``, and the checks of a ``dispatch.Dispatcher``).
"""
