"""Ports that other programs use: reported before any daemon is started, which would report them only in its log."""

from __future__ import annotations

import errno
import socket

from . import children, novaconf, systemd
from .control import Control
from .errors import StackError
from .layout import PORTS, PROXIES, Layout

UNITS_PORTS = {"compute", "metadata", "placement", "ec2", "s3", *PROXIES}
# Erlang's port mapper also listens here, in spite of its options, and ends without an error if another one runs
EPMD_TOO = "::1"


def refuse_taken(layout: Layout) -> None:
    """Raise StackError if another program on the machine uses a port of the stack. A running stack is not checked: its
    own daemons use the ports."""
    if layout.sandbox or Control(layout).running():
        return
    children.end_recorded(layout.run)  # processes of a killed supervisor would still use the ports
    taken = [f"{port} ({name})" for name, port in PORTS.items() if name in wanted(layout) and _taken(layout, name)]
    if taken:
        raise StackError(
            f"in use by other programs on {layout.address}: port {', '.join(taken)}",
            "stop them (`ss -ltnp` lists them), or avoid the conflict with `bin/stack up --sandbox`",
        )


def wanted(layout: Layout) -> set[str]:
    """Return the ports that the stack will listen on, without the ports of units that outlived a supervisor."""
    unserved = set(PROXIES) - set(novaconf.proxies(layout))
    unserved |= set() if layout.choices.neutron else {"neutron"}
    unserved |= set() if layout.choices.volumes else {"cinder"}
    unserved |= set() if layout.choices.volumes == "ceph" else {"ceph", "ceph-v1"}
    unserved |= set() if layout.choices.dashboard else {"horizon"}
    unserved |= set() if layout.choices.ec2 else {"ec2", "s3"}
    unserved |= {"mariadb", "postgresql"} - {layout.choices.database}
    unserved |= UNITS_PORTS if systemd.manages(layout) and systemd.any_runs(layout) else set()
    return set(PORTS) - unserved


def _taken(layout: Layout, name: str) -> bool:
    return any(in_use(address, PORTS[name]) for address in (layout.address, *([EPMD_TOO] if name == "epmd" else [])))


def in_use(address: str, port: int) -> bool:
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError as error:  # a machine without IPv6 has no ::1: no program listens there
        return error.errno == errno.EADDRINUSE
    return False
