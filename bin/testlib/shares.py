"""Assignment of a part's files to processes and modes; the seed, which selects the samples; and the changed files,
which always run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from testlib.history import git, is_cut_off
from testlib.parts import GREEN_NATIVE_IN, GREEN_WORKERS, Part
from testlib.turns import Place, places

NATIVE, GREEN = "threads", "eventlet"  # values of NOVA_CONCURRENCY
#: Tests of packages that are not part of the core, and of bin/stack.
EXTRAS = ("tests/unit/legacy/", "tests/unit/devel/", "tests/unit/stack/")


class Share(NamedTuple):
    """The files of one process, and the mode of its threads."""

    files: list[str]
    mode: str = NATIVE
    turns: tuple[Place, ...] = ()  # turns of the part to which all of the files belong
    core: bool = False  # all files are tests of the core, which does not need `nova.legacy` and `nova.devel`


def seed_of(top: Path) -> int:
    """Return the number of commits up to this one: each commit has one result, and the next has the next samples.

    In a shallow clone, return the days up to the commit; without a history, 1.
    """
    if is_cut_off(top):
        return int(git(top, "log", "-1", "--format=%ct") or 86400) // 86400
    return int(git(top, "rev-list", "--count", "HEAD") or 1)


def changed_in(top: Path) -> list[str]:
    """Return the files that differ from the branch's merge base with `origin/main`, with uncommitted changes. If the
    branch has no commits of its own, or no base, return the changes since the last commit's parent."""
    base = git(top, "merge-base", "HEAD", "origin/main")
    if base == git(top, "rev-parse", "HEAD"):
        base = ""
    return git(top, "diff", "--name-only", base or "HEAD~1").splitlines()


def shares_of(part: Part, top: Path, seed: int, long: bool) -> list[Share]:
    """Return the shares of a part: the files of each of its processes."""
    files = sorted(str(path.relative_to(top)) for folder in part.folders for path in (top / folder).rglob("test_*.py"))
    if part.beside:
        apart = {file for group in part.beside for file in group}
        return [Share([file for file in files if file not in apart]),
                *[Share([file for file in group if file in files]) for group in part.beside]]
    green = [file for file in files if file in part.green or file.startswith(tuple(f"{one}/" for one in part.green))]
    both = green if long else green[seed % GREEN_NATIVE_IN::GREEN_NATIVE_IN]
    shares = _apart([file for file in files if file not in green], part.workers, NATIVE)
    if both:  # a separate share: they wait a lot, and would delay one of the others
        shares.append(Share(both, turns=places(GREEN_NATIVE_IN, seed, long), core=all(map(is_of_core, both))))
    return shares + _apart(green, GREEN_WORKERS, GREEN)


def _apart(files: list[str], workers: int, mode: str) -> list[Share]:
    """Return shares with the core's files in `workers` processes, and all others in one more: in the core's processes,
    only the core can be imported."""
    core, others = [file for file in files if is_of_core(file)], [file for file in files if not is_of_core(file)]
    found = [Share(core[number::workers], mode, core=True) for number in range(workers)] + [Share(others, mode)]
    return [one for one in found if one.files]


def is_of_core(file: str) -> bool:
    """Return whether a file tests a package of the core: not one of `EXTRAS`, and not the checkout as a whole."""
    return file.startswith("tests/unit/") and file.count("/") > 2 and not file.startswith(EXTRAS)
