"""What git says of the checkout. Each answer is empty where there is no history, or a part of it only."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(top: Path, *words: str) -> str:
    """Its answer; nothing where it has none."""
    try:
        return subprocess.run(["git", *words], cwd=top, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def is_cut_off(top: Path) -> bool:
    """A shallow clone: the number of its commits says nothing."""
    return git(top, "rev-parse", "--is-shallow-repository") == "true"


def number(top: Path) -> int | None:
    """How many commits lead to this one, it included."""
    return None if is_cut_off(top) else int(git(top, "rev-list", "--count", "HEAD") or 0) or None


def commit(top: Path) -> str:
    return git(top, "rev-parse", "--short=12", "HEAD")


def is_changed(top: Path, besides: str) -> bool:
    """Whether files differ from the commit's, ``besides`` this one."""
    return bool(git(top, "status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){besides}"))


def ancestors(top: Path, count: int) -> set[str]:
    """The last commits that lead to this one, in the form of ``commit``."""
    return {one[:12] for one in git(top, "rev-list", f"--max-count={count}", "HEAD").split()}
