"""The Python environment of nova-common, and libvirt-python, which nova-compute adds to it.

pip builds it in the package's tree, with binary wheels; then its path is changed to /usr/lib/nova. So the build writes
nothing there, and does not need root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stacklib import venvs

from .control import Release
from .table import COMMON
from .trees import DOCUMENTS, ENVIRONMENT, make_uniform

#: Extras of optional features of control daemons and hosts.
EXTRAS = "ldap,tracing,brick"


@dataclass(frozen=True)
class Maker:
    """Runner of pip. ``work``: its own folder. ``constraints``: versions of libraries to install; None: the newest."""

    work: Path
    log: Path
    constraints: Path | None = None

    def common(self, tree: Path) -> str:
        """Build the environment with nova's package, and return the list of its other packages."""
        environment = tree / ENVIRONMENT
        self._run(venvs.PYTHON, "-m", "venv", str(self.work / "pip"))
        self._run(venvs.PYTHON, "-m", "venv", "--without-pip", str(environment))
        venvs.copy_source(self.work / "source")
        given = ("--constraint", str(self.constraints)) if self.constraints else ()
        self._pip(environment, "install", "--no-compile", *given, f"{self.work / 'source'}[{EXTRAS}]")
        return self._pip(environment, "list", "--format=freeze", f"--exclude={venvs.DISTRIBUTION}")

    def libvirt(self, tree: Path, release: Release) -> str:
        """Install libvirt-python in the version of Debian's library, and return its line for the list of packages."""
        major, minor = release.python
        line = f"libvirt-python=={release.libvirt}"
        self._pip(None, "install", "--no-compile", "--no-deps",
                  f"--target={tree / ENVIRONMENT / f'lib/python{major}.{minor}/site-packages'}", line)
        return f"{line}\n"

    def compile(self, tree: Path, release: Release) -> None:
        """Compile all modules, after setting their times: a module that an administrator edits is compiled again."""
        make_uniform(tree, release.seconds)
        self._run(venvs.PYTHON, "-m", "compileall", "-q", "-j2", "--invalidation-mode=timestamp", "-s", str(tree), "-p",
                  "/", str(tree / ENVIRONMENT))

    def _pip(self, environment: Path | None, *words: str) -> str:
        chosen = ("--python", str(environment / "bin/python")) if environment else ()
        return self._run(str(self.work / "pip/bin/pip"), *chosen, *words, "--disable-pip-version-check")

    def _run(self, *command: str) -> str:
        """Run a command and return its output. Raises StackError, with its last lines; the log has the full output."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        kept["CFLAGS"] = "-g0"  # keeps build paths out of compiled files
        done = subprocess.run(command, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        if done.returncode:
            raise venvs.not_built(list(command), done.stdout + done.stderr, self.log)
        return done.stdout


def move(tree: Path) -> None:
    """Change the environment's path to its place on a machine, and remove files that contain the build path."""
    environment = tree / ENVIRONMENT
    for program in (environment / "bin").iterdir():
        if program.name.lower().startswith("activate"):
            program.unlink()
        elif program.is_file() and not program.is_symlink():
            program.write_bytes(program.read_bytes().replace(str(tree).encode(), b""))
    for name in ("direct_url.json", "RECORD"):  # without a list of its files, pip does not change dpkg's packages
        for path in environment.rglob(f"*.dist-info/{name}"):
            path.unlink()
    for name in ("share/nova/etc", "share/man", "share/bash-completion"):  # packages install them elsewhere
        shutil.rmtree(environment / name, ignore_errors=True)
    settings = environment / "pyvenv.cfg"
    settings.write_text(re.sub(r"^command = .*\n", "", settings.read_text(), flags=re.M))


def record(tree: Path, dependencies: str) -> None:
    """Write the versions of all libraries, for administrators and for ``--constraints`` of the next build."""
    path = tree / DOCUMENTS / COMMON / "dependencies"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dependencies)
