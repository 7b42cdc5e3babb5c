"""The text of a guest's serial console. virtlogd writes it, and rotates it: console.log, then .0, .1 ... ever older."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from nova import concurrency

MOST_PARTS = 64  # more than any virtlogd keeps
MOST_BYTES = 4 << 20  # of one answer; QEMU's user can't write the log, but the guest decides what is in it


def tail(log: Path, lines: int | None) -> str | None:
    """The last ``lines`` (all, for None) of a log with its rotated parts; None when there is none."""
    return concurrency.run_in_thread(_tail, log, lines)


def _tail(log: Path, lines: int | None) -> str | None:
    parts, size, found = [], 0, False
    for part in (log, *(log.with_name(f"{log.name}.{number}") for number in range(MOST_PARTS))):
        content = _read_end(part, MOST_BYTES - size)
        if content is None:
            if part != log:  # right after a rotation the newest part may not be there yet
                break
            continue
        found = True
        parts.append(content)
        size += len(content)
        if size >= MOST_BYTES or (lines is not None and _lines(parts) > lines):
            break
    if not found:
        return None
    text = b"".join(reversed(parts)).decode("utf-8", "replace").replace("\r\n", "\n")
    return text if lines is None else _last(text, lines)


def _last(text: str, lines: int) -> str:
    """Line ends are newlines alone: guests print other characters that Python takes for one, too."""
    pieces = text.split("\n")
    unfinished = pieces[-1] != ""
    return "\n".join(pieces[max(0, len(pieces) - lines - (not unfinished)):]) if lines > 0 else ""


def _lines(parts: list[bytes]) -> int:
    return sum(part.count(b"\n") for part in parts)


def _read_end(path: Path, limit: int) -> bytes | None:
    """The last ``limit`` bytes; None when there is no such plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as source:
        facts = os.fstat(source.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return None
        source.seek(max(0, facts.st_size - limit))
        return source.read(limit)
