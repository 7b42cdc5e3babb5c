"""A request's path, and environ keys that middleware and applications share."""

from __future__ import annotations

import re
from types import TracebackType
from wsgiref.types import WSGIEnvironment

#: Argument of ``start_response`` for an error after the response has begun (PEP 3333).
ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

LONGEST_NAME = 255  # of any name in a path
LONGEST_LOGGED = 1024  # characters of a path and its query
ROUTE_KEY = "nova.route"  # environ: the operation, as in the API reference
VERSION_KEY = "nova.api_version"  # environ: the version for the response headers


def text_of(environ: WSGIEnvironment, longest: int = LONGEST_NAME) -> str | None:
    """Return the path as text; None if it has invalid characters, or a part of more than ``longest``."""
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8")
    except UnicodeError:
        return None
    return None if "\0" in path or any(len(part) > longest for part in path.split("/")) else path


#: Path prefix of a token that opens a console, and must not be logged.
_SECRET = re.compile(r"(/os-console-auth-tokens/+)[^/?]+")


#: Query parameters whose values act as secrets for a while: a presigned URL of S3, a request to EC2; a token or a
#: password that a client sends there by mistake.
_SIGNATURE = re.compile(
    r"((?:^|&)(?:X-Amz-Signature|X-Amz-Security-Token|Signature|X-(?:Auth|Subject|Service)-Token|(?:auth_?)?token"
    r"|password)=)[^&]*", re.IGNORECASE)


def logged(environ: WSGIEnvironment) -> str:
    """Return the requested path for logs: on one line for any input, without secrets, and of limited length."""
    path = environ.get("nova.path") or environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING")
    path = _SECRET.sub(r"\1***", path)
    text = "?".join((path, _SIGNATURE.sub(r"\1***", query))) if query else path
    shown = text.encode("latin-1", "replace").decode("utf-8", "replace").encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= LONGEST_LOGGED else f"{shown[:LONGEST_LOGGED]}..."
