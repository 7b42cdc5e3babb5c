"""The proxies' own pages, and the scripts that they insert into the pages of libraries."""

from __future__ import annotations

import hashlib
import html
import importlib.resources
import re
import string
from typing import NamedTuple

from nova.console import static
from nova.console.kinds import ConsoleKind

#: The path of nova's own scripts and styles, next to a proxy's pages. No package's files begin with a dot.
OWN = ".nova/"

_HEAD = re.compile(rb"<head[^>]*>", re.I)

TITLES = {
    200: "This console's address is incomplete",
    403: "This console cannot be opened",
    404: "This console's address is no longer valid",
    503: "This console cannot be checked now",
}
TITLE = "Page not found"
AGAIN = '<p><a class="again" href="">Try again</a></p>'
HINT = "Console addresses are valid for a short time. Get a new one in the dashboard, or with:"


class Asset(NamedTuple):
    """A script or style of nova, in memory."""

    type: str
    content: bytes
    etag: str


def package(name: str) -> bytes:
    """Return the content of a file that is installed with nova."""
    return importlib.resources.files("nova.console").joinpath("pages", name).read_bytes()


def asset(name: str, content: bytes) -> Asset:
    """Return a file with the media type of its suffix. Raises KeyError for a suffix that is not served."""
    type_ = static.TYPES[name[name.rindex("."):]]
    return Asset(type_, content, f'"{hashlib.sha256(content).hexdigest()[:24]}"')


def assets(*names: str) -> dict[str, Asset]:
    """Return nova's files that are served under :data:`OWN`, by name."""
    return {name: asset(name, package(name)) for name in names}


def with_session(page: bytes, depth: int) -> bytes:
    """Insert nova's scripts into a library's page, before all of its own scripts. ``depth``: folders between it and the
    web directory.

    The scripts' addresses are relative, because a reverse proxy may mount all paths below another one.
    """
    tag = "".join(f'<script src="{"../" * depth}{OWN}{name}"></script>' for name in ("why.js", "session.js")).encode()
    found = _HEAD.search(page)
    at = found.end() if found else 0
    return page[:at] + tag + page[at:]


class Words:
    """Pages with a message."""

    def __init__(self, kind: ConsoleKind) -> None:
        self.kind = kind
        self.template = string.Template(package("error.html").decode())

    def page(self, status: int, words: str) -> bytes:
        """Return the page. ``words``: plain text, which may come from any source."""
        title = TITLES.get(status, TITLE)
        return self.template.substitute(
            title=html.escape(title), words=html.escape(words), again=AGAIN if status == 503 else "",
            hint=HINT, command=html.escape(f"openstack console url show {self.kind.flag} SERVER")).encode()
