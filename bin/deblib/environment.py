"""The Python environment of nova-common, and libvirt-python, which nova-compute adds to it.

It is made in the package's tree by pip, with binary wheels, and then told that it lies in /usr/lib/nova. So nothing is
written there on the machine that builds, and nobody needs root.
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

#: What control daemons and hosts may be configured to use.
EXTRAS = "ldap,tracing,brick"


@dataclass(frozen=True)
class Maker:
    """Runs pip. ``work``: a folder of its own. ``constraints``: versions of libraries to take, or None: the newest."""

    work: Path
    log: Path
    constraints: Path | None = None

    def common(self, tree: Path) -> str:
        """The environment with our own package, and the list of what is in it. Returns that list."""
        environment = tree / ENVIRONMENT
        self._run(venvs.PYTHON, "-m", "venv", str(self.work / "pip"))
        self._run(venvs.PYTHON, "-m", "venv", "--without-pip", str(environment))
        venvs.copy_source(self.work / "source")
        given = ("--constraint", str(self.constraints)) if self.constraints else ()
        self._pip(environment, "install", "--no-compile", *given, f"{self.work / 'source'}[{EXTRAS}]")
        return self._pip(environment, "list", "--format=freeze", f"--exclude={venvs.DISTRIBUTION}")

    def libvirt(self, tree: Path, release: Release) -> str:
        """libvirt-python of the version of Debian's library. Returns its line for the list."""
        major, minor = release.python
        line = f"libvirt-python=={release.libvirt}"
        self._pip(None, "install", "--no-compile", "--no-deps",
                  f"--target={tree / ENVIRONMENT / f'lib/python{major}.{minor}/site-packages'}", line)
        return f"{line}\n"

    def compile(self, tree: Path, release: Release) -> None:
        """After the files have their times: a module that an administrator mends is compiled anew."""
        make_uniform(tree, release.seconds)
        self._run(venvs.PYTHON, "-m", "compileall", "-q", "-j2", "--invalidation-mode=timestamp", "-s", str(tree), "-p",
                  "/", str(tree / ENVIRONMENT))

    def _pip(self, environment: Path | None, *words: str) -> str:
        chosen = ("--python", str(environment / "bin/python")) if environment else ()
        return self._run(str(self.work / "pip/bin/pip"), *chosen, *words, "--disable-pip-version-check")

    def _run(self, *command: str) -> str:
        """What it printed. StackError: it has failed, with its last words; the log has all."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        kept["CFLAGS"] = "-g0"  # what is compiled does not tell where
        done = subprocess.run(command, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        if done.returncode:
            raise venvs.not_built(list(command), done.stdout + done.stderr, self.log)
        return done.stdout


def move(tree: Path) -> None:
    """Tell the environment its place on a machine; take out what tells of the place where it was made."""
    environment = tree / ENVIRONMENT
    for program in (environment / "bin").iterdir():
        if program.name.lower().startswith("activate"):
            program.unlink()
        elif program.is_file() and not program.is_symlink():
            program.write_bytes(program.read_bytes().replace(str(tree).encode(), b""))
    for name in ("direct_url.json", "RECORD"):  # without a list of its files pip leaves alone what is dpkg's
        for path in environment.rglob(f"*.dist-info/{name}"):
            path.unlink()
    for name in ("share/nova/etc", "share/man", "share/bash-completion"):  # they have places of their own in packages
        shutil.rmtree(environment / name, ignore_errors=True)
    settings = environment / "pyvenv.cfg"
    settings.write_text(re.sub(r"^command = .*\n", "", settings.read_text(), flags=re.M))


def record(tree: Path, dependencies: str) -> None:
    """The versions of all libraries, for administrators and for ``--constraints`` of the next build."""
    path = tree / DOCUMENTS / COMMON / "dependencies"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dependencies)
