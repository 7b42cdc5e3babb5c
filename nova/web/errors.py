"""Conversion of errors to responses, and headers of versioned responses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import webob.exc

from nova import errors
from nova.web import paths
from nova.web.dispatch import send
from nova.web.paths import ExcInfo

LOG = logging.getLogger(__name__)
JSON = "application/json; charset=UTF-8"


class ErrorFormat(NamedTuple):
    """The error format of an API. ``described``: returns (status, body) for an error and the request; ``headers``:
    returns the headers of every response, for the request's environ; ``kind``: the media type of errors.
    """

    described: Callable[[Exception, WSGIEnvironment], tuple[int, bytes]]
    headers: Callable[[WSGIEnvironment], list[tuple[str, str]]]
    kind: str = JSON


class Errors:
    """Conversion of errors to responses. An unexpected error is logged once, with its traceback, and its response has
    no details."""

    def __init__(self, application: WSGIApplication, speech: ErrorFormat) -> None:
        self.application = application
        self.speech = speech

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None
                  ) -> Callable[[bytes], object]:
            return start_response(status, [*headers, *self.speech.headers(environ)], exc_info)

        try:
            return self.application(environ, start)
        except webob.exc.HTTPException:
            raise  # library middleware uses it for its own responses
        except Exception as error:  # a bug is a response, too
            return self._answer(error, environ, start)

    def _answer(self, error: Exception, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        status, content = self.speech.described(error, environ)
        if status == 500:
            LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], paths.logged(environ))
        else:
            code = error.code if isinstance(error, errors.NovaError) else ""
            LOG.debug("%s %s: %s %s", environ["REQUEST_METHOD"], paths.logged(environ), status, code)
        return send(start, status, [("Content-Type", self.speech.kind), ("Content-Length", str(len(content)))], content)
