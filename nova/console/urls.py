"""Where a user's program finds a console: the proxy's address with the token in its query. Pure.

The base is the operator's, and all that stands in its query is kept as it was written.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_plus

from nova.model.guest.consoles import ConsoleType

TOKEN, PATH = "token", "path"


def access_url(type: ConsoleType, base: str, token: str) -> str:
    """The address of one console. noVNC hands on nothing but its parameter ``path``, so the token stands in that."""
    base, mark, fragment = base.partition("#")
    page, _, query = base.partition("?")
    parts = [part for part in query.split("&") if part and _name(part) != TOKEN]
    parts = _in_path(parts, token) if type is ConsoleType.NOVNC else [*parts, f"{TOKEN}={quote(token, safe='')}"]
    return f"{page}?{'&'.join(parts)}{mark}{fragment}"


def _in_path(parts: list[str], token: str) -> list[str]:
    """The pairs with the token behind what the operator's ``path`` says (``websockify``, or nothing)."""
    own = next((unquote_plus(part.partition("=")[2]) for part in parts if _name(part) == PATH), "")
    path = f"{own}{'&' if '?' in own else '?'}{TOKEN}={token}"
    return [*[part for part in parts if _name(part) != PATH], f"{PATH}={quote(path, safe='')}"]


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0])
