"""Content negotiation: the response format by the path's suffix, then by the Accept header, else JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from wsgiref.types import WSGIEnvironment

from nova.web.bodies import WITH_BODY

JSON, XML, ATOM = "application/json", "application/xml", "application/atom+xml"
COMPUTE_JSON, COMPUTE_XML = "application/vnd.openstack.compute+json", "application/vnd.openstack.compute+xml"
JSON_TYPES, XML_TYPES = (JSON, COMPUTE_JSON), (XML, COMPUTE_XML)
MEDIA_TYPES = (JSON, COMPUTE_JSON, XML, COMPUTE_XML)  # a mask that matches several selects the first
SUFFIXES = {".json": JSON, ".xml": XML}
_ENDS = tuple(SUFFIXES)

MOST_RANGES = 64  # of an Accept header; further ranges are ignored
_USUAL = (None, "", "*/*", JSON)
_QUALITY = re.compile(r"q\s*=\s*([01](?:\.[0-9]{0,3})?)")


def is_usual(environ: WSGIEnvironment) -> bool:
    """Return whether request and response are plain JSON, as with nearly all clients, so that no negotiation is needed.
    """
    return (environ.get("HTTP_ACCEPT") in _USUAL and not environ["PATH_INFO"].endswith(_ENDS)
            and (environ.get("CONTENT_TYPE") == JSON or environ["REQUEST_METHOD"] not in WITH_BODY))


def chosen(environ: WSGIEnvironment, offered: tuple[str, ...] = MEDIA_TYPES) -> str:
    """Return the media type of the response. A known suffix is removed from the request's path."""
    path = environ["PATH_INFO"]
    for suffix, kind in SUFFIXES.items():
        if path.endswith(suffix):
            environ["PATH_INFO"] = path.removesuffix(suffix)
            return kind
    return accepted(environ.get("HTTP_ACCEPT") or "*/*", offered)


def accepted(accept: str, offered: tuple[str, ...] = MEDIA_TYPES) -> str:
    """Return the best offered media type: by quality, then by length of the mask, then by order of the offer."""
    ranges = list(_ranges(accept))
    refused = {mask for mask, quality in ranges if not quality}
    fitting = [(quality, len(mask), -place, kind) for mask, quality in ranges if quality
               for place, kind in enumerate(offered) if kind not in refused and _fits(mask, kind)]
    return max(fitting)[-1] if fitting else JSON


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Yield (mask, quality) pairs, in lower case."""
    for part in accept.lower().split(",", MOST_RANGES)[:MOST_RANGES]:
        mask, *parameters = (piece.strip() for piece in part.split(";"))
        found = next((match for match in map(_QUALITY.fullmatch, parameters) if match), None)
        yield mask, min(float(found[1]), 1.0) if found else 1.0


def _fits(mask: str, kind: str) -> bool:
    return mask in (kind, "*/*") or (mask.endswith("/*") and kind.startswith(mask[:-1]))
