"""What the HTTP APIs share, whatever they serve: who asks, request ids, one log line a request, errors as answers,
bodies and queries held against tables, versions, the mapper that finds an operation's row, and what runs it.

Nothing here knows an operation, a version's number or a body's form: an API hands in its own (``errors.Speech``,
``schema.Body``, ``routing.APIRoute``, ``microversions.Microversions``, and the checks of a ``dispatch.Dispatcher``).
"""
