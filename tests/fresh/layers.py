"""The trees that machines are made of: Debian's own, then the packages, then the Python environments.

Each is a directory below ``TOP`` named by what it was made from, and is made once. All but the first are what an
overlay wrote over those before. What this machine knows of mirrors (apt's sources, pip's settings, certificates) is
copied into the first one: a private directory, never the checkout.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from stacklib import packages, venvs
from stacklib.layout import CHECKOUT
from tests.functional import releases

TOP = Path("/var/tmp/nova-fresh")
MADE_BY = "2"  # to be changed with `_bootstrap`: trees that were made otherwise are made anew
UNUSED_S = 2 * 3600  # longer than a case takes
MIRROR = "http://deb.debian.org/debian"
PARTS = ("broker", "databases", "nextdoor", "clients", "hypervisor", "guest", "nova")
BEFORE = "root/nova-before"  # and the release before
BEFORE_FOR_ALL = "srv/nova-before"
HOME = "root/nova"  # where the checkout lies in a machine: in a directory that root alone may enter
FOR_ALL = "srv/nova"  # where it lies for ordinary users, who may read it and no more
USERS = ("alice", "bob")  # ordinary ones
CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")  # by which this machine trusts an index of packages
#: Of this machine: how packages are come by.
COPIED = ("etc/apt/sources.list", "etc/apt/sources.list.d", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
          "etc/apt/keyrings", "etc/apt/trusted.gpg.d", "etc/pip.conf", "root/.config/pip", "root/.config/uv", "etc/uv",
          "usr/local/share/ca-certificates")
SOURCES = Path("/etc/apt")
CLEANERS = "docker-"  # apt.conf.d of images of containers: they throw away each package that was fetched
PASSED = re.compile(r"(?i)(uv|pip)_.*|.*_proxy|(ssl|curl|requests)_.*(cert|ca).*")
#: layers, from the top down
Made = tuple[Path, ...]


class Debian(NamedTuple):
    """A Debian made by debootstrap: its smallest, and ``included``."""

    name: str
    included: tuple[str, ...]


BOOKWORM, TRIXIE = "bookworm", "trixie"  # Debian 12 and 13
#: With what a small installation has, besides: bin/stack itself is Python.
SMALL = Debian("debian", ("systemd-sysv", "dbus", "python3", "ca-certificates"))
#: With what the README asks an ordinary user for, and nothing else.
BARE = Debian("bare", ("python3", "python3-venv"))
#: What images of containers begin with: the same as the ``debian:bookworm-slim`` of registries.
SLIM = Debian("slim", ())


def environment() -> dict[str, str]:
    """How this machine comes by Python packages, as variables."""
    return {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}


def _ours() -> dict[str, str]:
    """This machine's environment, for programs that make a machine: but for Python's variables, which the new machine's
    own Python would take, and leave its bytecode where this one keeps it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def local_indexes() -> list[Path]:
    """Directories of this machine that pip is told to look into."""
    told = subprocess.run([venvs.PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    words = re.findall(r"(?:file://)?(/[^\s'\"]+)", told.stdout + " " + os.environ.get("PIP_FIND_LINKS", ""))
    # an index's files may lie beside it
    found = {Path(word).parent if Path(word).name == "simple" else Path(word) for word in words}
    return sorted(path for path in found if path.is_dir())


def base(debian: Debian = SMALL, suite: str = BOOKWORM) -> Made:
    files = (path.read_bytes().hex() for path in _copied_files())
    key = _digest(MADE_BY, suite, *debian.included, *USERS, *files)
    return (_once(of_suite(debian.name, suite), key, functools.partial(_bootstrap, debian, suite)),)


def of_suite(name: str, suite: str) -> str:
    """A layer's name: of each, the trees that nobody used of late are removed."""
    return name if suite == BOOKWORM else f"{suite}-{name}"


def checkout(home: str = HOME) -> Made:
    """What git knows of in the checkout, as it is now, at ``home``: in root's own directory, or for all to read."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=CHECKOUT,
                            capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and (CHECKOUT / name).is_file()]
    key = _digest(*(f"{name} {hashlib.sha256((CHECKOUT / name).read_bytes()).hexdigest()}" for name in names))

    def copy(target: Path) -> None:
        for name in names:
            (target / home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, target / home / name)
        if home == HOME:
            (target / "root").chmod(0o700)
        else:
            subprocess.run(["chmod", "-R", "go=u-w", str(target / home)], check=True)

    return (_once("checkout" if home == HOME else "checkout-for-all", key, copy),)


def release_before(home: str = BEFORE) -> Made:
    """The release before this one, out of the history, beside the checkout: in root's own directory, or for all to
    read."""
    _release, commit = releases.previous()

    def write(target: Path) -> None:
        (target / home).parent.mkdir(parents=True)
        releases.unpack(commit, target / home)
        if home == BEFORE:
            (target / "root").chmod(0o700)

    return (_once("before" if home == BEFORE else "before-for-all", commit[:12], write),)


def written(name: str, key: str, below: Made, write: Callable[[Path], None]) -> Made:
    """The layer that ``write`` leaves in the directory it is given, over those below."""
    return (_once(name, _digest(key, *(path.name for path in below)), write), *below)


def packages_key() -> str:
    return _digest(*(name for part in PARTS for name in packages.PACKAGES[part]))


def neighbours_key(parts: Sequence[str]) -> str:
    """Of what stands in them: a stack's own programs may be older ones."""
    return _digest(*(name for part in parts for name in packages.PACKAGES[part]),
                   venvs.digest(CHECKOUT, ("bin/stacklib",)))


def environments_key() -> str:
    return venvs.dependencies(CHECKOUT) + venvs.digest(CHECKOUT, ("bin/stacklib/pins",))


def containers_key() -> str:
    return _digest(*packages.PACKAGES["containers"], *(path.name for path in base(SLIM)))


def nova_all_key() -> str:
    return venvs.digest(CHECKOUT, ("setup.cfg", "bin/nova-all"))


def sources_key() -> str:
    return venvs.digest(CHECKOUT, venvs.SOURCES)


def shared(name: str, mode: int = 0o755) -> Path:
    """A directory that machines share, so that each file is fetched once. ``mode``: for machines' ordinary users; this
    machine's cannot enter the directory above."""
    path = TOP / name
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return path


def _bootstrap(debian: Debian, suite: str, target: Path) -> None:
    log = target.with_suffix(".log")
    include = [f"--include={','.join(debian.included)}"] if debian.included else []
    with log.open("wb") as output:
        code = subprocess.run(["debootstrap", "--variant=minbase", *include, f"--cache-dir={shared('debs')}", suite,
                               str(target), MIRROR],
                              stdout=output, stderr=output, env=_ours(), check=False).returncode
    if code:
        raise RuntimeError(f"debootstrap failed with {code}; see {log}")
    for path in _copied_files():
        copy = target / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
        if SOURCES in path.parents:
            copy.write_text(re.sub(rf"\b{_own_suite()}\b", suite, copy.read_text()))
    if "ca-certificates" in debian.included:
        subprocess.run(["chroot", str(target), "update-ca-certificates"], env=_ours(),
                       capture_output=True, check=True)
    elif Path("/", CERTIFICATES).exists():
        (target / CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path("/", CERTIFICATES), target / CERTIFICATES)
    for user in USERS:
        subprocess.run(["chroot", str(target), "useradd", "--create-home", "--shell", "/bin/bash", user], env=_ours(),
                       check=True)
    (target / "etc/hosts").write_text("127.0.0.1 localhost\n")
    # a machine's first boot is not what is tried here
    (target / "etc/machine-id").write_text(hashlib.md5(b"fresh").hexdigest() + "\n")  # noqa: S324


def _own_suite() -> str:
    """Of this machine, as its sources have it."""
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _copied_files() -> list[Path]:
    found = []
    for name in COPIED:
        path = Path("/", name)
        found += [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    return [path for path in found if path.is_file() and not path.name.startswith(CLEANERS)]


def _once(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The directory TOP/NAME-KEY, made now if it is not there; of other keys go those that no machine can be using."""
    done = TOP / f"{name}-{key}"
    with _lock(name):
        if not done.is_dir():
            coming = TOP / f"{name}.new"
            subprocess.run(["rm", "-rf", "--one-file-system", str(coming)], check=True)
            coming.mkdir(parents=True)
            make(coming)
            for old in TOP.glob(f"{name}-*"):
                if old.stat().st_mtime < time.time() - UNUSED_S:
                    subprocess.run(["rm", "-rf", "--one-file-system", str(old)], check=True)
            coming.rename(done)
        os.utime(done)
    return done


@contextlib.contextmanager
def _lock(name: str) -> Iterator[None]:
    TOP.mkdir(parents=True, exist_ok=True)
    TOP.chmod(0o700)
    with (TOP / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
