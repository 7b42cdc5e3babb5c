"""Servers' rows kept like what Neutron has: by its events, and gradually for all, as events are lost.

A row is written only while nothing runs on its server, and an interface goes only when Neutron says that its port is
gone, or another's: what could not be read is no reason.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nova import concurrency, context, errors
from nova.conductor.admission.interfaces import Interfaces
from nova.conductor.networking import neutron_views as views
from nova.conductor.networking.neutron_binding import OWNER, Binder
from nova.conductor.networking.neutron_known import DOUBT_S
from nova.conductor.world import World
from nova.db import interface_cache, migrations
from nova.model.base import utcnow
from nova.model.networks import Interface
from nova.model.orders import NetworkEvent
from nova.model.ports import ACTIVE, Port
from nova.model.server_parts import ExternalEvent

LOG = logging.getLogger(__name__)

BATCH = 50  # servers that are looked at together
LOOK_AGAIN_S, LONGEST_PAUSE_S, GIVE_UP_S = 0.5, 10.0, 900.0  # for servers that are busy
GATHER_S = 0.05  # for which events are gathered before anybody is told

CHANGED, PLUGGED, UNPLUGGED, DELETED = ("network-changed", "network-vif-plugged", "network-vif-unplugged",
                                        "network-vif-deleted")
EVENTS = (CHANGED, PLUGGED, UNPLUGGED, DELETED)
STATES = (PLUGGED, UNPLUGGED)


class Reader:
    """Interfaces as Neutron has them at this moment."""

    def __init__(self, binder: Binder) -> None:
        self._binder, self.client, self.known = binder, binder.client, binder.known

    def now(self, servers: Sequence[Any], settled: bool = False) -> dict[str, tuple[Interface, ...]]:
        """By server: two calls for a hundred of them, and one for what their ports refer to and nobody knows.
        ``settled``: without ports that their rows do not have and that may go again."""
        found = self._ports(servers, settled)
        ports = [port for mine in found.values() for port in mine]
        floating = self.client.floating_ips_of(port.id for port in ports)
        self._binder.known.forget(one.network_id for one in ports)
        around = self._binder.around(ports, floating)
        return {server.uuid: self._one(server, found[server.uuid], around) for server in servers}

    def _ports(self, servers: Sequence[Any], settled: bool) -> dict[str, list[Port]]:
        """Each server's; and those of its row that the list does not have are asked for by their ids."""
        found: dict[str, list[Port]] = {server.uuid: [] for server in servers}
        rows = {server.uuid: server for server in servers}
        known = {one.id: server.uuid for server in servers for one in server.interfaces or ()}
        for port in self.client.ports_of(found):
            server = rows.get(port.device_id)
            if server is not None and (known.get(port.id) == server.uuid
                                       or port.project_id in ("", server.project_id)
                                       and not (settled and self._may_be_late(port))):
                found[server.uuid].append(port)
        listed = {port.id for mine in found.values() for port in mine}
        for port in self.client.ports_by_id(one for one in known if one not in listed):
            if port.device_id == known[port.id]:
                found[known[port.id]].append(port)
        return found

    def _may_be_late(self, port: Port) -> bool:
        """Whether it may be of a request that was given up (by us, or lately by anybody): whoever did removes it."""
        if port.device_id in self.known.doubtful():
            return True
        return port.created_at is not None and (utcnow() - port.created_at).total_seconds() < DOUBT_S

    @staticmethod
    def _one(server: Any, ports: Sequence[Port], around: views.Around) -> tuple[Interface, ...]:
        before = {one.id: one for one in server.interfaces or ()}
        requested = getattr(server, "requested_networks", None) or ()  # not every query has it
        given = {one.port_id for one in requested if one.port_id}
        tags = {one.port_id or one.network_id: one.tag for one in requested}
        found = []
        for port in ports:
            old = before.get(port.id)
            tag = old.tag if old else tags.get(port.id)
            found.append(views.interface(port, around, tag, given=old.given if old else port.id in given))
        return views.ordered(found, server.interfaces or (), requested)


class Healer:
    """Goes round all servers at rest, a batch a turn."""

    def __init__(self, world: World, reader: Reader, batch: int = BATCH) -> None:
        self._world, self._reader, self._batch = world, reader, batch
        self._after = 0  # the key of the last server that was looked at

    def turn(self) -> int:
        """How many rows were corrected. Neutron that is away is no error: what is known stays."""
        with self._world.cell.reading() as tx:
            rows = interface_cache.page(tx, self._after, self._batch)
        self._after = rows[-1].id if len(rows) == self._batch else 0
        return self.correct(rows) if rows else 0

    def correct(self, rows: Sequence[Any]) -> int:
        try:
            found = self._reader.now(rows, settled=True)
        except errors.NovaError as error:
            LOG.warning("interfaces of %d servers could not be looked at: %s", len(rows), error.message)
            return 0
        wrong = [(row, found[row.uuid]) for row in rows if tuple(row.interfaces or ()) != found[row.uuid]]
        if not wrong:
            return 0
        return self._world.cell.transact(lambda tx: sum(interface_cache.write(tx, row, interfaces)
                                                        for row, interfaces in wrong))

    def ports(self, ids: Iterable[str]) -> Sequence[Port]:
        """Those that there are."""
        return self._reader.client.ports_by_id(ids)

    def clear_doubts(self) -> None:
        """Ports that a request made after its caller had given it up: nobody's, so they go."""
        doubtful = self._reader.known.doubtful()
        if not doubtful:
            return
        try:
            ports = self._reader.client.ports_of(doubtful)
            with self._world.cell.reading() as tx:  # after them: whose port it is, is known by now
                rows = interface_cache.read(tx, doubtful)
            for port in ports:
                if _made_late(port, rows.get(port.device_id)):
                    LOG.warning("port %s was made after its request had been given up: it is removed", port.id,
                                extra={"server": port.device_id})
                    self._reader.client.delete_port(port.id)
        except errors.NovaError as error:
            LOG.warning("ports that may have been made late could not be looked for: %s", error.message)

    def refresh(self, uuids: Sequence[str]) -> list[str]:
        """These now, as far as they are at rest; those that are not."""
        if not uuids:
            return []
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, uuids)
        resting = [row for row in rows.values() if row.task_state is None]
        if resting:
            self.correct(resting)
        return [uuid for uuid, row in rows.items() if row.task_state is not None]


def _made_late(port: Port, row: Any) -> bool:
    """``row``: its live server's; None: there is none."""
    if not port.device_owner.startswith(OWNER) or port.name:
        return False  # we name none
    if row is None:
        return True
    return row.task_state is None and port.project_id in ("", row.project_id) and port.id not in {
        one.id for one in row.interfaces or ()}


class Later:
    """Servers on which something ran when their rows were to be refreshed: that is done when it has ended, for no
    other event may come. ``refresh`` answers which of them still can't be; ``pause_s`` grows while it is all."""

    def __init__(self, refresh: Callable[[Sequence[str]], Sequence[str]], pause_s: float = LOOK_AGAIN_S) -> None:
        self._refresh, self.pause_s = refresh, pause_s
        self._waiting: dict[str, float] = {}  # until when
        self._looks = False
        self._lock = threading.Lock()

    def add(self, uuids: Iterable[str]) -> None:
        until = time.monotonic() + GIVE_UP_S
        with self._lock:
            self._waiting.update(dict.fromkeys(uuids, until))
            begins = bool(self._waiting) and not self._looks
            self._looks |= begins
        if begins:
            concurrency.spawn(self._look, name="network events of servers that were busy")

    def _look(self) -> None:
        pause = self.pause_s
        while True:
            concurrency.sleep(pause)
            with self._lock:
                now = time.monotonic()
                self._waiting = {uuid: until for uuid, until in self._waiting.items() if until > now}
                asked = list(self._waiting)
                self._looks = bool(asked)
            if not asked:
                return
            busy = self._try(asked)
            with self._lock:
                for uuid in set(asked) - busy:
                    self._waiting.pop(uuid, None)
            pause = min(2 * pause, LONGEST_PAUSE_S) if len(busy) == len(asked) else self.pause_s

    def _try(self, uuids: Sequence[str]) -> set[str]:
        try:
            return set(self._refresh(uuids))
        except Exception as error:  # a database that is away, say: this thread is the only one
            LOG.warning("interfaces of %d servers could not be refreshed yet: %s", len(uuids), error)
            return set(uuids)


class Events:
    """External events, gathered for a moment: one message a host, one look at Neutron for all that changed."""

    def __init__(self, world: World, healer: Healer, gather_s: float = GATHER_S) -> None:
        self._world, self._healer, self._gather_s = world, healer, gather_s
        self.late = Later(healer.refresh)
        self._waiting: list[tuple[ExternalEvent, str | None]] = []
        self.busy = 0  # how many gatherings are on their way
        self._lock = threading.Lock()

    def told(self, event: ExternalEvent, server: Any) -> None:
        with self._lock:
            first = not self._waiting
            self._waiting.append((event, server.host))
            self.busy += first
        if first:
            who = context.current().without_token()
            concurrency.spawn(self._later, who, name="network events")

    def _later(self, who: context.RequestContext) -> None:
        concurrency.sleep(self._gather_s)
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            with context.entered(who):
                self._pass_on(waiting)
        except errors.NovaError as error:  # hosts' waiters time out, and the next round heals
            LOG.warning("network events were lost: %s", error.message)
        finally:
            with self._lock:
                self.busy -= 1

    def _pass_on(self, waiting: Sequence[tuple[ExternalEvent, str | None]]) -> None:
        self._tell_hosts(waiting)
        unplugged = self._unplug([(event.server_uuid, event.tag) for event, _host in waiting
                                  if event.name == DELETED and event.tag])
        changed = dict.fromkeys([*(event.server_uuid for event, _host in waiting if event.name not in STATES),
                                 *self._news(event for event, _host in waiting)])
        self.late.add(self._healer.refresh([uuid for uuid in changed if uuid not in unplugged]))

    def _unplug(self, gone: Sequence[tuple[str, str]]) -> set[str]:
        """Begin to take interfaces whose ports are no more from their guests, whose rows have them: servers of which
        that is begun. What can not be begun now is a row's matter alone."""
        if not gone:
            return set()
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, sorted({uuid for uuid, _port in gone}))
        held = [(uuid, port) for uuid, port in dict.fromkeys(gone)
                if uuid in rows and port in {one.id for one in rows[uuid].interfaces or ()}]
        still = {port.id: port.device_id for port in self._healer.ports(port for _uuid, port in held)}
        return {uuid for uuid, port in held if still.get(port) != uuid and self._detached(uuid, port)}

    def _detached(self, uuid: str, port: str) -> bool:
        try:
            Interfaces(self._world, wait_s=0.0, undo_wait_s=0.0).detach_interface(uuid, port)
        except errors.NovaError as error:
            LOG.warning("the guest keeps interface %s, whose port was deleted, for now: %s", port, error.message,
                        extra={"server": uuid})
            return False
        LOG.info("interface %s is taken from the guest: its port was deleted", port, extra={"server": uuid})
        return True

    def _news(self, events: Iterable[ExternalEvent]) -> list[str]:
        """Servers of which a row does not know yet that a port is plugged: those of ports that were bound in one go
        (and of every second word about the others) know, and Neutron is not asked again."""
        plugged = {event.tag: event.server_uuid for event in events if event.name == PLUGGED}
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, sorted(set(plugged.values()))) if plugged else {}
        return [uuid for uuid, row in rows.items()
                if any(one.id in plugged and one.status != ACTIVE for one in row.interfaces or ())]

    def _tell_hosts(self, waiting: Sequence[tuple[ExternalEvent, str | None]]) -> None:
        hosts: dict[str, dict[NetworkEvent, None]] = {}
        moving = self._destinations({event.server_uuid for event, _host in waiting if event.name != CHANGED})
        for event, host in waiting:
            if event.name == CHANGED or not event.tag:
                continue
            told = NetworkEvent(server_uuid=event.server_uuid, name=event.name, interface_id=event.tag,
                                status=event.status)
            for one in dict.fromkeys((host, *moving.get(event.server_uuid, ()))):
                if one:
                    hosts.setdefault(one, {})[told] = None
        for one, events in hosts.items():
            try:
                self._world.compute.network_events(one, tuple(events))
            except errors.NovaError as error:
                LOG.warning("host %s was not told of network events: %s", one, error.message)

    def _destinations(self, uuids: set[str]) -> dict[str, tuple[str, ...]]:
        """Where servers are on their way to."""
        if not uuids:
            return {}
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, sorted(uuids))
            moving = [uuid for uuid, row in rows.items() if row.task_state is not None]
            return {uuid: tuple(move.dest_compute for move in migrations.live_of(tx, uuid) if move.dest_compute)
                    for uuid in moving}


__all__ = ["BATCH", "EVENTS", "Events", "Healer", "Reader"]
