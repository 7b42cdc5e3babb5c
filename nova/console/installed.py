"""The pages of a proxy: those of an installed library, and nova's own as a fallback.

A proxy starts without the library, too. Without xterm.js, serial consoles have nova's plain terminal. With only noVNC's
library (npm's package), screens have nova's own page. Without any library, the page shows which package to install.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from nova.console import own_pages, terminal
from nova.console.kinds import ConsoleKind
from nova.console.own_pages import Asset
from nova.console.static import StaticFiles

LIBRARY = os.path.join("core", "rfb.js")  # noVNC's own module, with or without its pages
#: Name of the kind's default directory -> the packages with its pages.
INSTALLS = {"novnc": "Debian's package novnc, or the npm package @novnc/novnc",
            "spice-html5": "Debian's package spice-html5"}


class ProxyPages(NamedTuple):
    """The pages of a proxy. ``files``: the library's directory; None: it does not exist. ``own``: assets under
    :data:`own_pages.OWN`, by name. ``page``: nova's own entry page; None: the library's. ``lacks``: the missing
    software and the packages that provide it; empty: nothing is missing."""

    files: StaticFiles | None = None
    own: Mapping[str, Asset] = {}
    page: bytes | None = None
    lacks: str = ""


def pages(kind: ConsoleKind, web: str | None, xterm_path: str, modules: str = terminal.MODULES) -> ProxyPages:
    """Find the files that the proxy serves. ``web``: the directory of pages, if an option names one. ``xterm_path``:
    the directory of xterm.js; ``modules``: the directory of its modules."""
    if not kind.web:
        return _serial(xterm_path, modules)
    folder = web or kind.web
    own = own_pages.assets("why.js", "session.js")
    if not os.path.isdir(folder):
        return ProxyPages(None, own, None, f"the directory {folder} with its pages does not exist: install "
                          f"{INSTALLS[os.path.basename(kind.web)]}, or name a directory with --web or [DEFAULT]web")
    if any(os.path.exists(os.path.join(folder, page)) for page in kind.entries):
        return ProxyPages(StaticFiles(folder), own)
    if os.path.exists(os.path.join(folder, LIBRARY)):
        return ProxyPages(StaticFiles(folder), own | own_pages.assets("screen.js", "screen.css"),
                          own_pages.package("screen.html"))
    return ProxyPages(StaticFiles(folder), own, None, f"{folder} ([DEFAULT]web) has none of the usual pages "
                      f"({', '.join(kind.entries)})")


def _serial(xterm_path: str, modules: str) -> ProxyPages:
    own = own_pages.assets("why.js", "serial.js", "serial.css")
    page = own_pages.package("serial.html")
    try:
        script, style = terminal.script(xterm_path, modules), terminal.style(xterm_path, modules)
    except terminal.NoTerminal as missing:
        plain = {"terminal.js": own_pages.package("plain.js"), "terminal.css": own_pages.package("plain.css")}
        return ProxyPages(None, own | _named(plain), page, f"a plain terminal (text and colours) is used: {missing}")
    return ProxyPages(None, own | _named({"terminal.js": script, "terminal.css": style}), page)


def _named(contents: Mapping[str, bytes]) -> dict[str, Asset]:
    return {name: own_pages.asset(name, content) for name, content in contents.items()}
