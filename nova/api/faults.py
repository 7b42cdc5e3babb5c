"""Errors as the API shows them: ``{"<name>": {"code": N, "message": "..."}}``, and the few that only HTTP has."""

from __future__ import annotations

from typing import Any

import msgspec

from nova import errors
from nova.api import versions
from nova.web.errors import JSON, Speech
from nova.web.paths import VERSION_KEY

NAMES = {400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
         409: "conflictingRequest", 413: "overLimit", 415: "badMediaType", 429: "overLimit", 501: "notImplemented",
         503: "serviceUnavailable"}
OTHER_NAME = "computeFault"
CONTENT_TYPE = JSON

UNEXPECTED = ("Unexpected API Error. The operator finds the cause in the log of nova-api under the request id "
              "{request_id}.")


class NoSuchOperation(errors.NotFound):
    """The path is known, the operation does not exist in the version asked for."""

    code, message = "api.not_in_version", "The resource could not be found."


class NoSuchServer(errors.NotFound):
    """What stands where a server's id should be is no uuid: nobody needs to be asked."""

    code, message = "server.not_found", "Instance {server} could not be found."


class NoSuchAction(errors.Invalid):
    code = "api.no_such_action"
    message = "There is no such action: {name}. The body must be an object with the action's name as its only key."


class WrongProject(errors.Invalid):
    code = "api.wrong_project"
    message = "Malformed request URL: URL's project_id '{in_url}' doesn't match Context's project_id '{in_token}'"


class NotYet(errors.NotSupported):
    code, message = "api.not_yet", "{operation} is not implemented by this release."


class GoneForGood(errors.Gone):
    """The words are Nova's, and HTTP's: clients compare them. What ``operation`` was, the request says."""

    code, message = "api.gone", "This resource is no longer available. No forwarding address is given."


def body(status: int, message: str, retry_after: int | None = None) -> bytes:
    """The JSON of one fault."""
    inner: dict[str, object] = {"code": status, "message": message}
    if retry_after is not None and status in (413, 429):
        inner["retryAfter"] = str(retry_after)
    return msgspec.json.encode({NAMES.get(status, OTHER_NAME): inner})


def described(error: Exception, request_id: str) -> tuple[int, str]:
    """(status, message) of an error. What is not one of ours, or is a bug of ours, shows no internals."""
    if isinstance(error, errors.NovaError) and error.status != 500:
        return error.status, error.message
    return 500, UNEXPECTED.format(request_id=request_id)


def _answer(error: Exception, environ: dict[str, Any]) -> tuple[int, bytes]:
    status, message = described(error, environ.get("nova.request_id", ""))
    return status, body(status, message)


def _version_headers(environ: dict[str, Any]) -> list[tuple[str, str]]:
    version = environ.get(VERSION_KEY)
    return versions.answer_headers(version) if version else []


SPEECH = Speech(_answer, _version_headers)
