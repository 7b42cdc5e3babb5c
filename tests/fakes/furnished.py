"""Databases of clouds with sample data: registered hosts, a flavor and a network.

The creation of sample data takes most of the time of a test in a small cloud: three hosts that register and report need
as many statements as ten servers. The rows are always the same, so each process writes them once and copies them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SCHEMAS = ("api", "cell")


class Furnished(NamedTuple):
    """A cloud with sample data. ``folder`` has both databases; ``told``: the recorded notifications, by receiver."""

    folder: Path
    calls: tuple[tuple[Any, ...], ...]


#: (folder of the empty schemas, the cloud's kind and hosts) -> the sample data of such a cloud.
_KEPT: dict[tuple[Path, tuple[str, ...]], Furnished] = {}


def of(templates: Path, kind: Sequence[str]) -> Furnished | None:
    return _KEPT.get((templates, tuple(kind)))


def keep(folder: Path, templates: Path, kind: Sequence[str], calls: Iterable[Sequence[Any]]) -> None:
    """Copy the databases of a new cloud in ``folder``, without its conductor: each cloud has its own."""
    (kept := templates / "-".join(["furnished", *kind])).mkdir()
    for name in SCHEMAS:
        with (contextlib.closing(sqlite3.connect(folder / name)) as made,
              contextlib.closing(sqlite3.connect(kept / name)) as copy):
            made.backup(copy)
            if name == "cell":
                copy.execute("DELETE FROM runners")
                copy.commit()
    _KEPT[templates, tuple(kind)] = Furnished(kept, tuple(map(tuple, calls)))
