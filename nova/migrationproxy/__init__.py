"""Transport of one guest's live migration between two libvirtds, so that no libvirtd listens to other hosts.

The destination's nova-compute starts a listener (a *gate*) for the move, on one TCP port with its own certificate. It
admits clients with the move's secret, and forwards only the calls of this migration to the local libvirtd. The source's
nova-compute starts a *tunnel*: Unix sockets to which its libvirtd and QEMU connect. It forwards each connection to the
gate. Memory and disks use the same path, so they are encrypted, too.

Each is a separate process (``python -m nova.migrationproxy``), so a migration continues while nova-compute restarts. It
ends with the migration, when its working directory is removed, or after a day.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

#: The same on all hosts: a migration's sockets must have the same path at both ends.
DIRECTORY = Path("/run/nova-migrations")
SOCKETS = "qemu"  # within a move's directory: QEMU may write there, so it contains no other files
PID_FILE = "proxy.pid"  # kept open by the process during its lifetime
NOTES_FILE = "refused"  # refused calls and failures, one per line
LIBVIRT_URI = "qemu:///system"
SECRET_DIGITS = 64


class Channel(StrEnum):
    """Content of a connection; also the name of its socket. One letter identifies it on the wire."""

    LIBVIRT = "libvirt"
    MEMORY = "memory"
    DISKS = "disks"


class ListenerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a gate. ``definition``: the guest as this host itself would define it. ``libvirt``: the socket of
    the local libvirtd. ``owner``: QEMU's user and group on this host."""

    directory: str
    address: str
    ports: tuple[int, int]
    secret: str
    definition: str
    libvirt: str = "/run/libvirt/libvirt-sock"
    owner: tuple[int, int] = (0, 0)


class TunnelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a tunnel. ``certificate``: the gate's, as PEM. ``owner``: as for a gate."""

    directory: str
    address: str
    port: int
    secret: str
    certificate: str
    owner: tuple[int, int] = (0, 0)


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a process that is ready; ``error``: why it failed. ``port``, ``certificate``: of a gate."""

    port: int = 0
    certificate: str = ""
    error: str = ""


def socket_path(directory: Path, channel: Channel) -> Path:
    """Return the path of a channel's socket, at both ends."""
    return directory / SOCKETS / channel


def socket_uri(directory: Path, channel: Channel) -> str:
    """Return the socket's URI for libvirt."""
    return f"unix://{socket_path(directory, channel)}"


def libvirt_uri(directory: Path) -> str:
    """Return the URI of the destination's libvirtd, for the source's libvirtd."""
    return f"qemu+unix:///system?socket={socket_path(directory, Channel.LIBVIRT)}"
