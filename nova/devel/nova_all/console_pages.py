"""The browser pages of consoles for an ordinary user: Debian's packages, else npm's, kept in the user's cache.

With neither, serial consoles have the plain terminal of nova.console, and screens say what to install.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from nova import errors
from nova.console import kinds, terminal
from nova.privileged.runner import SystemRunner

PACKAGES = ("@novnc/novnc@1.7.0", "@xterm/xterm@6.0.0")
FOLDER = "-".join(package.rpartition("@")[2] for package in PACKAGES)  # of other versions there is another folder
FETCH_S = 60  # as long as a start waits for npm, at most
AGAIN_S = 86400  # seconds until npm is asked again after it failed
#: No scripts of packages are run, and npm asks nobody but the registry.
NPM = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--no-package-lock",
       "--fetch-retries=1", "--fetch-timeout=15000", "--loglevel=error")


class ConsolePages(NamedTuple):
    """Directories for [DEFAULT]web and [console]xterm_path; empty: the options' defaults. ``lacks``: why npm could not
    fetch them; empty: it did, or was not asked."""

    web: str = ""
    xterm_path: str = ""
    lacks: str = ""


def find(cache: Path | None = None, screens: str = kinds.NOVNC.web, xterm: str = terminal.DEBIAN,
         modules: str = terminal.MODULES) -> ConsolePages:
    """Find the pages, and fetch what is not in the directories of Debian's packages. Never fails: pages are optional.
    """
    wants_screens, wants_terminal = not os.path.isdir(screens), not _has_terminal(xterm, modules)
    if not wants_screens and not wants_terminal:
        return ConsolePages()
    folder = (cache or user_cache()) / f"console-pages-{FOLDER}"
    lacks = "" if folder.is_dir() else _fetch(folder)
    if not folder.is_dir():
        return ConsolePages(lacks=lacks)
    return ConsolePages(str(folder / "node_modules" / "@novnc" / "novnc") if wants_screens else "",
                        str(folder / "node_modules" / "@xterm" / "xterm") if wants_terminal else "")


def user_cache() -> Path:
    """The user's cache of nova-all, as bin/nova-all has it (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):  # no home
        return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "nova-all"
    return Path(tempfile.gettempdir()) / f"nova-all-{os.getuid()}"


def _has_terminal(xterm: str, modules: str) -> bool:
    try:
        terminal.script(xterm, modules)
    except terminal.NoTerminal:
        return False
    return True


def _fetch(folder: Path) -> str:
    """Let npm install the packages as ``folder``, where there is npm; why it could not, or empty."""
    npm = shutil.which("npm")
    if npm is None:
        return ""
    failed = folder.with_name(f"{folder.name}.failed")
    with contextlib.suppress(OSError):
        if time.time() - failed.stat().st_mtime < AGAIN_S:
            return f"npm could not fetch them ({failed.read_text()}); remove {failed} to try again"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        reason = _install(npm, folder)
        if reason:
            failed.write_text(reason)
    except OSError as error:
        return f"they cannot be kept in {folder.parent}: {error.strerror}"
    return f"npm could not fetch them ({reason})" if reason else ""


def _install(npm: str, folder: Path) -> str:
    """Why npm failed, or empty. Another start may do the same: the first that is done counts. OSError."""
    sys.stderr.write(f"nova-all: fetching the pages of consoles with npm, once, into {folder} ...\n")
    coming = tempfile.mkdtemp(prefix=".console-pages-", dir=folder.parent)
    try:
        SystemRunner(FETCH_S).run([npm, *NPM, f"--prefix={coming}", *PACKAGES], environment=os.environ)
        with contextlib.suppress(OSError):  # another start was first
            os.rename(coming, folder)
        return "" if folder.is_dir() else f"{folder} could not be created"
    except errors.host.CommandFailed as error:
        return str(error.data["reason"]).splitlines()[0]
    finally:
        shutil.rmtree(coming, ignore_errors=True)
