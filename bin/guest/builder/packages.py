"""Debian packages: unpacked into a cache for the guest, installed only if the builder itself runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from guest.builder.shared import BuildError, run, say

KERNEL_PACKAGE = "linux-image-cloud-amd64"
HOST_TOOLS = {"qemu-img": "qemu-utils", "mke2fs": "e2fsprogs"}
TIME64 = "t64"  # Debian 13's suffix of libraries whose time_t now has 64 bits
CANDIDATE = re.compile(r"^(\S+):\n  Installed: .*\n  Candidate: (?!\(none\))", re.MULTILINE)


class Packages:
    """Debian packages, downloaded and unpacked below a cache directory, but not installed."""

    APT = ("-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3")

    def __init__(self, cache: Path, refresh: bool) -> None:
        self.directory = cache / "packages"
        self.index_is_fresh = False
        if refresh:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.update_index()
        self.directory.mkdir(parents=True, exist_ok=True)

    def update_index(self) -> None:
        say("updating apt's package lists")
        run(["apt-get", *self.APT, "update"])
        self.index_is_fresh = True

    def kernel_package(self) -> str:
        """Return the package that the kernel metapackage depends on now, like linux-image-6.1.0-37-cloud-amd64."""
        kept = sorted(self.directory.glob("linux-image-*-cloud-amd64"))
        if kept:
            return kept[-1].name
        for _ in range(2):
            listed = self._apt_cache("depends", KERNEL_PACKAGE)
            found = re.search(r"Depends: (linux-image-\S+-cloud-amd64)$", listed, re.MULTILINE)
            if found:
                return found[1]
            if not self.index_is_fresh:
                self.update_index()
        raise BuildError(f"apt knows no {KERNEL_PACKAGE}: is this Debian 12 or 13 on amd64, with main enabled?")

    @staticmethod
    def _apt_cache(*words: str) -> str:
        """Run apt-cache and return its output, in English; empty if it fails."""
        environment = {**os.environ, "LC_ALL": "C"}
        return subprocess.run(["apt-cache", *words], capture_output=True, text=True, check=False,
                              env=environment).stdout  # fmt: skip

    def unpacked(self, name: str) -> Path:
        """Return the directory with the package's files; download the package if necessary."""
        if not (self.directory / name).is_dir():
            self.fetch([name])
        return self.directory / name

    def file(self, name: str, path: str) -> Path:
        """Return a file of the package by its path before Debian 13 moved /bin, /sbin and /lib below /usr."""
        top = self.unpacked(name)
        return top / path if (top / path).exists() else top / "usr" / path

    def fetch(self, names: Sequence[str]) -> None:
        missing = [name for name in names if not (self.directory / name).is_dir()]
        if not missing:
            return
        say(f"downloading {', '.join(missing)}")
        with tempfile.TemporaryDirectory(dir=self.directory, prefix=".new-") as scratch:
            self.download(missing, Path(scratch))
            for deb in sorted(Path(scratch).glob("*.deb")):
                name = deb.name.split("_")[0].removesuffix(TIME64)
                run(["dpkg", "-x", deb, Path(scratch) / name])
                (Path(scratch) / name).rename(self.directory / name)

    def download(self, names: Sequence[str], directory: Path) -> None:
        command = ["apt-get", *self.APT, "download"]
        try:
            run([*command, *self._named_here(names)], cwd=directory)
        except BuildError:  # lists are missing, or name versions that the mirror has removed
            if self.index_is_fresh:
                raise
            self.update_index()
            run([*command, *self._named_here(names)], cwd=directory)

    def _named_here(self, names: Sequence[str]) -> list[str]:
        """Return the names of the packages in this release of Debian."""
        renamed = {name: f"{name}{TIME64}" for name in names}
        known = set(CANDIDATE.findall(self._apt_cache("policy", *names, *renamed.values())))
        return [new if new in known and name not in known else name for name, new in renamed.items()]


def install_host_tools() -> None:
    missing = sorted({package for tool, package in HOST_TOOLS.items() if not shutil.which(tool)})
    if not missing:
        return
    say(f"installing {', '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120"]
    install = [*apt, "install", "-y", "--no-install-recommends", *missing]
    try:
        run(install, env=environment)
    except BuildError:
        run([*apt, "update"])
        run(install, env=environment)
