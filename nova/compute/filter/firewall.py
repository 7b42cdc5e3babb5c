"""What may reach this host's guests, and what they may send: asked for whole, kept in memory, brought to the kernel.

States, not deltas. A refresh asks after whoever wanted it has come, so many of them wait for one asking, and the newest
word is applied last. An order for a guest that is new here brings the guest's part along; where that and what is known
differ, the whole is asked for, since neither says which is newer. A guest has its rules before it runs. Where the
conductor says that whoever keeps the networks filters, what stands here of ours goes, and nothing is added.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from nova import errors
from nova.compute.filter.host_filter import CURE, HostFilter
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network import security_rules
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

class _Held(NamedTuple):
    guest: GuestFirewall
    turn: int  # when it was put here


class _Turns:
    """Whoever comes wants something done that begins after it came; those who waited find it done."""

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
    """``here``: the uuids of guests that the hypervisor has."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, filters: HostFilter,
                 here: Callable[[], Collection[str]]
                 ) -> None:
        self._conductor, self._host, self._filters, self._here = conductor, host, filters, here
        self._guests: dict[str, _Held] = {}
        self._dropped: tuple[AllowedTraffic, ...] = ()
        self._gone: set[str] = set()  # guests that left, whose rows may still say otherwise
        self._turn = 0  # each order that brings a guest is one
        self._known = False  # what the conductor says
        self._elsewhere = False  # it says that others filter
        self._withdrawn = False  # and nothing of ours stands here any more
        self._lock = threading.Lock()  # of the above
        self._asking, self._applying = _Turns(), _Turns()

    def refresh(self) -> None:
        """What is committed when it is called is in the kernel when it is answered. Unavailable."""
        self._asking.take(self._ask)

    def mend(self) -> None:
        """Bring the kernel back to what is wanted, whoever changed it. Asks nobody."""
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
            try:
                self._apply()
            except Exception as error:
                LOG.warning("rules of a guest that is gone are still there: %s", error, extra={"server": server_uuid})

    def taps(self) -> tuple[str, ...]:
        """Devices of the guests that are known."""
        with self._lock:
            held = tuple(self._guests.values())
        return tuple(one.device for guest, _ in held for one in guest.interfaces)

    # -- within

    def _held(self, server_uuid: str) -> GuestFirewall | None:
        with self._lock:
            held = self._guests.get(server_uuid)
        return held.guest if held is not None else None

    def _put(self, guest: GuestFirewall) -> None:
        self._turn += 1
        self._guests[guest.server_uuid] = _Held(guest, self._turn)

    def _ask(self) -> None:
        while not self._take():
            LOG.debug("an order came while the packet filter's state was read: it is read again")
        self._apply()

    def _take(self) -> bool:
        """Ask, and believe the answer. False: an order brought a guest meanwhile that the answer contradicts."""
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
        """Guests that nobody names any more and that are here all the same: their rules stay, for they could send."""
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
            LOG.info("the packet filter has the rules of %d guests", len(state.guests))

    def _withdraw(self) -> None:
        """What an earlier life of ours left would hold guests back whom others filter. Never fails: no reason to keep
        guests from starting. The next word of the conductor's tries again."""
        if self._withdrawn:
            return
        try:
            if self._filters.withdraw():
                LOG.info("whoever keeps the networks filters: nova-compute's own rules are removed")
            self._withdrawn = True
        except errors.NovaError as error:
            LOG.warning("whoever keeps the networks filters, but nova-compute's own rules are there still: %s", error)


def _missing(build: BuildOrder, known: GuestFirewall) -> tuple[GuardedInterface, ...]:
    """Interfaces of the order that the guest is not known to have."""
    devices = {interface.device for interface in known.interfaces}
    return tuple(one for one in security_rules.guarded(build.interfaces) if one.device not in devices)


def _closed(build: BuildOrder) -> GuestFirewall:
    """A guest that nobody says anything about may send as itself, and gets answers."""
    LOG.warning("nothing is known of the security groups of guest %s: it is let reach others, and nobody reaches it",
                build.instance_name, extra={"server": build.server_uuid})
    return GuestFirewall(server_uuid=build.server_uuid, id=build.id, instance_name=build.instance_name,
                         interfaces=security_rules.guarded(build.interfaces))


__all__ = ["Firewall"]
