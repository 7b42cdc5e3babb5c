"""The API as an OpenAPI 3.1 document of one version, generated from the tables that serve it.

``nova-manage api schema --version 2.96`` prints it. No operation is named here: rows come from ``routes.ROUTES``,
bodies and queries from their tables, responses from the views that handlers declare (``nova.api.view.answers``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from http.client import responses
from typing import Any

from nova import errors
from nova.api import versions
from nova.api.openapi_schemas import of_shape
from nova.api.routing import Route
from nova.api.view import During
from nova.web import microversions
from nova.web.ranges import within
from nova.web.specs import any_of
from nova.web.validation import Schema

JSON, TEXT = "application/json", "text/plain"
WRITES = ("POST", "PUT", "DELETE")
WITH_BODY = ("POST", "PUT")
NO_BODY = 204

#: Descriptions of the errors of all operations. :func:`errors_of` returns the codes of one operation.
ERRORS = {
    400: "The version, path, query or body of the request is invalid. The message names the field and valid values.",
    401: "The token is missing or invalid.",
    403: "A policy rule refuses the request (the message names the rule), or a quota is exceeded.",
    404: "The resource does not exist, or is not visible to the caller; or the version does not have the operation.",
    406: "The version is not supported.",
    409: "The state of the resource does not allow the request, or the request conflicts with another one.",
    413: "The body is too large.",
    414: "The path and its query are too long.",
    415: "The content type of the body is not application/json.",
    501: "The back end does not support this.",
    503: "A required service does not answer. Try again.",
}
PLAIN = (401, 404, 413, 414)  # may come from middleware in front of the API, as plain text

Operation = dict[str, object]


def errors_of(route: Route) -> list[int]:
    """Return the error codes of an operation."""
    codes = [400, 401, 403, 404, 406, 414, 501, 503]
    if route.method in WRITES or "server_id" in route.names:
        codes.append(409)
    if route.method in WITH_BODY:
        codes += [413, 415]
    return sorted(codes)


def successes_of(route: Route, version: int) -> list[int]:
    """Return the success codes: the code of its row, and others that its handler declares."""
    return [route.success(version), *getattr(route.handler, "codes", ())]


def document(version: int, legacy: bool = False, rows: Sequence[Route] | None = None) -> dict[str, object]:
    """Return the whole document. ``legacy``: the API under /v2, which is version 2.1 without version headers."""
    if rows is None:
        from nova.api import legacy_v2
        from nova.api.routes import ROUTES

        rows = (*ROUTES, *legacy_v2.ROUTES) if legacy else ROUTES
    return {
        "openapi": "3.1.0",
        "info": {"title": "Compute API", "version": "2.0" if legacy else versions.text(version),
                 "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/v2" if legacy else "/v2.1"}],
        "security": [{"token": []}],
        "paths": _paths(rows, version, legacy),
        "components": _components(version, legacy)}


def chosen(text: str) -> tuple[int, bool] | None:
    """Return the arguments of :func:`document` for ``2.96``, ``latest``, or ``2.0`` (the API under /v2); None for other
    texts."""
    if text in ("2.0", "v2"):
        return versions.LEGACY, True
    with contextlib.suppress(errors.api.VersionMalformed, errors.api.VersionOutOfRange):
        return versions.SERIES.chosen({versions.OLD_HEADER: text}), False
    return None


def _components(version: int, legacy: bool) -> dict[str, object]:
    fault = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {
        "type": "object", "required": ["code", "message"],
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "retryAfter": {"type": "string"}}}}
    found: dict[str, Any] = {
        "schemas": {"Fault": fault},
        "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
        "responses": {str(code): _fault(code, words) for code, words in ERRORS.items()}}
    if not legacy:
        asked = f"{versions.SERVICE} {versions.text(version)}"
        found["parameters"] = {"Version": {"name": microversions.HEADER, "in": "header", "required": True,
                                           "schema": {"type": "string", "enum": [asked]}}}
    return found


def _fault(code: int, words: str) -> dict[str, object]:
    content: dict[str, Any] = {JSON: {"schema": {"$ref": "#/components/schemas/Fault"}}}
    if code in PLAIN:
        content[TEXT] = {"schema": {"type": "string"}}
    return {"description": words, "content": content}


def _paths(rows: Iterable[Route], version: int, legacy: bool) -> dict[str, object]:
    paths: dict[str, Any] = {}
    for (path, method), routes in operations(rows, version).items():
        paths.setdefault(path, {})[method.lower()] = _operation(routes, version, legacy)
    return paths


def operations(rows: Iterable[Route], version: int) -> dict[tuple[str, str], list[Route]]:
    """Return (path, method) -> the row of a version; for actions, which the body selects, all their rows."""
    found: dict[tuple[str, str], list[Route]] = {}
    for route in rows:
        if within(version, route.since, route.until):
            found.setdefault((route.path, route.method), []).append(route)
    return found


def _operation(routes: list[Route], version: int, legacy: bool) -> Operation:
    first = routes[0]
    made: Operation = {
        "operationId": f"{first.method} {first.path}", "tags": [first.path.split("/")[1]],
        "summary": _summary(routes),
        "parameters": [*([] if legacy else [{"$ref": "#/components/parameters/Version"}]),
                       *({"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1,
                                                                                   "pattern": "^[^/]+$"}}
                         for name in first.names),
                       *(parameter for route in routes for parameter in _query(route, version))],
        "responses": _responses(routes, version)}
    if first.method in WITH_BODY:
        schema = any_of([_body(route, version, legacy) for route in routes])
        if "anyOf" in schema and first.action:
            schema = {"oneOf": schema["anyOf"]}
        needed = any(route.action or (route.body and not route.body.may_be_missing) for route in routes)
        made["requestBody"] = {"required": bool(needed), "content": {JSON: {"schema": schema}}}
    if notes := [_note(route, version) for route in routes]:
        made["description"] = "\n".join(notes)
    return made


def _summary(routes: list[Route]) -> str:
    """Return the first sentence of the handler's docstring, or its id."""
    if routes[0].action:
        return f"Actions: {', '.join(route.action or '' for route in routes)}"
    words = (routes[0].handler.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(words.split()).split(". ")[0].rstrip(".") or routes[0].id


def _note(route: Route, version: int) -> str:
    parts = [f"`{route.action}`: " if route.action else "",
             f"checks the policy rule {route.policy}. " if route.policy else "allowed for every valid token. "]
    if route.query is not None and route.query.compiled(version)[2]:
        parts.append("Unknown query parameters are refused.")
    return "".join(parts).strip()


def _query(route: Route, version: int) -> list[dict[str, object]]:
    """Return the parameters by name; OpenAPI cannot express parameters that match a pattern."""
    if route.query is None:
        return []
    names, _patterns, _refuse = route.query.compiled(version)
    return [{"name": name, "in": "query", "required": False, "schema": entry.schema()}
            for name, entry in names.items()]


def _body(route: Route, version: int, legacy: bool) -> Schema:
    if route.body is None:
        if route.action is None:
            return {}
        return {"type": "object", "properties": {route.action: {}}, "required": [route.action],
                "additionalProperties": False}
    schema = route.body.schema(version, legacy)
    if route.action is not None:  # the only key of its body, regardless of the table
        schema["required"] = [route.action]
        schema["additionalProperties"] = False
        schema.setdefault("properties", {}).setdefault(route.action, {})
    return schema


def _responses(routes: list[Route], version: int) -> dict[str, object]:
    answers: dict[int, list[Schema | None]] = {}
    for route in routes:
        for code in successes_of(route, version):
            answers.setdefault(code, []).append(answer_of(route, code, version))
    found = {str(code): _answer(code, schemas) for code, schemas in sorted(answers.items())}
    codes = sorted({code for route in routes for code in errors_of(route)})
    return {**found, **{str(code): {"$ref": f"#/components/responses/{code}"} for code in codes}}


def answer_of(route: Route, code: int, version: int) -> Schema | None:
    """Return the schema of a response; None without a body; any value if the handler declares no shape."""
    quiet = getattr(route.handler, "__annotations__", {}).get("return") in (None, "None", "NoReturn")
    shape = getattr(route.handler, "answer", None if quiet else "any")
    if isinstance(shape, During):
        shape = shape.shape if versions.within(version, shape.since, shape.until) else None
    return None if shape is None or code == NO_BODY else of_shape(shape, version)


def _answer(code: int, schemas: list[Schema | None]) -> dict[str, object]:
    made: dict[str, Any] = {"description": responses[code]}
    present = [schema for schema in schemas if schema is not None]
    distinct = [schema for index, schema in enumerate(present) if schema not in present[:index]]
    if distinct:
        made["content"] = {JSON: {"schema": any_of(distinct)}}
    return made
