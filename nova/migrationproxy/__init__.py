"""Takes one guest's live migration from one libvirtd to another, so that no libvirtd listens to other hosts.

The destination's nova-compute starts a *gate* for the move: it listens on one TCP port with a certificate of its own,
lets in who knows the move's secret, and passes on to the libvirtd beside it the calls of this very migration and
nothing else. The source's nova-compute starts a *tunnel*: Unix sockets that its libvirtd and QEMU are told to call,
each connection of which is carried to the gate. Memory and disks go the same way, so that they are encrypted, too.

Each is a process of its own (``python -m nova.migrationproxy``): a migration goes on while nova-compute restarts. It
ends with the migration, with the directory that it works in, or after a day.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec

#: The same on all hosts: a migration's sockets must have one path at both ends.
DIRECTORY = Path("/run/nova-migrations")
SOCKETS = "qemu"  # within a move's directory: QEMU may write there, so that nothing else is kept in it
PID_FILE = "proxy.pid"  # kept open by the process for as long as it lives
NOTES_FILE = "refused"  # what it refused, or could not do: a line each
LIBVIRT_URI = "qemu:///system"
SECRET_DIGITS = 64


class Channel(StrEnum):
    """What a connection carries; the name of its socket. One letter says it on the wire."""

    LIBVIRT = "libvirt"
    MEMORY = "memory"
    DISKS = "disks"


class GatePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate is told. ``definition``: the guest as this host itself would define it. ``libvirt``: the socket of
    the libvirtd beside it. ``owner``: QEMU's user and group on this host."""

    directory: str
    address: str
    ports: tuple[int, int]
    secret: str
    definition: str
    libvirt: str = "/run/libvirt/libvirt-sock"
    owner: tuple[int, int] = (0, 0)


class TunnelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a tunnel is told. ``certificate``: the gate's, as PEM. ``owner``: as a gate's."""

    directory: str
    address: str
    port: int
    secret: str
    certificate: str
    owner: tuple[int, int] = (0, 0)


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What a process answers when it is ready; ``error``: why it is not. ``port``, ``certificate``: of a gate."""

    port: int = 0
    certificate: str = ""
    error: str = ""


def socket_path(directory: Path, channel: Channel) -> Path:
    """Where a channel's socket lies, at both ends."""
    return directory / SOCKETS / channel


def socket_uri(directory: Path, channel: Channel) -> str:
    """As libvirt is told of it."""
    return f"unix://{socket_path(directory, channel)}"


def libvirt_uri(directory: Path) -> str:
    """The destination's libvirtd, as the source's is told of it."""
    return f"qemu+unix:///system?socket={socket_path(directory, Channel.LIBVIRT)}"
