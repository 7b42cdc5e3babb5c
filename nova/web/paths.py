"""A request's path, and the environ's keys that middleware and applications agree on."""

from __future__ import annotations

import re
from types import TracebackType
from wsgiref.types import WSGIEnvironment

#: What ``start_response`` gets of an error that came when the answer had begun (PEP 3333).
ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

LONGEST_NAME = 255  # of whatever a path may name
LONGEST_LOGGED = 1024  # characters of a path and its query
ROUTE_KEY = "nova.route"  # environ: the operation, as the API reference lists it
VERSION_KEY = "nova.api_version"  # environ: what the answer's version headers say


def text_of(environ: WSGIEnvironment, longest: int = LONGEST_NAME) -> str | None:
    """The path as text; None when it is no path of ours by its characters, or has a part of more than ``longest``."""
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8")
    except UnicodeError:
        return None
    return None if "\0" in path or any(len(part) > longest for part in path.split("/")) else path


#: What stands behind it in a path opens a console, and is for no log.
_SECRET = re.compile(r"(/os-console-auth-tokens/+)[^/?]+")


#: What stands behind it in a query is as good as a secret for a while: a presigned URL of S3, a request to EC2; a token
#: or a password that a client puts there by mistake.
_SIGNATURE = re.compile(
    r"((?:^|&)(?:X-Amz-Signature|X-Amz-Security-Token|Signature|X-(?:Auth|Subject|Service)-Token|(?:auth_?)?token"
    r"|password)=)[^&]*", re.IGNORECASE)


def logged(environ: WSGIEnvironment) -> str:
    """The path as it was asked for, on one line whatever a client put into it, without secrets, and no longer than
    helps."""
    path = environ.get("nova.path") or environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING")
    path = _SECRET.sub(r"\1***", path)
    text = "?".join((path, _SIGNATURE.sub(r"\1***", query))) if query else path
    shown = text.encode("latin-1", "replace").decode("utf-8", "replace").encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= LONGEST_LOGGED else f"{shown[:LONGEST_LOGGED]}..."
