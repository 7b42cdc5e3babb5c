"""Static files of a web directory only: no listing, no path outside it, no redirect."""

from __future__ import annotations

import contextlib
import email.utils
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

#: Media types by suffix. Browsers run modules only with JavaScript's media type.
TYPES = {
    ".css": "text/css; charset=utf-8", ".gif": "image/gif", ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon", ".jpg": "image/jpeg", ".js": "text/javascript; charset=utf-8",
    ".json": "application/json", ".map": "application/json", ".mjs": "text/javascript; charset=utf-8",
    ".mp3": "audio/mpeg", ".oga": "audio/ogg", ".ogg": "audio/ogg", ".png": "image/png", ".svg": "image/svg+xml",
    ".ttf": "font/ttf", ".txt": "text/plain; charset=utf-8", ".wasm": "application/wasm", ".webp": "image/webp",
    ".woff": "font/woff", ".woff2": "font/woff2",
}
OTHER = "application/octet-stream"

#: Directories that packages' symlinks may point to: world-readable files, such as libraries of another package.
SHARED = ("/usr/share", "/usr/lib/nodejs")
PART = 65536


class Found(NamedTuple):
    """A file that may be served, open for reading."""

    type: str
    size: int
    etag: str
    modified: str  # as an HTTP date
    number: int  # of the open file

    def unchanged(self, if_none_match: str | None, if_modified_since: str | None) -> bool:
        """Return whether the client's copy is current. The tag takes precedence over the date (RFC 9110, 13.1.3)."""
        if if_none_match is not None:
            known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
            return "*" in known or self.etag in known
        return if_modified_since == self.modified

    def parts(self) -> Iterator[bytes]:
        """Yield the content, then close the file."""
        with os.fdopen(self.number, "rb", buffering=0) as file:
            while part := file.read(PART):
                yield part

    def close(self) -> None:
        os.close(self.number)


class StaticFiles:
    """Files below ``root``. ``beside``: other directories that its symlinks may point to."""

    def __init__(self, root: str, beside: Sequence[str] = SHARED) -> None:
        self.root = os.path.realpath(root)
        self.within = tuple(os.path.join(os.path.realpath(top), "") for top in (root, *beside))

    def find(self, path: str) -> Found | None:
        """Return the file at a request's path (unquoted once, without a leading slash); None if it does not exist."""
        names = path.split("/")
        if any(name.startswith(".") or not name or "\\" in name or "\0" in name for name in names):
            return None
        with contextlib.suppress(OSError, ValueError):
            inner = os.fsdecode(path.encode("latin-1"))
            real = os.path.realpath(os.path.join(self.root, inner), strict=True)
            if not real.startswith(self.within):
                return None
            return _open(real)
        return None


def _open(path: str) -> Found | None:
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode):
        os.close(number)
        return None
    type_ = TYPES.get(os.path.splitext(path)[1].lower(), OTHER)
    return Found(type_, state.st_size, f'"{state.st_mtime_ns:x}-{state.st_size:x}"',
                 email.utils.formatdate(state.st_mtime, usegmt=True), number)
