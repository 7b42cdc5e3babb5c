"""Queries of the checkout's git history. Results are empty without a history or with a shallow one."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(top: Path, *words: str) -> str:
    """Run git and return its output; empty if it fails."""
    try:
        return subprocess.run(["git", *words], cwd=top, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def is_cut_off(top: Path) -> bool:
    """Return whether the clone is shallow: its number of commits is then meaningless."""
    return git(top, "rev-parse", "--is-shallow-repository") == "true"


def number(top: Path) -> int | None:
    """Return the number of commits up to this one, including it; None if it is unknown."""
    return None if is_cut_off(top) else int(git(top, "rev-list", "--count", "HEAD") or 0) or None


def commit(top: Path) -> str:
    return git(top, "rev-parse", "--short=12", "HEAD")


def is_changed(top: Path, besides: str) -> bool:
    """Return whether any file, except ``besides``, differs from the commit."""
    return bool(git(top, "status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){besides}"))


def ancestors(top: Path, count: int) -> set[str]:
    """Return the last commits up to this one, in the form of ``commit``."""
    return {one[:12] for one in git(top, "rev-list", f"--max-count={count}", "HEAD").split()}
