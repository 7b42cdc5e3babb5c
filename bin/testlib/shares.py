"""Which process of a part has which of its files, and in which mode; the seed, which says what a
sample has; and what changed, which needs no sample."""

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
    if _git(top, "rev-parse", "--is-shallow-repository") == "true":
        return int(_git(top, "log", "-1", "--format=%ct") or 86400) // 86400
    return int(_git(top, "rev-list", "--count", "HEAD") or 1)


def changed_in(top: Path) -> list[str]:
    """Files that differ from where the branch left `origin/main`; where it is that, or there is none, those of the last
    commit. What is not committed counts."""
    base = _git(top, "merge-base", "HEAD", "origin/main")
    if base == _git(top, "rev-parse", "HEAD"):
        base = ""
    return _git(top, "diff", "--name-only", base or "HEAD~1").splitlines()


def _git(top: Path, *words: str) -> str:
    """Its answer; nothing where it has none."""
    try:
        return subprocess.run(["git", *words], cwd=top, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def shares_of(part: Part, top: Path, seed: int, long: bool) -> list[Share]:
    """A part's files as its processes get them."""
    files = sorted(str(path.relative_to(top)) for folder in part.folders for path in (top / folder).rglob("test_*.py"))
    if part.beside:
        return [Share([file for file in files if file not in part.beside]),
                Share([file for file in part.beside if file in files])]
    green = [file for file in files if file in part.green or file.startswith(tuple(f"{one}/" for one in part.green))]
    both = green if long else green[seed % GREEN_NATIVE_IN::GREEN_NATIVE_IN]
    native = [file for file in files if file not in green]
    plain = [Share(native[number::part.workers]) for number in range(part.workers)]
    plain += [Share(both)] if both else []  # they wait, and would make one of the others the last by far
    return plain + [Share(green[number::GREEN_WORKERS], GREEN) for number in range(GREEN_WORKERS if green else 0)]
