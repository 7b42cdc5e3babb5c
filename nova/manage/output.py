"""Output of ``nova-manage``: lines, tables, JSON and private files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from nova import failures


def say(text: str = "") -> None:
    """Write a line to standard output."""
    sys.stdout.write(text + "\n")


def say_now(text: str = "") -> None:
    """Write a line and flush it, for long commands: a reader of a pipe sees each line immediately."""
    say(text)
    sys.stdout.flush()


def write_json(found: object) -> int:
    """Print wire values, or lists and mappings of them, as one JSON document; times as ISO 8601 (UTC). Return the exit
    status 0."""
    say(json.dumps(msgspec.to_builtins(_whole(found)), indent=2))
    return 0


def _whole(found: object) -> object:
    """Return the value with all fields, including those with default values, which messages omit."""
    if isinstance(found, msgspec.Struct):
        return {name: _whole(getattr(found, name)) for name in found.__struct_fields__}
    if isinstance(found, Mapping):
        return {str(key): _whole(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_whole(value) for value in found]
    return found


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with columns as wide as their widest cell."""
    cells = [list(map(str, headings)), *[["" if cell is None else str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def framed(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table like OpenStack tools, for commands whose output scripts split at ``|``: a rule of ``+`` and ``-``,
    the headings, a rule, one line for each row, a rule. Cells are centred; empty cells are blanks."""
    cells = [list(map(str, headings)), *[["" if cell is None else str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    rule = "+" + "".join(f"{'-' * (width + 2)}+" for width in widths)
    lines = ["| " + " | ".join(cell.center(width) for cell, width in zip(row, widths, strict=True)) + " |"
             for row in cells]
    for line in (rule, lines[0], rule, *lines[1:], rule):
        say(line)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can access, from its creation on."""
    with _created(path) as file:
        file.write(text)


@contextlib.contextmanager
def private_file(path: Path) -> Iterator[TextIO]:
    """Provide a file that only its owner can access, and that gets its name at the end. If the block fails, an
    earlier file stays. Raises OSError before the block if the directory is missing or cannot be written."""
    coming = path.with_name(f".{path.name}.coming")
    with failures.on_failure(lambda: coming.unlink(missing_ok=True), on=BaseException):
        with _created(coming) as file:
            yield file
        coming.rename(path)


def _created(path: Path) -> TextIO:
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
