"""The context of all stages: the layout, the secrets, the supervisor's client, and the record of completed steps."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import rooms
from .control import Control, last_lines
from .errors import StackError
from .layout import CHECKOUT, CONTROLLER, Layout
from .secrets import Secrets

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.manage.secret_files import readers  # noqa: E402

# a step that outlived a killed `up` would conflict with its second run in the same tables
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
CONDUCTOR_USER = "nova-conductor"  # the only user that can read the database URLs
SERVICE_USER = "nova"  # runs services without privileges: Keystone, Glance, and the controller's services as a host


@dataclass(frozen=True)
class Stack:
    layout: Layout
    secrets: Secrets
    control: Control

    # --- stamps: completed steps -------------------------------------------------------------------------------------
    def done(self, step: str, fingerprint: str = "1") -> bool:
        path = self.layout.path("stamps", step)
        return path.exists() and path.read_text() == fingerprint

    def mark_done(self, step: str, fingerprint: str = "1") -> None:
        path = self.layout.path("stamps", step)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fingerprint)

    # --- directories and commands ------------------------------------------------------------------------------------
    def directory(
        self, *parts: str, owner: str | None = None, mode: int = 0o750, group: str | None = None
    ) -> Path:
        """Create a directory if it is missing. Owner, group (default: the owner's) and mode are set for it, but not for
        its parents."""
        path = self.layout.path(*parts)
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        if owner:
            shutil.chown(path, owner, group or owner)
        return path

    def state_directory(self, path: Path, owner: str) -> None:
        """Create a daemon's own directory; change the owner of its files if a daemon of another user wrote them."""
        path.mkdir(mode=0o700, exist_ok=True)
        if path.owner() != owner:
            for one in (path, *path.rglob("*")):
                shutil.chown(one, owner, owner)

    def at_controller(self, work):
        """Call `work` in a network from which the controller's addresses are reachable."""
        pid = self.control.room_pid(CONTROLLER) if self.layout.sandbox else None
        return rooms.in_network(pid, work)

    def command(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str] | None = None,
        user: str | None = None,
        seconds: float = 300,
        fine: tuple[int, ...] = (0,),
    ) -> str:
        """Run a command on the controller; write its output to logs/setup-NAME.log and return it. Raises StackError if
        its exit status is not one of ``fine``."""
        log = self.layout.log(f"setup-{name}")
        log.parent.mkdir(parents=True, exist_ok=True)
        return self.at_controller(lambda: _logged(argv, log, env or {}, user, seconds, fine))

    def machine_command(self, name: str, argv: list[str], seconds: float = 300) -> str:
        """Run a command on the machine itself, for downloads: a sandbox's controller has no external network."""
        log = self.layout.log(f"setup-{name}")
        log.parent.mkdir(parents=True, exist_ok=True)
        return _logged(argv, log, dict(os.environ), None, seconds)


def _logged(
    argv: list[str],
    log: Path,
    env: dict[str, str],
    user: str | None,
    seconds: float,
    fine: tuple[int, ...] = (0,),
) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": "/root", **env}
    if not shutil.which(argv[0]):
        raise StackError(f"no such program: {argv[0]}", "install what is missing with `bin/stack install`")
    begin = log.stat().st_size if log.exists() else 0
    with log.open("a") as output:
        try:
            code = subprocess.run(
                [*ENDS_WITH_US, *argv],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                cwd="/",
                stderr=subprocess.STDOUT,
                timeout=seconds,
                user=user,
                group=user,
                extra_groups=os.getgrouplist(user, pwd.getpwnam(user).pw_gid) if user else None,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    if code not in fine:
        how = f"took longer than {seconds:.0f} s" if code == -1 else f"failed with {code}"
        raise StackError(
            f"{_spoken(argv)} {how}; the end of {log}:\n{last_lines(log)}",
            "fix the cause and run the same command again: it continues where it stopped",
        )
    return log.read_bytes()[begin:].decode(errors="replace")


def _spoken(argv: list[str]) -> str:
    """Return a short form of the command for messages: without its path and its configuration files."""
    words = [word for word, before in zip(argv[1:], argv, strict=False) if "--config-file" not in (word, before)]
    return " ".join([Path(argv[0]).name, *words[:4]])


def ensure_service_users() -> None:
    """Create the missing system users: `nova`, as in the Debian packages, and one for each control daemon, in the group
    `nova`, which may read nova.conf."""
    _ensure_user(SERVICE_USER)
    for name in sorted({readers.user_of(daemon) for daemon in readers.DAEMONS} - {SERVICE_USER}):
        _ensure_user(name, "--groups", SERVICE_USER)


def _ensure_user(name: str, *options: str) -> None:
    with contextlib.suppress(KeyError):
        pwd.getpwnam(name)
        return
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", f"/var/lib/{name}"]
    subprocess.run([*command, "--shell", "/usr/sbin/nologin", *options, name], check=True)
