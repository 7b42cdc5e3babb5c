"""Errors as API responses: ``{"<name>": {"code": N, "message": "..."}}``, and the few errors of HTTP itself."""

from __future__ import annotations

from wsgiref.types import WSGIEnvironment

import msgspec

from nova import errors
from nova.api import versions
from nova.web.errors import JSON, ErrorFormat
from nova.web.paths import VERSION_KEY

NAMES = {400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
         409: "conflictingRequest", 413: "overLimit", 415: "badMediaType", 429: "overLimit", 501: "notImplemented",
         503: "serviceUnavailable"}
OTHER_NAME = "computeFault"
CONTENT_TYPE = JSON

UNEXPECTED = ("Unexpected API Error. The log of nova-api has the cause under the request id "
              "{request_id}.")


def body(status: int, message: str, retry_after: int | None = None) -> bytes:
    """Return the JSON of one fault."""
    inner: dict[str, object] = {"code": status, "message": message}
    if retry_after is not None and status in (413, 429):
        inner["retryAfter"] = str(retry_after)
    return msgspec.json.encode({NAMES.get(status, OTHER_NAME): inner})


#: Errors of status 500 whose message is made for users.
FOR_USERS = frozenset({errors.server.AttachFailed.code})


def described(error: Exception, request_id: str) -> tuple[int, str]:
    """Return (status, message) of an error. Bugs, other errors of status 500, and exceptions other than nova's errors
    show no internals."""
    if isinstance(error, errors.NovaError) and (error.status != 500 or error.code in FOR_USERS):
        return error.status, error.message
    return 500, UNEXPECTED.format(request_id=request_id)


def _answer(error: Exception, environ: WSGIEnvironment) -> tuple[int, bytes]:
    status, message = described(error, environ.get("nova.request_id", ""))
    return status, body(status, message)


def _version_headers(environ: WSGIEnvironment) -> list[tuple[str, str]]:
    version = environ.get(VERSION_KEY)
    return versions.answer_headers(version) if version else []


ERROR_FORMAT = ErrorFormat(_answer, _version_headers)
