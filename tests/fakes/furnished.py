"""Databases of clouds that are furnished already: hosts registered, a flavor and a network made.

To furnish a small cloud takes most of the time of a test in one: three hosts that register and report are as many
statements as ten servers. Its rows are the same each time, so they are written once a process, and copied.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SCHEMAS = ("api", "cell")


class Furnished(NamedTuple):
    """``folder`` has both databases; ``told`` is what those heard who are told of changes, list by list."""

    folder: Path
    calls: tuple[tuple[Any, ...], ...]


#: (folder of the empty schemas, the cloud's kind and hosts) -> what a cloud with these has at first.
_KEPT: dict[tuple[Path, tuple[str, ...]], Furnished] = {}


def of(templates: Path, kind: Sequence[str]) -> Furnished | None:
    return _KEPT.get((templates, tuple(kind)))


def keep(folder: Path, templates: Path, kind: Sequence[str], calls: Iterable[Sequence[Any]]) -> None:
    """Copy the databases of a new cloud in ``folder``, without its conductor: each has one of its own."""
    (kept := templates / "-".join(["furnished", *kind])).mkdir()
    for name in SCHEMAS:
        with (contextlib.closing(sqlite3.connect(folder / name)) as made,
              contextlib.closing(sqlite3.connect(kept / name)) as copy):
            made.backup(copy)
            if name == "cell":
                copy.execute("DELETE FROM runners")
                copy.commit()
    _KEPT[templates, tuple(kind)] = Furnished(kept, tuple(map(tuple, calls)))
