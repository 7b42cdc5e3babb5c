"""Connections that the kernel knows, when the rules that let them in are no more: it would let them go on for ever.

Those that others began with a guest are forgotten; what the rules still let in begins anew with its next packet. A TCP
connection by which the guest itself goes on to send is known again as its own, and lasts until it falls silent.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Iterable, Iterator

from nova.model.security_groups import GuestFirewall, HostFirewall
from nova.privileged.runner import CommandFailed, Runner

LOG = logging.getLogger(__name__)

PROGRAM = "conntrack"
NO_FLOWS = 1  # its exit code when there was nothing to delete
PATIENCE_S = 10.0  # for all addresses of a change


def narrowed(before: HostFirewall, after: HostFirewall) -> tuple[str, ...]:
    """Addresses of guests that get less than they got. Pure."""
    less_for_all = bool(set(after.dropped) - set(before.dropped))
    known = {guest.server_uuid: guest for guest in before.guests}
    return tuple(dict.fromkeys(
        address for guest in after.guests if guest.server_uuid in known
        if less_for_all or set(known[guest.server_uuid].allowed) - set(guest.allowed)
        for address in _addresses(guest)))


def _addresses(guest: GuestFirewall) -> Iterator[str]:
    for interface in guest.interfaces:
        yield from interface.addresses


def forget(runner: Runner, addresses: Iterable[str], patience_s: float = PATIENCE_S) -> None:
    """Flows whose answers come from these addresses. Never fails: the rules hold for all that is new."""
    end = time.monotonic() + patience_s
    for address in addresses:
        if time.monotonic() >= end:
            LOG.warning("connections of guests that get less by their security groups now may last: there are too many")
            return
        family = "ipv6" if ipaddress.ip_address(address).version == 6 else "ipv4"
        try:
            runner.run([PROGRAM, "-D", "-f", family, "-r", address], ok=(0, NO_FLOWS))
        except CommandFailed as error:
            LOG.warning("connections that security groups do not let in any more may last: %s", error)
            return


__all__ = ["PROGRAM", "forget", "narrowed"]
