"""Connections that the kernel knows, when the rules that let them in are no more: it would let them go on for ever.

Those that others began with a guest have to be let in by a rule again. To forget them is not enough: the next packet
that the guest sends of a TCP connection would begin it anew, as the guest's own, and its answers come in. So TCP's are
kept and marked: what is marked does not pass as established any more (:mod:`nova.compute.filter.packet_rules`), and
each packet of who began it is let in by a rule or by none. Of what has no beginning of its own (UDP, ping) the next
packet decides.
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
PATIENCE_S = 10.0  # for all addresses of a change


def narrowed(before: HostFirewall, after: HostFirewall) -> tuple[str, ...]:
    """Addresses of guests that get less than they got. Pure."""
    less_for_all = bool(set(after.dropped) - set(before.dropped))
    known = {guest.server_uuid: guest for guest in before.guests}
    return _of(guest for guest in after.guests if guest.server_uuid in known
               and (less_for_all or set(known[guest.server_uuid].allowed) - set(guest.allowed)))


def everybody(state: HostFirewall) -> tuple[str, ...]:
    """Addresses of all guests. Pure."""
    return _of(state.guests)


def _of(guests: Iterable[GuestFirewall]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address for guest in guests for interface in guest.interfaces
                               for address in interface.addresses))


def judge_anew(runner: CommandRunner, addresses: Iterable[str], patience_s: float = PATIENCE_S) -> None:
    """Connections whose answers come from these addresses. Never fails: the rules hold for all that is new."""
    end = time.monotonic() + patience_s
    for address in addresses:
        if time.monotonic() >= end:
            LOG.warning("connections of guests that get less by their security groups now may last: there are too many")
            return
        try:
            mark_connections(runner, address)
        except errors.host.CommandFailed as error:
            LOG.warning("connections that security groups do not let in any more may last: %s", error)
            return


__all__ = ["PROGRAM", "everybody", "judge_anew", "narrowed"]
