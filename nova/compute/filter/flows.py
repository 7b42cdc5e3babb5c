"""Tracked connections whose allowing rules were removed: without action, the kernel would keep them open forever.

Connections that others opened to a guest must match a rule again. Deleting them from the connection table is not
enough: the guest's next packet of a TCP connection would reopen it as the guest's own, and its replies would come in.
So TCP connections are kept and marked. A marked connection no longer passes as established
(:mod:`nova.compute.filter.packet_rules`), and each packet of its originator needs an allowing rule. For protocols
without a handshake (UDP, ping), the next packet decides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from nova import errors
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.privileged.announcements import mark_connections
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

PROGRAM = "conntrack"
TIMEOUT_S = 10.0  # for all addresses of a change


def narrowed(before: HostFirewall, after: HostFirewall) -> tuple[str, ...]:
    """Return the addresses of guests that may receive less than before. Pure."""
    less_for_all = bool(set(after.dropped) - set(before.dropped))
    known = {guest.server_uuid: guest for guest in before.guests}
    return _of(guest for guest in after.guests if guest.server_uuid in known
               and (less_for_all or set(known[guest.server_uuid].allowed) - set(guest.allowed)))


def everybody(state: HostFirewall) -> tuple[str, ...]:
    """Return the addresses of all guests. Pure."""
    return _of(state.guests)


def _of(guests: Iterable[GuestFirewall]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address for guest in guests for interface in guest.interfaces
                               for address in interface.addresses))


def recheck(runner: CommandRunner, addresses: Iterable[str], timeout_s: float = TIMEOUT_S) -> None:
    """Recheck connections whose replies come from these addresses. Never fails: the rules apply to all new
    connections."""
    end = time.monotonic() + timeout_s
    for address in addresses:
        if time.monotonic() >= end:
            LOG.warning("too many connections to recheck: some that the security groups no longer allow may stay open")
            return
        try:
            mark_connections(runner, address)
        except errors.host.CommandFailed as error:
            LOG.warning("connections that the security groups no longer allow may stay open: %s", error)
            return


__all__ = ["PROGRAM", "everybody", "recheck", "narrowed"]
