"""The compute API: translate HTTP into commands and results into JSON. Code shared with other APIs is in nova.web.

Path of a request: ``app.build`` stacks the middleware. ``dispatch`` finds the row of ``routes.ROUTES``, checks the
request, calls the handler and encodes its result. The checks have the contract's order: version, content type, action
key, project in the path, operation at this version, schema. The part shared with Placement is ``nova.web.dispatch``.

To add a resource, for example *things*:

1. ``schemas/things.py``: a :class:`~nova.web.schema.Body` for each request body, a :class:`~nova.web.schema.Query` for
   each query.
2. ``views/things.py``: a :class:`~nova.api.view.View`, a table of output fields, and a function for each response.
3. ``handlers/things.py``: ``def show(req, thing_id)``: policy, one conductor call, the view. No ``except``, no version
   numbers (a behaviour that changed has a named function in ``versions.py``).
   ``@answers({"thing": views.FULL})`` above it declares the response: the OpenAPI document and the reference are
   generated from it, from the view's types (``View(..., of=Thing)``, ``Out(..., type="string")``) and from the tables
   of bodies.
4. ``routes.py``: one row for each operation: method, path, handler, ``since``/``until``, codes, schemas; remove the
   operation from ``absent.py``.
5. ``tests/unit/api/test_things.py``, and responses validated at every version in
   ``tests/contract/test_api_things.py``; ``test_api_routes`` and ``test_api_schemas`` compare versions, codes, policies
   and schemas with the contract.
"""
