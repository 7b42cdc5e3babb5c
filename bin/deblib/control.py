"""A package's metadata for dpkg: its version, fields and conffiles."""

from __future__ import annotations

import os
import runpy
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stacklib.errors import StackError
from stacklib.layout import CHECKOUT
from stacklib.venvs import PYTHON

from .table import COMMON, Package

#: Distributions have packages of the same names with epochs up to 3, which must never count as upgrades of these.
EPOCH = 10
#: Lower than all versions of these packages, higher than all versions of distributions' packages.
FIRST = f"{EPOCH}:0~"
ABOUT = """\
 A Nova-compatible control plane for virtual machines. All its packages on a
 machine are of one version. Daemons start when the administrator has
 configured and enabled them. What comes first: doc/install.rst of the source.
"""


@dataclass(frozen=True)
class Release:
    """Values that all packages of one build share.

    ``version``: the Debian version with its revision. ``architecture``: dpkg's name. ``python``: version of the
    environment, like (3, 11). ``libvirt``: version of the library that libvirt-python was built for. ``seconds``: time
    of all files, since 1970.
    """

    version: str
    architecture: str
    python: tuple[int, int]
    libvirt: str
    seconds: int

    @property
    def in_names(self) -> str:
        """The version in the names of files: without the epoch."""
        return self.version.partition(":")[2]

    def architecture_of(self, package: Package) -> str:
        return self.architecture if package.binary else "all"


def version(revision: int) -> str:
    """Return the Debian version of the checkout's release. A build with other libraries has the next revision."""
    return f"{EPOCH}:{runpy.run_path(str(CHECKOUT / 'nova/version.py'))['RELEASE']}-{revision}"


def architecture() -> str:
    return _printed("dpkg", "--print-architecture")


def python() -> tuple[int, int]:
    """Return the version of Debian's own Python, which the environment is for."""
    major, minor = _printed(PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split()
    return int(major), int(minor)


def libvirt() -> str:
    """Return the version of the installed libvirt headers, like 9.0.0."""
    return _printed("dpkg-query", "-W", "-f", "${Version}", "libvirt-dev").partition("-")[0].partition("+")[0]


def seconds() -> int:
    """Return SOURCE_DATE_EPOCH, otherwise the commit's time, otherwise the time of the file with the release."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(told)
    said = subprocess.run(["git", "-C", str(CHECKOUT), "log", "-1", "--format=%ct"], capture_output=True, text=True,
                          check=False) if (CHECKOUT / ".git").exists() else None
    if said and said.returncode == 0:
        return int(said.stdout)
    return int((CHECKOUT / "nova/version.py").stat().st_mtime)


def _printed(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise StackError(f"{command[0]} failed: {error}", "build on Debian, with libvirt-dev installed") from error


def control(package: Package, release: Release, kilobytes: int) -> str:
    """Return the text of the file ``control``. ``kilobytes``: the size of the installed files."""
    fields = {
        "Package": package.name,
        "Version": release.version,
        "Architecture": release.architecture_of(package),
        "Maintainer": f"{os.environ.get('DEBFULLNAME', 'Nova')} <{os.environ.get('DEBEMAIL', 'root@localhost')}>",
        "Installed-Size": str(kilobytes),
        "Depends": ", ".join(depends(package, release)),
        "Recommends": ", ".join(package.recommends),
        "Suggests": ", ".join(package.suggests),
        "Provides": ", ".join(package.provides),
        "Conflicts": ", ".join((*_of_debian(package.replaces), *package.conflicts)),
        "Replaces": ", ".join(_of_debian(package.replaces)),
        "Section": "net",
        "Priority": "optional",
        "Description": package.summary,
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value) + ABOUT


def depends(package: Package, release: Release) -> tuple[str, ...]:
    """Return a package's dependencies: the environment needs one minor version of Python; libvirt-python needs its
    version of libvirt, or a newer one."""
    major, minor = release.python
    if package.name == COMMON:
        first = (f"python3 (>= {major}.{minor}~)", f"python3 (<< {major}.{minor + 1}~)", "libc6")
    else:
        first = (f"{COMMON} (= {release.version})",)
    compiled = (f"libvirt0 (>= {release.libvirt})",) if package.binary and package.name != COMMON else ()
    return (*first, *compiled, *package.depends)


def _of_debian(names: tuple[str, ...]) -> list[str]:
    """Return Conflicts on the distribution's packages: dpkg removes them before it unpacks these. A later removal would
    also remove the units of these packages, whose folder has two names."""
    return [f"{name} (<< {FIRST})" for name in names]


def conffiles(tree: Path) -> str:
    """Return all files below /etc, one in each line."""
    files = sorted(path for path in (tree / "etc").rglob("*") if path.is_file())
    return "".join(f"/{path.relative_to(tree)}\n" for path in files)
