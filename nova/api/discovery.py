"""API version discovery: the documents at the root, at /v2.1/ and /v2/, and 300 for any other path."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import webob

from nova import errors
from nova.api import versions
from nova.api.dispatch import JSON
from nova.api.extras import MediaTypes
from nova.api.request import ApiOptions
from nova.web.dispatch import send

SHOW = "versions/"  # GET /v2.1/versions/v2.1 is the same document

DOCUMENTATION = {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}

#: id, part of the path, status, when, whether it has microversions
KNOWN = (("v2.0", "v2", "DEPRECATED", "2025-07-04T12:00:00Z", False),
         ("v2.1", "v2.1", "CURRENT", "2013-07-23T11:33:21Z", True))
_VERSION = re.compile(r";\s*version\s*=\s*\"?(v?[0-9][0-9.]*)\"?\s*(?:[;,]|$)")
ALIASES = {"v1.1": "v2"}  # older part of the path -> the version whose document is shown there


def _entry(known: tuple[str, str, str, str, bool], base: str, *links: dict[str, str]) -> dict[str, object]:
    id, part, status, updated, has_minors = known
    return {"id": id, "status": status, "updated": updated,
            "version": versions.text(versions.MAX) if has_minors else "",
            "min_version": versions.text(versions.MIN) if has_minors else "",
            "links": [{"rel": "self", "href": f"{base}/{part}/"}, *links]}


def _media_types(part: str) -> list[dict[str, str]]:
    return [{"base": JSON, "type": f"application/vnd.openstack.compute+json;version={part.removeprefix('v')}"}]


def listing(base: str) -> dict[str, object]:
    """Return the document of the root: ``{"versions": [...]}``, with one entry for each version. ``base``: start of
    links, without a trailing slash."""
    return {"versions": [_entry(known, base) for known in KNOWN]}


def document(part: str, base: str) -> dict[str, object]:
    """Return the document of the version at ``/<part>/``."""
    known = next(row for row in KNOWN if row[1] == part)
    return {"version": {**_entry(known, base, DOCUMENTATION), "media-types": _media_types(part)}}


def choices(path: str, base: str) -> dict[str, object]:
    """Return the response for an unversioned path: the same path under each version."""
    return {"choices": [{"id": id, "status": status, "media-types": _media_types(part),
                         "links": [{"rel": "self", "href": f"{base}/{part}{path}"}]}
                        for id, part, status, _, _ in KNOWN]}


class ComputeRoot:
    """Dispatcher of /v2.1 and /v2 to the mounted applications, and of their roots and other paths to documents."""

    def __init__(self, mounted: dict[str, WSGIApplication], options: ApiOptions, formats: MediaTypes) -> None:
        self.mounted = mounted
        self.options = options
        self.formats = formats

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        part, _, rest = path.removeprefix("/").partition("/")
        base, prefix = self._base(environ), f"/{part}"
        if part not in self.mounted and (asked := version_asked(environ)) in self.mounted:
            part, rest, prefix = str(asked), path.removeprefix("/"), ""
        if part in self.mounted:
            environ["nova.base_url"] = base
            if (rest and not rest.startswith(SHOW)) or _may_log_in(environ):
                environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}{prefix}"
                environ["PATH_INFO"] = f"/{rest}" if path != prefix else ""
                return self.mounted[part](environ, start_response)
            if part == "v2.1":
                versions.SERIES.choose(environ, webob.Request(environ))
            if rest.removeprefix(SHOW) not in ("", "v2.1"):
                raise errors.NotFound(f"There is no version {rest.removeprefix(SHOW)}.")
            part = ALIASES.get(part, part)
            kind = JSON if part == "v2.1" else self.formats.chosen(environ, feeds=True)
            return self._send(start_response, 200, document(part, base), kind)
        if not part and not rest:
            return self._send(start_response, 200, listing(base), self.formats.chosen(environ, feeds=True))
        kind = self.formats.chosen(environ)
        path = urllib.parse.quote(environ["PATH_INFO"], safe="/", encoding="latin-1")
        return self._send(start_response, 300, choices(path, base), kind)

    def _send(self, start_response: StartResponse, status: int, document: dict[str, object],
              kind: str) -> Iterable[bytes]:
        content = self.formats.written(document, kind)
        return send(start_response, status, [("Content-Type", kind), ("Content-Length", str(len(content)))], content)

    def _base(self, environ: WSGIEnvironment) -> str:
        return (self.options.compute_link_prefix or webob.Request(environ).application_url).rstrip("/")


def _may_log_in(environ: WSGIEnvironment) -> bool:
    """True if a user without a token may log in at this path, a version's root: for ``noauth2``."""
    return "HTTP_X_AUTH_USER" in environ and "HTTP_X_AUTH_TOKEN" not in environ


def version_asked(environ: WSGIEnvironment) -> str | None:
    """Return ``v2`` for a media type with ``;version=2`` in Accept or Content-Type, for paths without a version."""
    for name in ("HTTP_ACCEPT", "CONTENT_TYPE"):
        value = environ.get(name) or ""
        found = _VERSION.search(value) if "version" in value else None
        if found:
            return f"v{found[1].removeprefix('v')}"
    return None
