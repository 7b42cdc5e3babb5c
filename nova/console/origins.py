"""Whether a browser's page may open a console: its Origin against the request's Host. Pure: nothing is remembered.

A page of another site could else use a console whose token it got hold of by the user's cookies (CVE-2015-0259).
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence

from nova.model.base import Json

#: A WebSocket's scheme is that of the page that opens it.
SAME_AS = {"ws": "http", "wss": "https"}


def refusal(environ: Mapping[str, Json], access_url_base: str, allowed: Sequence[str]) -> str | None:
    """Why this request (a WSGI environment) may not open a console whose address begins so; None when it may.

    Without an Origin it is no browser's. ``allowed``: host names whose pages may, beside the request's own host.
    """
    origin = environ.get("HTTP_ORIGIN")
    if origin is None:
        return None
    scheme, host = _split(origin)
    if not scheme or not host:
        return "The page that asked for this console does not say where it is from."
    own = host_of(environ.get("HTTP_HOST", ""))
    if not own or host not in (own, *(name.strip().strip("[]").lower() for name in allowed)):
        return "A page of another site asked for this console. Its administrator can allow it in " \
               "[console]allowed_origins."
    wanted, _ = _split(access_url_base)  # what a proxy in front says of the scheme, anybody can say: the page's counts
    if _plain(scheme) != _plain(wanted):
        return "This console's address begins with another scheme (http or https) than the page that asked for it."
    return None


def host_of(header: str) -> str:
    """The name or address in a Host header, without port and brackets; empty when it is none."""
    return _split(f"//{header.strip()}")[1] if "," not in header else ""


def _plain(scheme: str) -> str:
    return SAME_AS.get(scheme, scheme)


def _split(url: str) -> tuple[str, str]:
    """(scheme, host), in small letters; empty ones when it is no address."""
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme.lower(), (parts.hostname or "").lower()
    except ValueError:
        return "", ""
