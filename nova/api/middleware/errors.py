"""The one place where errors become answers, and where versioned answers get their headers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from http.client import responses
from typing import Any

import webob.exc

from nova import errors
from nova.api import faults, versions
from nova.api.dispatch import VERSION_KEY
from nova.api.middleware.access_log import path_of

LOG = logging.getLogger(__name__)


class Errors:
    """An error's status decides the body; what is unexpected is logged once, with its traceback, and shows nothing."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, [*headers, *_version_headers(environ)], exc_info)

        try:
            return self.application(environ, start)
        except webob.exc.HTTPException:
            raise  # a library's middleware answers with it
        except Exception as error:
            return _answer(error, environ, start)


def _answer(error: Exception, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    request_id = environ.get("nova.request_id", "")
    status, message = faults.described(error, request_id)
    if status == 500:
        LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], path_of(environ))
    else:
        code = error.code if isinstance(error, errors.NovaError) else ""
        LOG.debug("%s %s: %s %s", environ["REQUEST_METHOD"], path_of(environ), status, code)
    content = faults.body(status, message)
    start(f"{status} {responses[status]}", [("Content-Type", faults.CONTENT_TYPE),
                                            ("Content-Length", str(len(content)))])
    return [content]


def _version_headers(environ: dict[str, Any]) -> list[tuple[str, str]]:
    version = environ.get(VERSION_KEY)
    return versions.answer_headers(version) if version else []
