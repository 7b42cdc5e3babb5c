"""How this host's nova-compute and nova-network have done what root alone may."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from nova import errors
from nova.conf._drivers import is_libvirt
from nova.conf.base import Options
from nova.manage.doctor.daemons import runs_network
from nova.manage.doctor.finding import BAD, OK, Finding
from nova.privileged import choosing, client
from nova.privileged.about import About
from nova.privileged.helper_socket import SocketHelper

#: A program of that name, by itself or run by Python.
NEEDS_RIGHTS = re.compile(rb"(^|[/\0])nova-(compute|network)\0")
PATHS = ("instances_path", "state_path", "networks_path")


def privileges(options: Options, processes: Path = Path("/proc")) -> Finding:
    """Which way a daemon that is not root takes here, and whether it answers."""
    if not is_libvirt(options.compute_driver) and not runs_network(options):
        return Finding(OK, "no daemon here needs root's rights")
    path = Path(options.privileged.socket)
    if path.is_socket():
        return _socket(options, path)
    from nova.privileged import privsep

    reason = privsep.can_be_started(options)
    if reason and (choosing.is_privileged() or _run_as_root(processes)):
        return Finding(OK, f"daemons here are root: {path} is not there, and {reason}")
    if reason:
        return Finding(BAD, f"{path} is not there, and {reason}: daemons that are not root do not start",
                       "systemctl enable --now nova-privileged.socket")
    return Finding(OK, f"daemons that are not root start their helper by sudo, as {path} is not there")


def _run_as_root(processes: Path) -> bool:
    """Whether root's is one of the daemons that run here."""
    return any(not owner and NEEDS_RIGHTS.search(command) for owner, command in _commands(processes))


def _commands(processes: Path) -> Iterator[tuple[int, bytes]]:
    """Whose a process is, and its command line."""
    for at in processes.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            yield at.stat().st_uid, (at / "cmdline").read_bytes()


def _socket(options: Options, path: Path) -> Finding:
    try:
        found: About = client.ask(SocketHelper(path), "about", {}, About)
    except errors.Unavailable as error:
        return Finding(BAD, error.message, "systemctl status nova-privileged; run this as root or as its user")
    other = [name for name in PATHS if getattr(found, name) != str(Path(getattr(options, name)).absolute())]
    if other:
        return Finding(BAD, f"nova-privileged has read another {', '.join(other)} than nova.conf says now",
                       "systemctl restart nova-privileged")
    return Finding(OK, f"nova-privileged {found.release} answers the daemons of user {found.user}")
