"""The pages that are the proxies' own, and what they put into the pages of others."""

from __future__ import annotations

import hashlib
import html
import importlib.resources
import re
import string
from typing import NamedTuple

from nova.console import static
from nova.console.kinds import ConsoleKind

#: Where our own scripts and styles are, beside a proxy's pages. No package's files begin with a dot.
OWN = ".nova/"

_HEAD = re.compile(rb"<head[^>]*>", re.I)

TITLES = {
    200: "This console's address is not whole",
    403: "This console cannot be opened",
    404: "This console's address is not good any more",
    503: "This console cannot be checked now",
}
TITLE = "There is no such page here"
AGAIN = '<p><a class="again" href="">Try again</a></p>'
HINT = "Addresses of consoles are good for a short time. Ask for a new one in the dashboard, or by:"


class Asset(NamedTuple):
    """A script or style of ours, in memory."""

    type: str
    content: bytes
    etag: str


def package(name: str) -> bytes:
    """The content of a file of ours, as it was installed with us."""
    return importlib.resources.files("nova.console").joinpath("pages", name).read_bytes()


def asset(name: str, content: bytes) -> Asset:
    """A file of our own, with the type that its name's ending says. KeyError: an ending that is not served."""
    type_ = static.TYPES[name[name.rindex("."):]]
    return Asset(type_, content, f'"{hashlib.sha256(content).hexdigest()[:24]}"')


def assets(*names: str) -> dict[str, Asset]:
    """Files of ours that are served under :data:`OWN`, by name."""
    return {name: asset(name, package(name)) for name in names}


def with_session(page: bytes, depth: int) -> bytes:
    """Another's page with our scripts, before all scripts of its own. ``depth``: folders it is below the web directory.

    The scripts' addresses are relative: a proxy before us may put all this below a path of its own.
    """
    tag = "".join(f'<script src="{"../" * depth}{OWN}{name}"></script>' for name in ("why.js", "session.js")).encode()
    found = _HEAD.search(page)
    at = found.end() if found else 0
    return page[:at] + tag + page[at:]


class Words:
    """Pages that say something in words."""

    def __init__(self, kind: ConsoleKind) -> None:
        self.kind = kind
        self.template = string.Template(package("error.html").decode())

    def page(self, status: int, words: str) -> bytes:
        """``words``: plain text, which may be anybody's."""
        title = TITLES.get(status, TITLE)
        return self.template.substitute(
            title=html.escape(title), words=html.escape(words), again=AGAIN if status == 503 else "",
            hint=HINT, command=html.escape(f"openstack console url show {self.kind.flag} SERVER")).encode()
