"""Console URLs: the proxy's URL with the token in its query. Stateless.

The base URL is the operator's, and all parts of its query are kept unchanged.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_plus

from nova.model.guest.consoles import ConsoleType

TOKEN, PATH = "token", "path"


def access_url(type: ConsoleType, base: str, token: str) -> str:
    """Return the URL of one console. noVNC forwards only its parameter ``path``, so the token is inside that."""
    base, mark, fragment = base.partition("#")
    page, _, query = base.partition("?")
    parts = [part for part in query.split("&") if part and _name(part) != TOKEN]
    parts = _in_path(parts, token) if type is ConsoleType.NOVNC else [*parts, f"{TOKEN}={quote(token, safe='')}"]
    return f"{page}?{'&'.join(parts)}{mark}{fragment}"


def _in_path(parts: list[str], token: str) -> list[str]:
    """Return the pairs with the token after the operator's ``path`` (``websockify``, or empty)."""
    own = next((unquote_plus(part.partition("=")[2]) for part in parts if _name(part) == PATH), "")
    path = f"{own}{'&' if '?' in own else '?'}{TOKEN}={token}"
    return [*[part for part in parts if _name(part) != PATH], f"{PATH}={quote(path, safe='')}"]


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0])
