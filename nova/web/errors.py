"""The one place where errors become answers, and where versioned answers get their headers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

import webob.exc

from nova import errors
from nova.model.base import Json
from nova.web import paths
from nova.web.dispatch import send
from nova.web.paths import ExcInfo

LOG = logging.getLogger(__name__)
JSON = "application/json; charset=UTF-8"


class Speech(NamedTuple):
    """How an API words errors. ``described``: (status, body) of one, for the request; ``headers``: what every answer
    has, by the request's environ; ``kind``: the media type of errors.
    """

    described: Callable[[Exception, dict[str, Any]], tuple[int, bytes]]
    headers: Callable[[dict[str, Any]], list[tuple[str, str]]]
    kind: str = JSON


class Errors:
    """An error's status decides the body; what is unexpected is logged once, with its traceback, and shows nothing."""

    def __init__(self, application: Callable[..., Json], speech: Speech) -> None:
        self.application = application
        self.speech = speech

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None) -> Json:
            return start_response(status, [*headers, *self.speech.headers(environ)], exc_info)

        try:
            return self.application(environ, start)
        except webob.exc.HTTPException:
            raise  # a library's middleware answers with it
        except Exception as error:
            return self._answer(error, environ, start)

    def _answer(self, error: Exception, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        status, content = self.speech.described(error, environ)
        if status == 500:
            LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], paths.logged(environ))
        else:
            code = error.code if isinstance(error, errors.NovaError) else ""
            LOG.debug("%s %s: %s %s", environ["REQUEST_METHOD"], paths.logged(environ), status, code)
        return send(start, status, [("Content-Type", self.speech.kind), ("Content-Length", str(len(content)))], content)
