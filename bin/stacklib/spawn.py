"""Start of one process for the supervisor: its room, user, log and environment."""

from __future__ import annotations

import os
import pwd
import signal
from dataclasses import dataclass
from pathlib import Path

from . import cgroups, kernel
from .spec import Daemon

BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Place:
    """The log file, the PID of the room's init (None: the machine itself), and the sd_notify socket, if any."""

    log: Path
    room: int | None
    notify: Path | None


def spawn(daemon: Daemon, place: Place) -> int:
    """Start the daemon in its own session and return its PID in the supervisor's namespace. Raises OSError."""
    if place.room is None:
        child = os.fork()
    else:
        with kernel.PidNamespaceForChildren(place.room):
            child = os.fork()
    if child == 0:
        _become(daemon, place)
    return child


def reset_signals() -> None:
    """Restore the default signal handlers: a forked child must not run the supervisor's."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def _become(daemon: Daemon, place: Place) -> None:
    try:
        reset_signals()
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if place.room is not None:
            cgroups.join_process(place.room)
            kernel.enter(place.room)
        os.chdir(daemon.cwd)
        os.umask(0o022)
        if daemon.user:
            _switch_user(daemon.user)
        os.execve(_find(daemon.argv[0]), daemon.argv, _environment(daemon, place))
    except BaseException as error:  # noqa: BLE001 - only the log is left to report the error
        os.write(2, f"stack: cannot start {daemon.name}: {error}\n".encode())
    finally:
        os._exit(127)


def _find(program: str) -> str:
    if "/" in program:
        return program
    for directory in BASE_PATH.split(":"):
        if os.access(f"{directory}/{program}", os.X_OK):
            return f"{directory}/{program}"
    raise FileNotFoundError(f"no such program: {program}")


def _switch_user(name: str) -> None:
    user = pwd.getpwnam(name)
    os.initgroups(name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def _environment(daemon: Daemon, place: Place) -> dict[str, str]:
    """Return the daemon's environment, without the operator's variables: it must not depend on who runs `up`."""
    notify = {"NOTIFY_SOCKET": str(place.notify)} if place.notify else {}
    return {"PATH": BASE_PATH, "LANG": "C.UTF-8", "HOME": "/root", **notify, **daemon.env}
