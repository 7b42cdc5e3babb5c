"""Browser pages of consoles for an unprivileged user: from Debian's packages, or from npm's, in the user's cache.

Without them, serial consoles use the plain terminal of nova.console, and screens show what to install.
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
FOLDER = "-".join(package.rpartition("@")[2] for package in PACKAGES)  # other versions have another directory
FETCH_S = 60  # most seconds that a start waits for npm
AGAIN_S = 86400  # seconds between attempts after a failure of npm
#: Runs no scripts of packages; npm only contacts the registry.
NPM = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--no-package-lock",
       "--fetch-retries=1", "--fetch-timeout=15000", "--loglevel=error")


class ConsolePages(NamedTuple):
    """Directories for [DEFAULT]web and [console]xterm_path; empty: the options' defaults. ``lacks``: the error of npm;
    empty: npm succeeded or did not run."""

    web: str = ""
    xterm_path: str = ""
    lacks: str = ""


def find(cache: Path | None = None, screens: str = kinds.NOVNC.web, xterm: str = terminal.DEBIAN,
         modules: str = terminal.MODULES) -> ConsolePages:
    """Find the pages, and fetch pages that Debian's packages do not provide. Never fails: pages are optional."""
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
    """Return the user's cache of nova-all, as in bin/nova-all (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):  # no home
        return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "nova-all"
    return Path(tempfile.gettempdir()) / f"nova-all-{os.getuid()}"


def _has_terminal(xterm: str, modules: str) -> bool:
    with contextlib.suppress(terminal.NoTerminal):
        terminal.script(xterm, modules)
        return True
    return False


def _fetch(folder: Path) -> str:
    """Install the packages into ``folder`` with npm, if npm exists; return its error, or an empty text."""
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
        return f"they cannot be stored in {folder.parent}: {error.strerror}"
    return f"npm could not fetch them ({reason})" if reason else ""


def _install(npm: str, folder: Path) -> str:
    """Return npm's error, or an empty text. Several starts may do this; the first to finish sets the result. Raises
    OSError."""
    sys.stderr.write(f"nova-all: fetching the pages of consoles with npm, once, into {folder} ...\n")
    coming = tempfile.mkdtemp(prefix=".console-pages-", dir=folder.parent)
    try:
        SystemRunner(FETCH_S).run([npm, *NPM, f"--prefix={coming}", *PACKAGES], environment=os.environ)
        with contextlib.suppress(OSError):  # another start finished first
            os.rename(coming, folder)
        return "" if folder.is_dir() else f"{folder} could not be created"
    except errors.host.CommandFailed as error:
        return str(error.data["reason"]).splitlines()[0]
    finally:
        shutil.rmtree(coming, ignore_errors=True)
