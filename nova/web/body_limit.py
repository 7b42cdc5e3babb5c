"""Refuses bodies above ``[oslo_middleware]max_request_body_size``, and says how large one may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_config import cfg
from oslo_middleware import sizelimit

from nova.model.base import Json

MOST_DIGITS = 18  # more are no length, and dear to read


class BodyLimit:
    """oslo.middleware's limit, which counts what is read, behind one for bodies that tell their length: the library's
    own answer to these leaves the limit out.
    """

    def __init__(self, application: Callable[..., Json], conf: cfg.ConfigOpts) -> None:
        self.counting = sizelimit.RequestBodySizeLimiter(application, conf)
        self.most: int = conf.oslo_middleware.max_request_body_size

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or ""
        digits = length.lstrip("0") if length.isdecimal() else ""
        if len(digits) <= MOST_DIGITS and int(digits or 0) <= self.most:
            return self.counting(environ, start_response)
        text = f"The body of the request is too large: at most {self.most} bytes are taken.\n".encode()
        start_response("413 Request Entity Too Large", [("Content-Type", "text/plain; charset=UTF-8"),
                                                        ("Content-Length", str(len(text)))])
        return [text]
