"""The compute API: turns HTTP into commands and answers into JSON. What it shares with other APIs is in nova.web.

How a request goes: ``app.build`` stacks the middleware; ``dispatch`` finds the row of ``routes.ROUTES``, checks in
the contract's order (version, content type, action key, project in the path, operation at this version, schema),
calls the handler and encodes what it returns. What runs it, for Placement too, is ``nova.web.dispatch``.

To add a resource, say *things*:

1. ``schemas/things.py``: a :class:`~nova.web.schema.Body` a request body, a :class:`~nova.web.schema.Query` a query.
2. ``views/things.py``: a :class:`~nova.api.view.View`, a table of output fields, and a small function an answer.
3. ``handlers/things.py``: ``def show(req, thing_id)``: policy, one conductor call, the view. No ``except``, no version
   numbers (a behaviour that changed has a named function in ``versions.py``).
   ``@answers({"thing": views.FULL})`` above it says what it answers: the OpenAPI document and the reference are made of
   that, of the view's types (``View(..., of=Thing)``, ``Out(..., type="string")``) and of the tables of bodies.
4. ``routes.py``: one row an operation: method, path, handler, ``since``/``until``, codes, schemas; take the operation
   out of ``absent.py``.
5. ``tests/unit/api/test_things.py``, and answers judged at every version in ``tests/contract/test_api_things.py``;
   versions, codes, policies and schemas are held against the contract by ``test_api_routes`` and ``test_api_schemas``.
"""
