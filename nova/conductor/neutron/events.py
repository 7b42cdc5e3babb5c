"""Neutron's events about servers' interfaces: forwarded to their hosts, and a reason to refresh the interfaces."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from nova import concurrency, context, errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.neutron.health import Healer
from nova.db.server import interface_cache, migrations
from nova.db.server.servers import PlacedServer
from nova.model.guest.orders import NetworkEvent
from nova.model.network.ports import ACTIVE
from nova.model.server.server_parts import ExternalEvent

LOG = logging.getLogger(__name__)

LOOK_AGAIN_S, LONGEST_PAUSE_S, GIVE_UP_S = 0.5, 10.0, 900.0  # retries for busy servers
GATHER_S = 0.05  # seconds for which events are gathered before they are forwarded

CHANGED, PLUGGED, UNPLUGGED, DELETED = ("network-changed", "network-vif-plugged", "network-vif-unplugged",
                                        "network-vif-deleted")
STATES = (PLUGGED, UNPLUGGED)
BEGUN, BUSY, NEVER = "begun", "busy", "never"


#: Begins to detach an interface (server, port) from a guest. Raises Conflict or Unavailable if that is impossible now.
Detach = Callable[[str, str], None]


class Later:
    """Deferred refresh of servers that were busy: it runs when their operation has ended, since no further event may
    come. ``refresh`` returns the servers that are still busy. ``pause_s`` grows while all of them are."""

    def __init__(self, refresh: Callable[[Sequence[str]], Sequence[str]], pause_s: float = LOOK_AGAIN_S) -> None:
        self._refresh, self.pause_s = refresh, pause_s
        self._waiting: dict[str, float] = {}  # server -> end of the retries
        self._looks = False
        self._lock = threading.Lock()

    def add(self, uuids: Iterable[str]) -> None:
        """Start the retries, unless they run already. A server that stays busy for 15 minutes is dropped."""
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
        with failures.keep_running(LOG, "could not refresh the interfaces of %d servers yet: %s", len(uuids),
                level=logging.WARNING):  # for example, the database is away: this is the only thread
            return set(self._refresh(uuids))
        return set(uuids)


class EventGatherer:
    """Gathering of external events for a moment: one message for each host, and one refresh for all changes."""

    def __init__(self, deps: Deps, healer: Healer, detach: Detach, gather_s: float = GATHER_S) -> None:
        self._world, self._healer, self._take_out, self._gather_s = deps, healer, detach, gather_s
        self.late = Later(self._again)
        self._gone: dict[tuple[str, str], float] = {}  # (server, port) to detach from the guest -> end of the retries
        self._waiting: list[tuple[ExternalEvent, str | None]] = []
        self.busy = 0  # number of running gatherings
        self._lock, self._turn = threading.Lock(), threading.Lock()
        healer.lost = self.missed

    def missed(self, lost: Collection[tuple[str, str]]) -> None:
        """Detach ports (server, port) that healing found to be deleted, without an event. The event may also have
        reached a conductor that died while it waited for the server's operation."""
        if lost:
            until = time.monotonic() + GIVE_UP_S
            with self._turn:
                self._keep({**self._gone, **dict.fromkeys(lost, until)})
            with context.entered(context.internal()):
                self.late.add(self._again(list(dict.fromkeys(uuid for uuid, _port in lost))))

    def received(self, event: ExternalEvent, server: PlacedServer) -> None:
        """Gather an event for a moment, and forward it to hosts together with others."""
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
        try:  # waiting hosts time out, and the next healing turn repairs the rows
            with failures.best_effort(LOG, "network events were dropped: %s"), context.entered(who):
                self._pass_on(waiting)
        finally:
            with self._lock:
                self.busy -= 1

    def _pass_on(self, waiting: Sequence[tuple[ExternalEvent, str | None]]) -> None:
        self._pass_to_hosts(waiting)
        until = time.monotonic() + GIVE_UP_S
        with self._turn:
            self._keep({**self._gone, **{(event.server_uuid, event.tag): until for event, _host in waiting
                                         if event.name == DELETED and event.tag}})
        changed = list(dict.fromkeys([*(event.server_uuid for event, _host in waiting if event.name not in STATES),
                                      *self._news(event for event, _host in waiting)]))
        try:
            changed = self._again(changed)
        except errors.NovaError as error:
            LOG.warning("could not read the interfaces of %d servers yet: %s", len(changed), error.message)
        self.late.add(changed)

    def _again(self, uuids: Sequence[str]) -> list[str]:
        """Update these servers' rows from Neutron. Returns the servers that are busy."""
        with self._turn:
            begun, busy = self._unplug(uuids)
        return [*busy, *self._healer.refresh([uuid for uuid in uuids if uuid not in begun | busy])]

    # -- interfaces of deleted ports

    def _unplug(self, uuids: Sequence[str]) -> tuple[set[str], set[str]]:
        """Begin to detach deleted ports from these servers' guests. Returns (servers with a begun detach, busy
        servers). If a detach is impossible, only the row is updated."""
        gone = self._asked_for(uuids)
        if not gone:
            return set(), set()
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, sorted({uuid for uuid, _port in gone}))
        held = [(uuid, port) for uuid, port in gone
                if uuid in rows and port in {one.id for one in rows[uuid].interfaces or ()}]
        there = {(port.device_id, port.id) for port in self._healer.ports(port for _uuid, port in held)}
        ends: dict[str, set[str]] = {BEGUN: set(), BUSY: set(), NEVER: set()}
        for uuid, port in held:
            if (uuid, port) not in there:
                ends[BUSY if rows[uuid].task_state is not None else self._detach(uuid, port)].add(uuid)
        self._keep({pair: until for pair, until in self._gone.items() if pair not in gone or pair[0] in ends[BUSY]})
        return ends[BEGUN], ends[BUSY]

    def _asked_for(self, uuids: Sequence[str]) -> list[tuple[str, str]]:
        now = time.monotonic()
        self._keep({pair: until for pair, until in self._gone.items() if until > now})
        return [pair for pair in self._gone if pair[0] in uuids]

    def _keep(self, gone: dict[tuple[str, str], float]) -> None:
        self._gone = gone
        self._healer.spared = {uuid for uuid, _port in gone}

    def _detach(self, uuid: str, port: str) -> str:
        try:
            self._take_out(uuid, port)
        except (errors.server.InterfacesBusy, errors.server.InterfacesUnsettled):
            return BUSY
        except errors.NovaError as error:
            LOG.warning("interface %s stays in the guest for now, although its port was deleted: %s",
                        port, error.message,
                        extra={"server": uuid})
            return NEVER
        LOG.info("detaching interface %s from the guest: its port was deleted", port, extra={"server": uuid})
        return BEGUN

    def _news(self, events: Iterable[ExternalEvent]) -> list[str]:
        """Return the servers whose rows do not show yet that a port is plugged. If a port was bound in one step with
        others, its row shows it already. The same holds at every second event about the other ports. Neutron is not
        asked again for these servers."""
        plugged = {event.tag: event.server_uuid for event in events if event.name == PLUGGED}
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, sorted(set(plugged.values()))) if plugged else {}
        return [uuid for uuid, row in rows.items()
                if any(one.id in plugged and one.status != ACTIVE for one in row.interfaces or ())]

    def _pass_to_hosts(self, waiting: Sequence[tuple[ExternalEvent, str | None]]) -> None:
        hosts: dict[str, dict[NetworkEvent, None]] = {}
        moving = self._destinations({event.server_uuid for event, _host in waiting if event.name != CHANGED})
        for event, host in waiting:
            if event.name == CHANGED or not event.tag:
                continue
            message = NetworkEvent(server_uuid=event.server_uuid, name=event.name, interface_id=event.tag,
                                   status=event.status)
            for one in dict.fromkeys((host, *moving.get(event.server_uuid, ()))):
                if one:
                    hosts.setdefault(one, {})[message] = None
        for one, events in hosts.items():
            with failures.best_effort(LOG, "could not forward network events to host %s: %s", one):
                self._world.compute.network_events(one, tuple(events))

    def _destinations(self, uuids: set[str]) -> dict[str, tuple[str, ...]]:
        """Return the destination hosts of moving servers."""
        if not uuids:
            return {}
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, sorted(uuids))
            moving = [uuid for uuid, row in rows.items() if row.task_state is not None]
            return migrations.destinations(tx, moving) if moving else {}


__all__ = ["EventGatherer", "Later"]
