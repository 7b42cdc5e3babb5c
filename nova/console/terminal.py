"""xterm.js as one script for browsers, from its installed package.

npm's package and older Debian packages contain the script. Debian 12's ``libjs-xterm`` has a file that only references
modules of its sibling ``node-xterm``: this module combines those, each in a function, with a ``require`` of a few
lines. It needs no tool for that, and writes no file.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
from collections.abc import Iterator

SCRIPTS = ("xterm.js", "lib/xterm.js", "dist/xterm.js")
STYLES = ("xterm.css", "css/xterm.css", "dist/xterm.css", "lib/xterm.css")
DEBIAN = "/usr/share/javascript/xterm"  # the default of [console]xterm_path
MODULES = "/usr/share/nodejs/xterm/lib"
ENTRY = "public/Terminal"
MAX_BYTES = 8 << 20

_REQUIRE = re.compile(r"""\brequire\(\s*["'](\.{1,2}/[^"']+)["']\s*\)""")
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.M)

_BEFORE = """(function () {
"use strict";
var parts = {}, made = {};
function get(name) {
  if (!made[name]) { made[name] = { exports: {} }; parts[name](made[name], made[name].exports); }
  return made[name].exports;
}
"""
_AFTER = """window.Terminal = get(%s).Terminal;
}());
"""


class NoTerminal(Exception):
    """Absence of a usable xterm.js: the paths that were searched, and the packages to install."""


def script(path: str, modules: str = MODULES) -> bytes:
    """Return a script that defines ``window.Terminal``. Raises NoTerminal."""
    for name in SCRIPTS:
        text = _read(os.path.join(path, name))
        if text is not None and not _REQUIRE.search(text):
            return text.encode()
    for top in (path, os.path.join(path, "lib"), modules):
        if os.path.isfile(os.path.join(top, f"{ENTRY}.js")):
            return _bundle(top).encode()
    raise NoTerminal(f"no xterm.js in {path} ([console]xterm_path), and no modules of it in {modules}: install "
                     "Debian's libjs-xterm and node-xterm, or the npm package @xterm/xterm")


def style(path: str, modules: str = MODULES) -> bytes:
    """Return xterm's style sheet. Raises NoTerminal."""
    for top in (path, modules):
        for name in STYLES:
            text = _read(os.path.join(top, name))
            if text is not None:
                return text.encode()
    raise NoTerminal(f"no xterm.css in {path} ([console]xterm_path): install Debian's libjs-xterm, or the npm "
                     "package @xterm/xterm")


def _read(path: str) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
        return file.read(MAX_BYTES)
    return None


def _bundle(top: str) -> str:
    """Return a script with every module that the entry needs, by name, and the entry's Terminal. Raises NoTerminal if
    one is missing."""
    done: list[str] = []
    waiting = [ENTRY]
    texts = []
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.append(name)
        text = _read(os.path.join(top, f"{name}.js"))
        if text is None:
            raise NoTerminal(f"{top}/{name}.js is missing: install Debian's node-xterm again")
        waiting += _needs(name, text)
        texts.append(_part(name, text))
    return _BEFORE + "".join(texts) + _AFTER % json.dumps(ENTRY)


def _part(name: str, text: str) -> str:
    body = _REQUIRE.sub(lambda found: f"get({json.dumps(_beside(name, found[1]))})", _SOURCE_MAP.sub("", text))
    return f"parts[{json.dumps(name)}] = function (module, exports) {{\n{body}\n}};\n"


def _needs(name: str, text: str) -> Iterator[str]:
    return (_beside(name, found) for found in _REQUIRE.findall(text))


def _beside(name: str, other: str) -> str:
    """Return the name of the module that ``name`` imports as ``other``."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), other)).removesuffix(".js")

