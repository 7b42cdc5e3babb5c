"""State of this host's packet filter: fetched as a whole, kept in memory, and applied to the kernel.

The filter handles states, not deltas. A refresh fetches the state after its callers arrived, so many callers share one
fetch, and the newest state is applied last. An order for a new guest includes the guest's rules. If they differ from
the known rules, the whole state is fetched, since neither shows which is newer. A guest has its rules before it runs.
If the conductor says that the network backend filters, nova's own rules are removed, and none are added.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from nova import errors, failures
from nova.compute.filter.host_filter import CURE, HostFilter
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network import security_rules
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

class _Held(NamedTuple):
    guest: GuestFirewall
    turn: int  # turn in which it was stored


class _Turns:
    """Coalesces requests: each caller needs a run of the work that begins after its request; waiting callers share one
    run."""

    def __init__(self) -> None:
        self._count, self._working = threading.Lock(), threading.Lock()
        self._came = self._done = 0

    def take(self, work: Callable[[], None]) -> None:
        with self._count:
            self._came += 1
            mine = self._came
        with self._working:
            if self._done >= mine:
                return
            with self._count:
                covers = self._came
            work()
            self._done = covers


class Firewall:
    """The packet filter state of this host. ``here``: returns the UUIDs of the guests that the hypervisor has."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, filters: HostFilter,
                 here: Callable[[], Collection[str]]
                 ) -> None:
        self._conductor, self._host, self._filters, self._here = conductor, host, filters, here
        self._guests: dict[str, _Held] = {}
        self._dropped: tuple[AllowedTraffic, ...] = ()
        self._gone: set[str] = set()  # guests that left, whose rows may not show it yet
        self._turn = 0  # incremented by each order that brings a guest
        self._known = False  # the state has been received from the conductor
        self._elsewhere = False  # the conductor says that the network backend filters
        self._withdrawn = False  # and nova's own rules have been removed
        self._lock = threading.Lock()  # protects the above
        self._asking, self._applying = _Turns(), _Turns()

    def refresh(self) -> None:
        """Apply to the kernel all that is committed at the time of the call. Raises Unavailable."""
        self._asking.take(self._ask)

    def repair(self) -> None:
        """Restore the wanted rules in the kernel, regardless of the cause of a change. Does not ask the conductor."""
        if self._known and not self._elsewhere:
            self._apply()

    def guard(self, build: BuildOrder) -> None:
        uuid, given = build.server_uuid, build.firewall
        with self._lock:
            self._gone.discard(uuid)
        if given is None and self._elsewhere:
            return
        known = self._held(uuid)
        if self._elsewhere or (given is None if known is None else
                               given not in (None, known) or _missing(build, known)):
            self.refresh()
            known = self._held(uuid)
        if self._elsewhere:
            return
        with self._lock:
            if known is None:
                self._put(given or _closed(build))
            elif missing := _missing(build, known):
                self._put(msgspec.structs.replace(known, interfaces=(*known.interfaces, *missing)))
        self._apply()
        if build.interfaces and (reason := self._filters.lacks()):
            raise errors.host.GroupsNotHeld(host=self._host, reason=reason, cure=CURE)

    def drop(self, server_uuid: str) -> None:
        with self._lock:
            gone = self._guests.pop(server_uuid, None)
            self._gone.add(server_uuid)
        if gone is not None:
            with failures.keep_running(LOG, "could not remove the rules of a guest that is gone: %s",
                    level=logging.WARNING, extra={"server": server_uuid}):
                self._apply()

    def taps(self) -> tuple[str, ...]:
        """Return the devices of all known guests."""
        with self._lock:
            held = tuple(self._guests.values())
        return tuple(one.device for guest, _ in held for one in guest.interfaces)

    # -- internals

    def _held(self, server_uuid: str) -> GuestFirewall | None:
        with self._lock:
            held = self._guests.get(server_uuid)
        return held.guest if held is not None else None

    def _put(self, guest: GuestFirewall) -> None:
        self._turn += 1
        self._guests[guest.server_uuid] = _Held(guest, self._turn)

    def _ask(self) -> None:
        while not self._take():
            LOG.debug("an order arrived while the packet filter's state was read; reading it again")
        self._apply()

    def _take(self) -> bool:
        """Fetch the state and store it. Return False if, meanwhile, an order brought a guest that the answer
        contradicts."""
        begun = self._turn
        whole: HostFirewall = self._conductor.host_firewall(self._host)
        if whole.kept_elsewhere:
            with self._lock:
                self._guests, self._dropped, self._gone = {}, (), set()
                self._known = self._elsewhere = True
            return True
        fresh = {guest.server_uuid: guest for guest in whole.guests}
        here = self._here_still(fresh)
        with self._lock:
            self._gone &= set(fresh)
            fresh = {uuid: guest for uuid, guest in fresh.items() if uuid not in self._gone}
            came = {uuid: held for uuid, held in self._guests.items() if held.turn > begun}
            if any(fresh.get(uuid, held.guest) != held.guest for uuid, held in came.items()):
                return False
            kept = {uuid: held for uuid, held in self._guests.items()
                    if uuid not in fresh and (uuid in came or uuid in here)}
            self._guests = {**{uuid: _Held(guest, begun) for uuid, guest in fresh.items()}, **kept}
            self._dropped, self._known, self._elsewhere = whole.dropped, True, False
        return True

    def _here_still(self, fresh: Mapping[str, GuestFirewall]) -> set[str]:
        """Return guests that are no longer in the fetched state but are still on this host: their rules stay, because
        they could send."""
        with self._lock:
            others = set(self._guests) - set(fresh)
        return others & set(self._here()) if others else set()

    def _apply(self) -> None:
        self._applying.take(self._write)

    def _write(self) -> None:
        if self._elsewhere:
            self._withdraw()
            return
        self._withdrawn = False
        with self._lock:
            state = HostFirewall(host=self._host, dropped=self._dropped,
                                 guests=tuple(held.guest for held in self._guests.values()))
        if self._filters.apply(state):
            LOG.info("applied the packet filter rules of %d guests", len(state.guests))

    def _withdraw(self) -> None:
        """Remove rules that an earlier process left: they would restrict guests that the network backend filters. Never
        fails, because this must not keep guests from starting; the conductor's next state tries again."""
        if self._withdrawn:
            return
        with failures.best_effort(LOG, "the network backend filters packets, but nova-compute's own rules could not be "
                "removed: %s"):
            if self._filters.withdraw():
                LOG.info("the network backend filters packets; removed nova-compute's own rules")
            self._withdrawn = True


def _missing(build: BuildOrder, known: GuestFirewall) -> tuple[GuardedInterface, ...]:
    """Return the interfaces of the order that the known rules of the guest do not cover."""
    devices = {interface.device for interface in known.interfaces}
    return tuple(one for one in security_rules.guarded(build.interfaces) if one.device not in devices)


def _closed(build: BuildOrder) -> GuestFirewall:
    """Return rules for a guest with unknown security groups: it may send from its own addresses and receives replies
    only."""
    LOG.warning("the security groups of guest %s are unknown: it may open connections, but receives none",
                build.instance_name, extra={"server": build.server_uuid})
    return GuestFirewall(server_uuid=build.server_uuid, id=build.id, instance_name=build.instance_name,
                         interfaces=security_rules.guarded(build.interfaces))


__all__ = ["Firewall"]
