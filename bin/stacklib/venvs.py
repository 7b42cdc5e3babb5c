"""The Python environments: Keystone and Glance share one; Neutron, Cinder, Horizon and the clients have one each; nova
has one for each release.

Each has a stamp with a digest of its sources, and is rebuilt only if the digest changes.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import dashboard
from .errors import StackError
from .layout import CHECKOUT, Layout
from .releases import ACTIVE, PREFIX, Releases

PYTHON = "/usr/bin/python3"
PINS = Path(__file__).with_name("pins")
# The checkout's sources of nova's package: a change of one of them rebuilds it.
SOURCES = ("nova", "alembic", "etc", "setup.cfg", "setup.py", "pyproject.toml", "MANIFEST.in", "README.rst")
DISTRIBUTION = "nova-iaas"
UV = "uv==0.13.9"
REMOVAL_S = 60.0
# This project's mechanism driver for Neutron without agents, installed next to Neutron.
MECHANISM_DRIVER = Path(__file__).with_name("bind_at_once")


# messages of uv and pip about an index that they cannot reach
UNFETCHED = re.compile(r"Failed to (fetch|download)|dns error|error sending request|ConnectionError|ConnectTimeout")


@dataclass(frozen=True)
class Builder:
    """Builder of a layout's environments; the output of its commands goes to a log."""

    layout: Layout
    log: Path

    def nextdoor(self) -> str:
        return self._pinned("nextdoor")

    def neutron(self) -> str:
        """Build Neutron's own environment, which clouds without Neutron do not need."""
        words = self._pinned("neutron")
        wanted = self._stamp("neutron") + digest(MECHANISM_DRIVER, ("bind_at_once.py", "pyproject.toml"))
        if self._driver_stamp.exists() and self._driver_stamp.read_text() == wanted:
            return words
        source = self.layout.venvs / ".source-neutron"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(MECHANISM_DRIVER, source, ignore=shutil.ignore_patterns("__pycache__"))
        try:
            self._pip("neutron", "--reinstall", "--no-deps", "--no-build-isolation", str(source))
        finally:
            shutil.rmtree(source)
        self._driver_stamp.write_text(wanted)
        return f"{words}; mechanism driver installed"

    @property
    def _driver_stamp(self) -> Path:
        return self.layout.venvs / "neutron" / ".stamp-driver"

    def cinder(self) -> str:
        return self._pinned("cinder")

    def horizon(self) -> str:
        """Build Horizon's environment, with the scripts and styles of its pages, one time for all stacks."""
        words = self._pinned("horizon")
        wanted = self._stamp("horizon") + dashboard.static_digest()
        if static_stamp(self.layout) == wanted:
            return words
        venv = self.layout.venvs / "horizon"
        shutil.rmtree(venv / "static", ignore_errors=True)
        settings = self.layout.venvs / ".site-horizon"
        try:
            steps, environment = dashboard.static_commands(venv, settings)
            for step in steps:
                self._logged(step, {**os.environ, **environment})
        finally:
            shutil.rmtree(settings)
        _static_stamp_file(self.layout).write_text(wanted)
        return f"{words}; static files made"

    def clients(self) -> str:
        return self._pinned("clients")

    def tempest(self) -> str:
        return self._pinned("tempest")

    def judges(self) -> str:
        return self._pinned("judges")

    def ansible(self) -> str:
        return self._pinned("ansible")

    def nova(self) -> str:
        """Build the checkout's release, and point the link `nova` to it."""
        name, words = self.release()
        there = Releases(self.layout.venvs)
        there.activate(name)
        there.remove_older()
        return words

    def release(self) -> tuple[str, str]:
        """Build nova's package from the checkout, with libvirt-python of the installed libvirt's version.

        Returns the name of its environment and a summary. The active environment does not change.
        """
        if not (CHECKOUT / "setup.cfg").exists() and not (CHECKOUT / "pyproject.toml").exists():
            raise StackError(f"{CHECKOUT} has no setup.cfg or pyproject.toml", "run bin/stack from a checkout of nova")
        libvirt = _libvirt_version()
        code, needs = digest(CHECKOUT, SOURCES), dependencies(CHECKOUT) + libvirt
        wanted = f"{needs} {code}"
        name = PREFIX + hashlib.sha256(wanted.encode()).hexdigest()[:8]
        if self._stamp(name) == wanted:
            return name, "unchanged"
        kept = self._stamp(ACTIVE).split(" ")[0] == needs
        if kept:
            self._copy_active(name)
        else:
            self._create(name, "--relocatable")  # its programs are started through a link
        extra = [f"libvirt-python=={libvirt}"] if libvirt else []
        source = self.layout.venvs / ".source-nova"
        copy_source(source)
        try:
            flags = ["--reinstall-package", DISTRIBUTION, *(["--no-deps"] if kept else [])]
            self._pip(name, *flags, f"{source}[memcached]", *([] if kept else extra))
        finally:
            shutil.rmtree(source)
        self._write_stamp(name, wanted)
        return name, "updated the package" if kept else f"built, libvirt-python {libvirt or 'left out'}"

    def _copy_active(self, name: str) -> None:
        """Copy the active environment by hard links: uv replaces files by new ones, so the active one keeps its own."""
        active, target = (self.layout.venvs / ACTIVE).resolve(), self.layout.venvs / name
        _remove(target)
        shutil.copytree(
            active, target, symlinks=True, copy_function=os.link, ignore=shutil.ignore_patterns(".stamp", ".lock")
        )

    def test(self) -> str:
        """Build the tests' environment: the package's dependencies and its ``test`` extra; the tests use the checkout's
        code."""
        libvirt = _libvirt_version()
        wanted = dependencies(CHECKOUT) + libvirt
        if self._stamp("test") == wanted:
            return "unchanged"
        self._create("test")
        extra = [f"libvirt-python=={libvirt}"] if libvirt else []
        self._pip("test", "-r", str(CHECKOUT / "setup.cfg"), "--extra", "test", *extra)
        self._write_stamp("test", wanted)
        return f"built the test environment, libvirt-python {libvirt or 'left out'}"

    def oldest(self) -> str:
        """Build a tests' environment with the oldest versions of the package's dependencies that setup.cfg allows."""
        libvirt = _libvirt_version()
        wanted = dependencies(CHECKOUT) + libvirt
        if self._stamp("oldest") == wanted:
            return "unchanged"
        self._create("oldest")
        resolved = self.layout.venvs / "oldest" / "resolved.txt"
        self._uv("pip", "compile", "--resolution", "lowest-direct", "--python", PYTHON, "-o", str(resolved),
                 str(CHECKOUT / "setup.cfg"))
        oldest = self.layout.venvs / "oldest" / "oldest.txt"
        oldest.write_text("".join(f"{line}\n" for line in resolved.read_text().splitlines()
                                  if line.partition("==")[0] in required(CHECKOUT)))
        extra = [f"libvirt-python=={libvirt}"] if libvirt else []
        self._pip("oldest", "-r", str(CHECKOUT / "setup.cfg"), "--extra", "test", *extra, "-c", str(oldest))
        self._write_stamp("oldest", wanted)
        return "built"

    def newest(self) -> str:
        """Build a tests' environment with the newest versions in the package index."""
        libvirt = _libvirt_version()
        self._create("newest")
        extra = [f"libvirt-python=={libvirt}"] if libvirt else []
        self._pip("newest", "--refresh", "-r", str(CHECKOUT / "setup.cfg"), "--extra", "test", *extra)
        return "built"

    def _pinned(self, name: str) -> str:
        pins = PINS / f"{name}.txt"
        wanted = hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
        if self._stamp(name) == wanted:
            return "unchanged"
        self._create(name)
        self._pip(name, "-r", str(pins))
        self._write_stamp(name, wanted)
        return "built"

    def _create(self, name: str, *options: str) -> None:
        self._uv("venv", "--clear", *options, "--python", PYTHON, str(self.layout.venvs / name))

    def _pip(self, venv: str, *arguments: str) -> None:
        python = self.layout.program(venv, "python")
        self._uv("pip", "install", "--compile-bytecode", "--python", python, *arguments)

    def _uv(self, *arguments: str) -> None:
        program = self._uv_program()
        environment = {"UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", **_index_settings(), **os.environ}
        for elsewhere in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
            environment.pop(elsewhere, None)
        self._logged([program, "--no-config", *arguments], environment)

    def _uv_program(self) -> str:
        own = self.layout.program("uv", "uv")
        if not os.access(own, os.X_OK):
            self._logged([PYTHON, "-m", "venv", "--clear", str(self.layout.venvs / "uv")], dict(os.environ))
            self._logged([self.layout.program("uv", "pip"), "install", "-q", UV], dict(os.environ))
        return own

    def _logged(self, command: list[str], environment: dict[str, str]) -> None:
        with self.log.open("a") as output:
            output.write(f"$ {' '.join(command)}\n")
            output.flush()
            begin = output.tell()
            result = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
            )
        if result.returncode:
            raise not_built(command, self.log.read_bytes()[begin:].decode(errors="replace"), self.log)

    # --- stamps ------------------------------------------------------------------------------------------------------
    def _stamp_file(self, name: str) -> Path:
        return self.layout.venvs / name / ".stamp"

    def _stamp(self, name: str) -> str:
        try:
            return self._stamp_file(name).read_text()
        except OSError:
            return ""

    def _write_stamp(self, name: str, text: str) -> None:
        self._stamp_file(name).write_text(text)


def _remove(path: Path) -> None:
    """Remove a directory. A program that a killed run started may still write there, for seconds."""
    end = time.monotonic() + REMOVAL_S
    while path.exists() and time.monotonic() < end:
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(0.1)
    if path.exists():
        shutil.rmtree(path)


def not_built(command: list[str], words: str, log: Path) -> StackError:
    """Return the error for the output of pip or uv, as one line if the cause is the network."""
    lines = [line.strip() for line in words.splitlines()]
    unfetched = next((line for line in lines if UNFETCHED.search(line)), "")
    if unfetched:
        return StackError(
            f"the index of Python packages does not answer: {unfetched}",
            "fix the network or the index's address (pip's settings, UV_DEFAULT_INDEX), and run this again; "
            f"{log} has the full output",
        )
    return StackError(
        f"{Path(command[0]).name} {' '.join(command[2:4])} failed:\n" + "\n".join(f"  {line}" for line in lines[-12:]),
        f"fix the cause, and run this again: it continues where it stopped; the full output is in {log}",
    )


def copy_source(target: Path) -> None:
    """Copy the sources to a directory: a build leaves build/ and *.egg-info, which must not be in the checkout."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in (*SOURCES, "LICENSE"):
        path = CHECKOUT / name
        if path.is_dir():
            shutil.copytree(path, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.exists():
            shutil.copy(path, target / name)


def stamp(layout: Layout, venv: str) -> str:
    """Return the digest of the environment's sources; a daemon that runs from it is restarted if this changes."""
    return Builder(layout, Path("/dev/null"))._stamp(venv)


def static_stamp(layout: Layout) -> str:
    """Return the digest of the dashboard's static files' sources; empty if the files are missing or incomplete."""
    path = _static_stamp_file(layout)
    return path.read_text() if path.exists() else ""


def _static_stamp_file(layout: Layout) -> Path:
    return layout.venvs / "horizon" / ".stamp-static"


def dependencies(top: Path) -> str:
    """Return a digest of the dependencies in setup.cfg. It does not include nova's own version: a new one must not
    rebuild an environment while tests run in it."""
    found = configparser.ConfigParser(interpolation=None)
    found.read(top / "setup.cfg")
    asked = (found["options"]["install_requires"], *sorted(found["options.extras_require"].items()))
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:16]


def required(top: Path) -> frozenset[str]:
    """Return the packages that setup.cfg requires, by their normalized names."""
    found = configparser.ConfigParser(interpolation=None)
    found.read(top / "setup.cfg")
    lines = found["options"]["install_requires"].split()
    return frozenset(re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower() for line in lines)


def digest(top: Path, names: tuple[str, ...]) -> str:
    """Return a digest of all files below a directory, by path and content, without caches."""
    total = hashlib.sha256()
    for name in names:
        start = top / name
        files = [start] if start.is_file() else sorted(start.rglob("*")) if start.is_dir() else []
        for path in files:
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                total.update(f"{path.relative_to(top)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def _libvirt_version() -> str:
    """Return the version of the installed libvirt, like 9.0.0; empty if it is not installed."""
    result = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "libvirt-dev"], capture_output=True, text=True, check=False
    )
    return result.stdout.partition("-")[0].partition("+")[0] if result.returncode == 0 else ""


def _index_settings() -> dict[str, str]:
    """Return pip's mirror and certificate as variables for uv, which does not read pip's configuration."""
    result = subprocess.run([PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    values = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    plain = {key.rpartition(".")[2]: value.strip("'\"") for key, value in values.items()}
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}
    return {names[key]: value for key, value in plain.items() if key in names and value}
