"""Healing of interfaces: servers' rows follow Neutron's ports, gradually for all servers, and immediately after an
event.

A row is written only while no operation runs on its server. An interface is removed only if Neutron reports its port as
deleted, or as another server's; a failed read proves neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from nova import context, errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.neutron import views
from nova.conductor.neutron.binding import Binder
from nova.conductor.neutron.cache import DOUBT_S
from nova.db.server import interface_cache
from nova.db.server.interface_cache import CachedServer
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import DetailRow
from nova.model.base import utcnow
from nova.model.network.networks import Interface
from nova.model.network.ports import ACTIVE, OWNER, Port, belongs

LOG = logging.getLogger(__name__)

BATCH = 50  # servers that are read together
STATES_WITHIN_S = 5.0  # longest wait of a start for the check of its ports' states


class Reader:
    """Reader of interfaces from Neutron's current ports."""

    def __init__(self, binder: Binder) -> None:
        self._binder, self.client, self.known = binder, binder.client, binder.known

    def now(self, servers: Sequence[ServerRow | CachedServer | DetailRow], settled: bool = False
            ) -> dict[str, tuple[Interface, ...]]:
        """Return the current interfaces by server: two calls for a hundred servers, and one for uncached networks.
        ``settled``: without ports that their rows do not have and that may be deleted again."""
        found = self._ports(servers, settled)
        ports = [port for mine in found.values() for port in mine]
        floating = self.client.floating_ips_of(port.id for port in ports)
        self._binder.known.forget(one.network_id for one in ports)
        around = self._binder.around(ports, floating)
        return {server.uuid: self._one(server, found[server.uuid], around) for server in servers}

    def _ports(self, servers: Sequence[ServerRow | CachedServer | DetailRow], settled: bool) -> dict[str, list[Port]]:
        """Return each server's ports. Ports of its row that the list lacks are read by ID."""
        found: dict[str, list[Port]] = {server.uuid: [] for server in servers}
        rows = {server.uuid: server for server in servers}
        known = {one.id: server.uuid for server in servers for one in server.interfaces or ()}
        for port in self.client.ports_of(found):
            server = rows.get(port.device_id)
            if server is not None and (known.get(port.id) == server.uuid
                                       or belongs(port, server.uuid, server.project_id)
                                       and not (settled and self._may_be_late(port))):
                found[server.uuid].append(port)
        listed = {port.id for mine in found.values() for port in mine}
        for port in self.client.ports_by_id(one for one in known if one not in listed):
            if port.device_id == known[port.id]:
                found[known[port.id]].append(port)
        return found

    def recheck_networks(self, ops: Sequence[Op]) -> None:
        """Refresh the states of interfaces that rows show as not connected. Events during an operation on the server
        may not be in the row yet, or were lost."""
        unsure = {one.id for op in ops for one in op.server.interfaces or () if one.status not in (None, ACTIVE)}
        if not unsure:
            return
        try:
            with context.waited_for(STATES_WITHIN_S, again=False):
                ports = {(port.device_id, port.id): port.status for port in self.client.ports_by_id(unsure)}
        except errors.NovaError as error:  # in this case the host waits for the interfaces
            LOG.warning("could not check whether %d interfaces are connected: %s", len(unsure), error.message)
            return
        for op in ops:
            before = op.server.interfaces or ()
            now = tuple(msgspec.structs.replace(one, status=ports.get((op.uuid, one.id), one.status)) for one in before)
            if now != before:
                op.write(interfaces=now)

    def _may_be_late(self, port: Port) -> bool:
        """True if the port may be of an abandoned request, of this process or of another one recently: that process
        removes it."""
        if port.device_id in self.known.pending():
            return True
        return port.created_at is not None and (utcnow() - port.created_at).total_seconds() < DOUBT_S

    @staticmethod
    def _one(server: ServerRow | CachedServer | DetailRow, ports: Sequence[Port], around: views.Around
             ) -> tuple[Interface, ...]:
        before = {one.id: one for one in server.interfaces or ()}
        requested = () if isinstance(server, DetailRow) else server.requested_networks or ()
        given = {one.port_id for one in requested if one.port_id}
        tags = {one.port_id or one.network_id: one.tag for one in requested}
        found = []
        for port in ports:
            old = before.get(port.id)
            tag = old.tag if old else tags.get(port.id)
            found.append(views.interface(port, around, tag, given=old.given if old else port.id in given))
        return views.ordered(found, server.interfaces or (), requested)


class Healer:
    """Healing of all servers without an operation, a batch each turn."""

    def __init__(self, deps: Deps, reader: Reader, batch: int = BATCH) -> None:
        self._world, self._reader, self._batch = deps, reader, batch
        self._after = 0  # key of the last server read
        self._asked: set[tuple[str, str]] = set()  # (server, port) that :attr:`lost` was called with
        self.spared: Collection[str] = ()  # servers whose guests must release interfaces that their rows still have
        #: Called with (server, port) of deleted ports: the guest releases the interface before its row drops it.
        self.lost: Callable[[Collection[tuple[str, str]]], None] | None = None

    def turn(self) -> int:
        """Run one turn and return the number of corrected rows. If Neutron is away, the rows stay unchanged, and no
        error is raised."""
        with self._world.cell.reading() as tx:
            rows = interface_cache.page(tx, self._after, self._batch)
        self._after = rows[-1].id if len(rows) == self._batch else 0
        looked_at = [row for row in rows if row.uuid not in self.spared]
        with failures.best_effort(LOG, "could not read the interfaces of %d servers: %s", len(looked_at)):
            return self.correct(looked_at, all_seen=False) if looked_at else 0
        return 0

    def correct(self, rows: Sequence[ServerRow | CachedServer], all_seen: bool = True) -> int:
        """Correct rows that differ from Neutron. Raises NovaError of Neutron or the database. ``all_seen`` False: an
        answer without any port for several servers is not trusted; Neutron may see nova as an ordinary user."""
        found = self._reader.now(rows, settled=True)
        plugged = sum(bool(row.interfaces) for row in rows)
        if not all_seen and plugged > 1 and not any(found.values()):
            LOG.warning("Neutron shows no port of %d servers that have some; leaving their rows unchanged. Are the "
                        "credentials in [neutron] an administrator's?", plugged)
            return 0
        wrong = [(row, found[row.uuid]) for row in rows if tuple(row.interfaces or ()) != found[row.uuid]]
        if self.lost is not None and not all_seen:
            asked = self._ask_for_lost(rows, found)
            wrong = [(row, now) for row, now in wrong if row.uuid not in asked]
        if not wrong:
            return 0
        return self._world.cell.transact(lambda tx: sum(interface_cache.write(tx, row, interfaces)
                                                        for row, interfaces in wrong))

    def _ask_for_lost(self, rows: Sequence[ServerRow | CachedServer],
                      found: Mapping[str, tuple[Interface, ...]]) -> set[str]:
        """Ask guests to release interfaces without ports, and return their servers; their rows are written afterwards.

        Once for each port, so that a guest that keeps its interface is not asked for ever. Only in projects of which
        Neutron shows a port: credentials that have lost the administrator role see only their own project.
        """
        seen = {row.project_id for row in rows if found[row.uuid]}
        gone = {(row.uuid, one): row for row in rows for one in _ids(row.interfaces or ()) - _ids(found[row.uuid])}
        lost = [pair for pair, row in gone.items() if row.project_id in seen and pair not in self._asked]
        looked_at = {row.uuid for row in rows}
        self._asked = {pair for pair in self._asked if pair in gone or pair[0] not in looked_at} | set(lost)
        assert self.lost is not None
        self.lost(lost)
        return {uuid for uuid, _port in lost}

    def ports(self, ids: Iterable[str]) -> Sequence[Port]:
        """Return the ports that exist."""
        return self._reader.client.ports_by_id(ids)

    def delete_late_ports(self) -> None:
        """Delete ports that a request created after its caller had abandoned it."""
        pending = self._reader.known.pending()
        if not pending:
            return
        with failures.best_effort(LOG, "could not look for ports that were created late: %s"):
            ports = self._reader.client.ports_of(pending)
            with self._world.cell.reading() as tx:  # read after the ports: their owner is known by now
                rows = interface_cache.read(tx, pending)
            for port in ports:
                if _made_late(port, rows.get(port.device_id)):
                    LOG.warning("port %s was created after its request had been abandoned; removing it", port.id,
                                extra={"server": port.device_id})
                    self._reader.client.delete_port(port.id)

    def refresh(self, uuids: Sequence[str]) -> list[str]:
        """Refresh these servers now, unless they are busy. Returns the servers that were not refreshed, because they
        are busy or Neutron is away."""
        if not uuids:
            return []
        with self._world.cell.reading() as tx:
            rows = interface_cache.read(tx, uuids)
        resting = [row for row in rows.values() if not row.busy]
        try:
            if resting:
                self.correct(resting)
        except errors.NovaError as error:
            LOG.warning("could not read the interfaces of %d servers yet: %s", len(resting), error.message)
            return list(rows)
        return [uuid for uuid, row in rows.items() if row.busy]


def _ids(interfaces: Iterable[Interface]) -> set[str]:
    return {one.id for one in interfaces}


def _made_late(port: Port, row: CachedServer | None) -> bool:
    """True if the port was created late and belongs to no server. ``row``: the live server's row, or None."""
    if not port.device_owner.startswith(OWNER) or port.name:
        return False  # nova gives its ports no names
    if row is None:
        return True
    return not row.busy and belongs(port, row.uuid, row.project_id) and port.id not in {
        one.id for one in row.interfaces or ()}


__all__ = ["BATCH", "Healer", "Reader"]
