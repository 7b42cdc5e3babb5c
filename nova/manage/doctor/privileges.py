"""Doctor check of how this host's nova-compute and nova-network run privileged operations."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from nova import errors
from nova.conf._drivers import is_libvirt
from nova.conf._options import Options
from nova.manage.doctor.daemons import runs_network
from nova.manage.doctor.finding import BAD, OK, Finding
from nova.privileged import choosing, client
from nova.privileged.about import About
from nova.privileged.helper_socket import SocketHelper

#: Command line of such a program, run directly or by Python.
NEEDS_RIGHTS = re.compile(rb"(^|[/\0])nova-(compute|network)\0")
PATHS = ("instances_path", "state_path", "networks_path")


def privileges(options: Options, processes: Path = Path("/proc")) -> Finding:
    """Report which privileged helper services that are not root use here, and whether it answers."""
    if not is_libvirt(options.compute_driver) and not runs_network(options):
        return Finding(OK, "no service here needs root privileges")
    path = Path(options.privileged.socket)
    if path.is_socket():
        return _socket(options, path)
    from nova.privileged import privsep

    reason = privsep.can_be_started(options)
    if reason and (choosing.is_privileged() or _run_as_root(processes)):
        return Finding(OK, f"services here run as root: {path} does not exist, and {reason}")
    if reason:
        return Finding(BAD, f"{path} does not exist, and {reason}: services that are not root do not start",
                       "systemctl enable --now nova-privileged.socket")
    return Finding(OK, f"services that are not root start their helper by sudo, because {path} does not exist")


def _run_as_root(processes: Path) -> bool:
    """True if one of the running services belongs to root."""
    return any(not owner and NEEDS_RIGHTS.search(command) for owner, command in _commands(processes))


def _commands(processes: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the owner's uid and the command line of each process."""
    for at in processes.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            yield at.stat().st_uid, (at / "cmdline").read_bytes()


def _socket(options: Options, path: Path) -> Finding:
    try:
        found: About = client.ask(SocketHelper(path), "about", {}, About)
    except errors.Unavailable as error:
        return Finding(BAD, error.message, "systemctl status nova-privileged; run this as root or as its user")
    other = [name for name in PATHS if getattr(found, name) != str(Path(getattr(options, name)).absolute())]
    if other:
        return Finding(BAD, f"nova-privileged uses another {', '.join(other)} than nova.conf has now",
                       "systemctl restart nova-privileged")
    return Finding(OK, f"nova-privileged {found.release} accepts calls from user {found.user}")
