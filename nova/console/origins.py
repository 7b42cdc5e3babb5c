"""Origin check of a browser's page that opens a console: its Origin against the request's Host. Stateless.

Without it, a page of another site could use a console with a token from the user's cookies (CVE-2015-0259).
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Sequence
from wsgiref.types import WSGIEnvironment

#: A WebSocket's scheme -> the scheme of the page that opens it.
SAME_AS = {"ws": "http", "wss": "https"}


def refusal(environ: WSGIEnvironment, access_url_base: str, allowed: Sequence[str]) -> str | None:
    """Return why this request (a WSGI environment) may not open a console with this base URL; None if it may.

    A request without an Origin is not from a browser. ``allowed``: host names whose pages may open it,
    in addition to the request's host.
    """
    origin = environ.get("HTTP_ORIGIN")
    if origin is None:
        return None
    scheme, host = _split(origin)
    if not scheme or not host:
        return "The page that requested this console does not state its origin."
    own = host_of(environ.get("HTTP_HOST", ""))
    if not own or host not in (own, *(name.strip().strip("[]").lower() for name in allowed)):
        return "A page of another site requested this console. An administrator can allow the site in " \
               "[console]allowed_origins."
    wanted, _ = _split(access_url_base)  # a proxy's header with the scheme can be forged: the page's own scheme counts
    if _plain(scheme) != _plain(wanted):
        return "This console's address has another scheme (http or https) than the page that requested it."
    return None


def host_of(header: str) -> str:
    """Return the name or address in a Host header, without port and brackets; empty if the header is malformed."""
    return _split(f"//{header.strip()}")[1] if "," not in header else ""


def _plain(scheme: str) -> str:
    return SAME_AS.get(scheme, scheme)


def _split(url: str) -> tuple[str, str]:
    """Return (scheme, host), in lower case; empty ones for a malformed URL."""
    with contextlib.suppress(ValueError):
        parts = urllib.parse.urlsplit(url)
        return parts.scheme.lower(), (parts.hostname or "").lower()
    return "", ""
