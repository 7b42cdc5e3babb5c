"""Request ids: assigns one to every request, and sends it in the response."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from nova import context, tracing
from nova.web.paths import ExcInfo

HEADER = "x-openstack-request-id"
_FORM = re.compile(r"req-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class RequestId:
    """Middleware that sets environ ``nova.request_id`` to a new id, and ``nova.global_request_id`` to the caller's id,
    if it is well-formed.

    ``names``: the response headers with the request id.
    """

    def __init__(self, application: WSGIApplication, names: tuple[str, ...] = (HEADER,)) -> None:
        self.application = application
        self.names = names

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request_id = environ["nova.request_id"] = context.new_request_id()
        theirs = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        environ["nova.global_request_id"] = theirs if _FORM.fullmatch(theirs) else None

        def start(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None
                  ) -> Callable[[bytes], object]:
            return start_response(status, [*headers, *((name, request_id) for name in self.names)], exc_info)

        parent = tracing.valid(environ.get("HTTP_TRACEPARENT"))
        nobody = context.RequestContext(request_id=request_id, traceparent=parent)  # before authentication
        with context.entered(nobody):
            return self.application(environ, start)
