"""Which form an answer has: by the path's suffix, then by the Accept header, else JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from wsgiref.types import WSGIEnvironment

from nova.web.bodies import WITH_BODY

JSON, XML, ATOM = "application/json", "application/xml", "application/atom+xml"
COMPUTE_JSON, COMPUTE_XML = "application/vnd.openstack.compute+json", "application/vnd.openstack.compute+xml"
JSON_TYPES, XML_TYPES = (JSON, COMPUTE_JSON), (XML, COMPUTE_XML)
MEDIA_TYPES = (JSON, COMPUTE_JSON, XML, COMPUTE_XML)  # the first wins where a mask means several
SUFFIXES = {".json": JSON, ".xml": XML}
_ENDS = tuple(SUFFIXES)

MOST_RANGES = 64  # of an Accept header; what stands behind them is not looked at
_USUAL = (None, "", "*/*", JSON)
_QUALITY = re.compile(r"q\s*=\s*([01](?:\.[0-9]{0,3})?)")


def is_usual(environ: WSGIEnvironment) -> bool:
    """Whether it is plain JSON in and out, as of nearly all clients: nothing needs to be looked at more closely."""
    return (environ.get("HTTP_ACCEPT") in _USUAL and not environ["PATH_INFO"].endswith(_ENDS)
            and (environ.get("CONTENT_TYPE") == JSON or environ["REQUEST_METHOD"] not in WITH_BODY))


def chosen(environ: WSGIEnvironment, offered: tuple[str, ...] = MEDIA_TYPES) -> str:
    """The media type of the answer. A known suffix is taken off the request's path."""
    path = environ["PATH_INFO"]
    for suffix, kind in SUFFIXES.items():
        if path.endswith(suffix):
            environ["PATH_INFO"] = path.removesuffix(suffix)
            return kind
    return accepted(environ.get("HTTP_ACCEPT") or "*/*", offered)


def accepted(accept: str, offered: tuple[str, ...] = MEDIA_TYPES) -> str:
    """The best of what is offered: by quality, then by the length of the mask, then by the order of the offer."""
    ranges = list(_ranges(accept))
    refused = {mask for mask, quality in ranges if not quality}
    fitting = [(quality, len(mask), -place, kind) for mask, quality in ranges if quality
               for place, kind in enumerate(offered) if kind not in refused and _fits(mask, kind)]
    return max(fitting)[-1] if fitting else JSON


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """(mask, quality), in lower case."""
    for part in accept.lower().split(",", MOST_RANGES)[:MOST_RANGES]:
        mask, *parameters = (piece.strip() for piece in part.split(";"))
        found = next((match for match in map(_QUALITY.fullmatch, parameters) if match), None)
        yield mask, min(float(found[1]), 1.0) if found else 1.0


def _fits(mask: str, kind: str) -> bool:
    return mask in (kind, "*/*") or (mask.endswith("/*") and kind.startswith(mask[:-1]))
