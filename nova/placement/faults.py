"""Error responses of Placement: ``{"errors": [{"status", "title", "detail", "request_id", "code"}]}``."""

from __future__ import annotations

from collections.abc import Iterable
from http.client import responses
from typing import Any
from wsgiref.types import WSGIEnvironment

import msgspec

from nova import errors
from nova.placement import versions
from nova.web.errors import ErrorFormat
from nova.web.paths import VERSION_KEY

JSON = "application/json"
UNDEFINED = "placement.undefined_code"
#: Codes that clients know; all others are shown as "undefined". Several errors of nova may share a code.
CODES = {code: code for code in (
    "placement.concurrent_update", "placement.duplicate_name", "placement.inventory.inuse",
    "placement.resource_provider.cannot_delete_parent", "placement.resource_provider.inuse",
    "placement.resource_provider.not_found", "placement.query.bad_value", "placement.query.duplicate_key",
    "placement.query.missing_value")} | {
    errors.placement.ConsumerChanged.code: "placement.concurrent_update",
    errors.placement.InventoryExists.code: "placement.concurrent_update",
    errors.placement.ResourceProviderBusy.code: "placement.concurrent_update",
    errors.placement.NameUnknown.code: "placement.query.bad_value",
    errors.placement.ResourceProviderHostsOwn.code: "placement.resource_provider.inuse",
    errors.placement.AllocationUnknownProvider.code: "placement.resource_provider.not_found"}
_ALLOW_KEY = "nova.allow"  # environ: the path's methods, for the Allow header

UNEXPECTED = ("Unexpected API Error. The cause is in the log of nova-placement-api under the request "
              "id {request_id}.")


def _described(error: Exception, environ: WSGIEnvironment) -> tuple[int, bytes]:
    """Describe an error. Foreign exceptions and bugs expose no internals."""
    request_id = environ.get("nova.request_id", "")
    status, detail, code = 500, UNEXPECTED.format(request_id=request_id), UNDEFINED
    if isinstance(error, errors.NovaError) and error.status != 500:
        status, detail = error.status, error.message
        code = CODES.get(error.code, UNDEFINED)
    fault: dict[str, Any] = {"status": status, "title": responses[status], "detail": detail, "request_id": request_id}
    if _has_code(environ):
        fault["code"] = code
    if isinstance(error, errors.placement.VersionOutOfRange):
        fault |= {"min_version": versions.text(versions.MIN), "max_version": versions.text(versions.MAX)}
    return status, msgspec.json.encode({"errors": [fault]})


def _has_code(environ: WSGIEnvironment) -> bool:
    major, _, minor = environ.get(VERSION_KEY, "").partition(".")
    return major == "1" and versions.errors_have_codes(int(minor))


def _headers(environ: WSGIEnvironment) -> list[tuple[str, str]]:
    version, allowed = environ.get(VERSION_KEY), environ.get(_ALLOW_KEY)
    return [*(versions.answer_headers(version) if version else []), *([("allow", allowed)] if allowed else [])]


def not_allowed(environ: WSGIEnvironment, methods: Iterable[str]) -> errors.NovaError:
    """Return the error for a path that supports only ``methods``; sets the Allow header."""
    environ[_ALLOW_KEY] = ", ".join(sorted(methods))
    return errors.placement.MethodNotAllowed(method=str(environ["REQUEST_METHOD"])[:20])


ERROR_FORMAT = ErrorFormat(_described, _headers, JSON)
