"""Environments of our own package, a release each, and the links to the active one and to the one before it.

Programs are started through the link, and run from where it leads to: a daemon that runs keeps its files when the link
is switched. A link is switched by a rename; what is interrupted may be done again.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

ACTIVE, PREVIOUS = "nova", "nova.previous"
FORMER = "nova-former"  # what was a directory called `nova`, before there were links
PREFIX = "nova-"  # of the environments' names
DIST_INFO = "lib/python3*/site-packages/nova_iaas-*.dist-info"
UNITS = "share/nova/etc/systemd"


@dataclass(frozen=True)
class Releases:
    """Those below ``venvs``. Who changes them holds the lock of installations."""

    venvs: Path

    @property
    def active(self) -> str:
        """The name of its directory; empty where there is none."""
        return self._leads_to(ACTIVE)

    @property
    def previous(self) -> str:
        """What `upgrade --back` goes to; empty where there is none."""
        return self._leads_to(PREVIOUS)

    def described(self, name: str) -> str:
        """Like "0.2.0 (nova-1a2b3c4d)": two checkouts may have the same number."""
        found = next(self.venvs.glob(f"{name}/{DIST_INFO}"), None)
        number = found.name.removesuffix(".dist-info").partition("-")[2] if found else "unknown"
        return f"{number} ({name})"

    def unit(self, name: str) -> Path:
        """The active release's unit of that name; older ones have brought none."""
        return self.venvs / ACTIVE / UNITS / f"{name}.service"

    def activate(self, name: str) -> None:
        """Lead the link there. What was active before becomes the previous one."""
        before = self._settled()
        if before not in ("", name):
            self._lead(PREVIOUS, before)
        self._lead(ACTIVE, name)

    def remove_older(self) -> None:
        """All but the active and the previous one, and those that a process runs from."""
        for path in self.venvs.glob(f"{PREFIX}*"):
            if path.name not in (self.active, self.previous) and not _runs_from(path):
                shutil.rmtree(path)

    def go_back(self) -> None:
        """Lead the link to the previous one, which stays the previous one: another stack may go back, too."""
        self._lead(ACTIVE, self.previous)

    def _settled(self) -> str:
        """The active one's name, once the former directory has given its place to a link."""
        place, former = self.venvs / ACTIVE, self.venvs / FORMER
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(former, ignore_errors=True)
            shutil.move(place, former)  # a copy where the file system cannot rename it
        if not place.is_symlink() and former.is_dir():
            self._lead(ACTIVE, FORMER)
        return self.active

    def _leads_to(self, link: str) -> str:
        path = self.venvs / link
        return path.resolve().name if path.is_dir() else ""

    def _lead(self, link: str, name: str) -> None:
        coming = self.venvs / f".{link}.coming"
        coming.unlink(missing_ok=True)
        coming.symlink_to(name)
        coming.rename(self.venvs / link)


def _runs_from(environment: Path) -> bool:
    """Whether a process was started from there: another stack's daemons may not have been restarted yet."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            if f"{environment}/".encode() in path.read_bytes():
                return True
    return False
