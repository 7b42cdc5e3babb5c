"""Ports that another program has: said before anything is started, since a daemon would only say it in its log."""

from __future__ import annotations

import errno
import socket

from . import children, novaconf, systemd
from .control import Control
from .errors import StackError
from .layout import PORTS, PROXIES, Layout

UNITS_PORTS = {"compute", "metadata", "placement", "ec2", "s3", *PROXIES}
# Erlang's port mapper listens there whatever it is told, and ends, content, when it finds another one
EPMD_TOO = "::1"


def refuse_taken(layout: Layout) -> None:
    """On the machine itself another program may have our ports; of a stack that runs they are our own."""
    if layout.sandbox or Control(layout).running():
        return
    children.end_recorded(layout.run)  # of a supervisor that was killed: they would hold their ports
    taken = [f"{port} ({name})" for name, port in PORTS.items() if name in wanted(layout) and _taken(layout, name)]
    if taken:
        raise StackError(
            f"in use by other programs on {layout.address}: port {', '.join(taken)}",
            "stop them (`ss -ltnp` shows which they are), or keep apart with `bin/stack up --sandbox`",
        )


def wanted(layout: Layout) -> set[str]:
    """Those that will be listened on, less those of units that outlived a supervisor."""
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
    except OSError as error:  # a machine without IPv6 has no ::1: nobody listens there
        return error.errno == errno.EADDRINUSE
    return False
