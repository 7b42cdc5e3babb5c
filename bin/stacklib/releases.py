"""Environments of nova's package, one for each release, and the links to the active and the previous one.

Programs are started through the link, but run from its target: a running daemon keeps its files when the link changes.
A link is changed by a rename; an interrupted change can be repeated.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

ACTIVE, PREVIOUS = "nova", "nova.previous"
FORMER = "nova-former"  # the directory `nova` of versions without links, renamed
PREFIX = "nova-"  # of the environments' names
DIST_INFO = "lib/python3*/site-packages/nova_iaas-*.dist-info"
UNITS = "share/nova/etc/systemd"


@dataclass(frozen=True)
class Releases:
    """The releases below ``venvs``. A caller that changes them must hold the installation lock."""

    venvs: Path

    @property
    def active(self) -> str:
        """Name of the active release's directory; empty if there is none."""
        return self._leads_to(ACTIVE)

    @property
    def previous(self) -> str:
        """Name of the directory that `upgrade --back` returns to; empty if there is none."""
        return self._leads_to(PREVIOUS)

    def described(self, name: str) -> str:
        """Return a release's version and name, like "0.2.0 (nova-1a2b3c4d)": checkouts may have the same version."""
        found = next(self.venvs.glob(f"{name}/{DIST_INFO}"), None)
        number = found.name.removesuffix(".dist-info").partition("-")[2] if found else "unknown"
        return f"{number} ({name})"

    def unit(self, name: str) -> Path:
        """Return the path of the active release's systemd unit; older releases have no units."""
        return self.venvs / ACTIVE / UNITS / f"{name}.service"

    def activate(self, name: str) -> None:
        """Point the active link to a release. The release that was active becomes the previous one."""
        before = self._settled()
        if before not in ("", name):
            self._lead(PREVIOUS, before)
        self._lead(ACTIVE, name)

    def remove_older(self) -> None:
        """Remove all releases except the active one, the previous one and releases that a process runs from."""
        for path in self.venvs.glob(f"{PREFIX}*"):
            if path.name not in (self.active, self.previous) and not _runs_from(path):
                shutil.rmtree(path)

    def go_back(self) -> None:
        """Point the active link to the previous release, which stays the previous one, so another stack can go back."""
        self._lead(ACTIVE, self.previous)

    def _settled(self) -> str:
        """Return the active release's name, after a directory `nova` of old versions was replaced by a link."""
        place, former = self.venvs / ACTIVE, self.venvs / FORMER
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(former, ignore_errors=True)
            shutil.move(place, former)  # copies it if the file system cannot rename it
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
    """Return whether a process runs from an environment, such as a daemon of another stack before its restart."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has just ended
            if f"{environment}/".encode() in path.read_bytes():
                return True
    return False
