"""The version document at the root, which needs no token; all other paths belong to the API."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import webob

from nova.placement import faults, versions
from nova.placement.request import time_headers
from nova.web.dispatch import encoded, send


class PlacementRoot:
    """All paths of the Placement API."""

    def __init__(self, api: WSGIApplication) -> None:
        self.api = api

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "") not in ("", "/"):
            return self.api(environ, start_response)
        # clients use this to ask whether their version is supported
        version = versions.SERIES.choose(environ, webob.Request(environ))
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            raise faults.not_allowed(environ, ["GET"])
        content = encoded(_versions(environ))
        headers = [("content-type", faults.JSON), ("content-length", str(len(content)))]
        if versions.answers_have_times(version):
            headers += time_headers(None)
        return send(start_response, 200, headers, content)


def _versions(environ: WSGIEnvironment) -> dict[str, object]:
    return {"versions": [{"id": "v1.0", "status": "CURRENT", "min_version": versions.text(versions.MIN),
                          "max_version": versions.text(versions.MAX),
                          "links": [{"rel": "self", "href": environ.get("SCRIPT_NAME", "")}]}]}
