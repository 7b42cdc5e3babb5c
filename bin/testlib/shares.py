"""Which process of a part has which of its files, and in which mode; and the seed, which says what a sample has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from testlib.parts import GREEN_NATIVE_IN, GREEN_WORKERS, Part

NATIVE, GREEN = "threads", "eventlet"  # values of NOVA_CONCURRENCY


class Share(NamedTuple):
    """The files of one process, and the mode of its threads."""

    files: list[str]
    mode: str = NATIVE


def seed_of(top: Path) -> int:
    """The number of commits up to this one: one commit has one verdict, and the next has the next samples. Where the
    history is cut off, the days up to the commit; 1 where there is none."""
    def git(*words: str) -> str:
        try:
            return subprocess.run(["git", *words], cwd=top, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    if git("rev-parse", "--is-shallow-repository") == "true":
        return int(git("log", "-1", "--format=%ct") or 86400) // 86400
    return int(git("rev-list", "--count", "HEAD") or 1)


def shares_of(part: Part, top: Path, seed: int, long: bool) -> list[Share]:
    """A part's files as its processes get them."""
    files = sorted(str(path.relative_to(top)) for folder in part.folders for path in (top / folder).rglob("test_*.py"))
    if part.beside:
        return [Share([file for file in files if file not in part.beside]),
                Share([file for file in part.beside if file in files])]
    green = [file for file in files if file in part.green or file.startswith(tuple(f"{one}/" for one in part.green))]
    both = green if long else green[seed % GREEN_NATIVE_IN::GREEN_NATIVE_IN]
    native = sorted({*files} - {*green} | {*both})
    plain = [Share(native[number::part.workers]) for number in range(part.workers)]
    return plain + [Share(green[number::GREEN_WORKERS], GREEN) for number in range(GREEN_WORKERS if green else 0)]
