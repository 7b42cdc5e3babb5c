"""Which process of a part has which of its files, and in which mode; the seed, which says what a
sample has; and what changed, which needs no sample."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from testlib.history import git, is_cut_off
from testlib.parts import GREEN_NATIVE_IN, GREEN_WORKERS, Part
from testlib.turns import Place, places

NATIVE, GREEN = "threads", "eventlet"  # values of NOVA_CONCURRENCY
#: Tests of what the core does without, and of bin/stack.
EXTRAS = ("tests/unit/legacy/", "tests/unit/devel/", "tests/unit/stack/")


class Share(NamedTuple):
    """The files of one process, and the mode of its threads."""

    files: list[str]
    mode: str = NATIVE
    turns: tuple[Place, ...] = ()  # of the part, that all the files here are
    core: bool = False  # all files are tests of the core, which does without `nova.legacy` and `nova.devel`


def seed_of(top: Path) -> int:
    """The number of commits up to this one: one commit has one verdict, and the next has the next samples. Where the
    history is cut off, the days up to the commit; 1 where there is none."""
    if is_cut_off(top):
        return int(git(top, "log", "-1", "--format=%ct") or 86400) // 86400
    return int(git(top, "rev-list", "--count", "HEAD") or 1)


def changed_in(top: Path) -> list[str]:
    """Files that differ from where the branch left `origin/main`; where it is that, or there is none, those of the last
    commit. What is not committed counts."""
    base = git(top, "merge-base", "HEAD", "origin/main")
    if base == git(top, "rev-parse", "HEAD"):
        base = ""
    return git(top, "diff", "--name-only", base or "HEAD~1").splitlines()


def shares_of(part: Part, top: Path, seed: int, long: bool) -> list[Share]:
    """A part's files as its processes get them."""
    files = sorted(str(path.relative_to(top)) for folder in part.folders for path in (top / folder).rglob("test_*.py"))
    if part.beside:
        return [Share([file for file in files if file not in part.beside]),
                Share([file for file in part.beside if file in files])]
    green = [file for file in files if file in part.green or file.startswith(tuple(f"{one}/" for one in part.green))]
    both = green if long else green[seed % GREEN_NATIVE_IN::GREEN_NATIVE_IN]
    shares = _apart([file for file in files if file not in green], part.workers, NATIVE)
    if both:  # they wait, and would make one of the others the last by far
        shares.append(Share(both, turns=places(GREEN_NATIVE_IN, seed, long), core=all(map(is_of_core, both))))
    return shares + _apart(green, GREEN_WORKERS, GREEN)


def _apart(files: list[str], workers: int, mode: str) -> list[Share]:
    """Those of the core in so many processes, all others in one more: the core's have nothing else to import."""
    core, others = [file for file in files if is_of_core(file)], [file for file in files if not is_of_core(file)]
    found = [Share(core[number::workers], mode, core=True) for number in range(workers)] + [Share(others, mode)]
    return [one for one in found if one.files]


def is_of_core(file: str) -> bool:
    """Whether it tests a package of the core: not one of `EXTRAS`, and not the checkout as a whole."""
    return file.startswith("tests/unit/") and file.count("/") > 2 and not file.startswith(EXTRAS)
