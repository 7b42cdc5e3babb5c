"""Announcements of addresses to neighbours and to the kernel: argument lists for arping(8), dhcp_release(1) and
conntrack(8)."""

from __future__ import annotations

import ipaddress
from enum import StrEnum

from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner

NONE_FOUND = 1  # conntrack's exit code if there was nothing to change
BIT = 0x20000000  # bit of a connection's mark: a rule must accept it; other bits belong to other programs
MARKED = f"{BIT:#x}/{BIT:#x}"


class Which(StrEnum):
    """Selector of translated connections: by original destination, or by source or destination of the replies."""

    TO = "-d"
    ANSWERED_BY = "-r"
    ANSWERED_TO = "-q"


@forwarded("announcements.announce", local=("runner",))
def announce(runner: CommandRunner, device: str, address: str, count: int) -> None:
    """Announce that the address is here now. Raises host.CommandFailed."""
    runner.run(["arping", "-U", address, "-A", "-I", device, "-c", str(count)])


@forwarded("announcements.release_lease", local=("runner",))
def release_lease(runner: CommandRunner, device: str, address: str, mac: str) -> None:
    """Make dnsmasq release the lease of an address. Raises host.CommandFailed."""
    runner.run(["dhcp_release", device, address, mac])


@forwarded("announcements.forget_connections", local=("runner",))
def forget_connections(runner: CommandRunner, which: Which, address: str) -> None:
    """Delete tracked connections, if there are any. Raises host.CommandFailed."""
    runner.run(["conntrack", "-D", which, address], ok=(0, NONE_FOUND))


@forwarded("announcements.mark_connections", local=("runner",))
def mark_connections(runner: CommandRunner, address: str) -> None:
    """Require an allowing rule again for connections whose replies come from the address: TCP connections are marked,
    others are deleted. Raises host.CommandFailed."""
    family = "ipv6" if ipaddress.ip_address(address).version == 6 else "ipv4"
    for argv in (["conntrack", "-U", "-f", family, "-p", "tcp", "-r", address, "-m", MARKED],
                 ["conntrack", "-D", "-f", family, "-r", address, "-m", f"0/{BIT:#x}"]):
        runner.run(argv, ok=(0, NONE_FOUND))


__all__ = ["BIT", "MARKED", "Which", "announce", "forget_connections", "mark_connections", "release_lease"]
