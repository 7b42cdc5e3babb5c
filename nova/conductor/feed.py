"""What schedulers know of hosts: states, not deltas, sent as they change and whenever they are asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nova import errors
from nova.conductor.world import World
from nova.db import aggregates as aggregate_rows
from nova.db import hosts as host_rows
from nova.db import services
from nova.db.engine import Connection
from nova.db.ledger import DISK_GB, MEMORY_MB, VCPU, Usage
from nova.db.services import as_time
from nova.model.aggregates import placed
from nova.model.base import Time
from nova.model.hosts import AggregateMembers, AggregateStates, HostState, HostStates, Stamp

LOG = logging.getLogger(__name__)

_AMOUNTS = ((VCPU, "vcpus"), (MEMORY_MB, "memory_mb"), (DISK_GB, "disk_gb"))


class Feed:
    """Reads states from both databases, and casts them to every scheduler."""

    def __init__(self, world: World) -> None:
        self.world = world

    def states(self, known: Sequence[Stamp] = (), everything: bool = True) -> HostStates:
        """States newer than the stamps, or all of them for ``everything``; and the aggregates, where one of the stamps
        is older than they are."""
        aggregates, rows, found = self._read_all()
        stamps = {(stamp.host, stamp.node): stamp for stamp in known}
        alive = tuple((row.host, row.last_seen_at) for row in rows if row.last_seen_at is not None)
        gone = tuple(sorted(set(stamps) - {(one.host, one.node) for one in found}))
        fresh = everything or any(stamp.aggregates_version != aggregates.version for stamp in known)
        if not everything:
            found = [one for one in found if _newer(one, stamps.get((one.host, one.node)))]
        return HostStates(states=tuple(found), now=as_time(rows[0].clock) if rows else None, complete=everything,
                          alive=alive, gone=gone, aggregates=aggregates if fresh else None)

    def _read_all(self) -> tuple[AggregateStates, list[Any], list[HostState]]:
        """The aggregates, rows of all nodes, and their states."""
        with self.world.cell.reading() as tx:
            rows = host_rows.node_rows(tx)
        with self.world.api.reading() as tx:
            providers = host_rows.provider_rows(tx)
            aggregates = self._aggregates(tx)
        of_host: dict[str, list[Mapping[str, str]]] = {}
        for one in aggregates.aggregates:
            for host in one.hosts:
                of_host.setdefault(host, []).append(one.metadata)

        def place(host: str) -> Place:
            return Place(aggregates.version, *placed(of_host.get(host, ()), aggregates.default_zone))
        return aggregates, rows, [state(row, providers[row.uuid], place(row.host))
                                  for row in rows if row.uuid in providers]

    def _read_one(self, host: str) -> tuple[list[Any], list[HostState]]:
        """Rows of one host's nodes and their states, whole."""
        with self.world.cell.reading() as tx:
            rows = host_rows.node_rows(tx, host_rows.NodesWanted(host=host))
        if not rows:
            return [], []
        with self.world.api.reading() as tx:
            providers = host_rows.provider_rows(tx, host=host)
            place = self._place(tx, host)
        return rows, [state(row, providers[row.uuid], place) for row in rows if row.uuid in providers]

    def _aggregates(self, tx: Connection) -> AggregateStates:
        """The stamp is read first: rows may be newer than it says, and come again with theirs; never older."""
        stamp = aggregate_rows.version(tx)
        return AggregateStates(
            version=stamp, default_zone=self.world.settings.default_availability_zone,
            aggregates=tuple(AggregateMembers(hosts=one.hosts, metadata=one.metadata)
                             for one in aggregate_rows.select(tx) if one.hosts and one.metadata))

    def _place(self, tx: Connection, host: str) -> Place:
        stamp = aggregate_rows.version(tx)
        return Place(stamp, *placed(aggregate_rows.metadata_of(tx, host),
                                    self.world.settings.default_availability_zone))

    def after_claims(self, usages: Sequence[Usage], claimed: Sequence[str]) -> None:
        """Tell the schedulers a provider's new amounts, and which servers' claims are in them. No host is named: what
        else belongs to the generation (totals, guests) is not known here, and comes with the next sweep."""
        if usages:
            self._cast(HostStates(states=tuple(self._resources(usage) for usage in usages), claimed=tuple(claimed)))

    def after_release(self, providers: Sequence[int]) -> None:
        """The same, for providers whose numbers must be read again."""
        if not providers:
            return
        with self.world.api.reading() as tx:
            rows = host_rows.provider_rows(tx, providers)
        self._cast(HostStates(states=tuple(
            HostState(host=row["host"], node=row["name"], provider_id=row["id"], generation=row["generation"],
                      instances=row["consumers"], **_resources(row["classes"])) for row in rows.values())))

    def host_changed(self, host: str) -> None:
        """A host was registered, changed, enabled, disabled: send what is known of it."""
        rows, found = self._read_one(host)
        if rows:
            alive = tuple((row.host, row.last_seen_at) for row in rows if row.last_seen_at is not None)
            self._cast(HostStates(states=tuple(found), now=as_time(rows[0].clock), alive=alive))

    def host_gone(self, host: str, nodes: Sequence[str]) -> None:
        """A host was taken out, with these nodes."""
        with self.world.cell.reading() as tx:
            now = services.now(tx)
        self._cast(HostStates(now=now, gone=tuple((host, node) for node in nodes)))

    def aggregates_changed(self) -> None:
        """Hosts came or went, or metadata changed: send all aggregates, which is little."""
        with self.world.api.reading() as tx:
            aggregates = self._aggregates(tx)
        self._cast(HostStates(aggregates=aggregates))

    def alive(self, beats: Sequence[tuple[str, Time]], now: Time | None) -> None:
        self._cast(HostStates(alive=tuple(beats), now=now))

    def _resources(self, usage: Usage) -> HostState:
        numbers: dict[str, Any] = {}
        for name, field in _AMOUNTS:
            capacity, used = usage.amounts.get(name, (0, 0))
            numbers |= {f"{field}_capacity": capacity, f"{field}_used": used}
        return HostState(host="", node="", provider_id=usage.provider_id, generation=usage.generation, **numbers)

    def _cast(self, states: HostStates) -> None:
        try:
            self.world.scheduler.update_hosts(states)
        except errors.NovaError as error:  # the periodic sweep repairs what was lost
            LOG.debug("schedulers were not told: %s", error)


class Place(NamedTuple):
    """What aggregates, at one stamp, make of a host."""

    version: int
    zone: str
    metadata: Mapping[str, tuple[str, ...]]


def state(row: Any, provider: dict[str, Any], place: Place) -> HostState:
    """A node's whole state from its row (of ``node_rows``), its provider's, and where aggregates put it."""
    facts = row.facts
    return HostState(
        host=row.host, node=row.name, provider_id=provider["id"], generation=provider["generation"],
        instances=provider["consumers"], **_resources(provider["classes"]), service_version=row.service_version,
        enabled=not row.disabled, forced_down=row.forced_down, disabled_reason=row.disabled_reason,
        last_seen_at=row.last_seen_at, hypervisor_type=facts.hypervisor_type,
        hypervisor_version=facts.hypervisor_version, supported=facts.supported, capabilities=facts.capabilities,
        traits=facts.traits, aggregates_version=place.version, zone=place.zone, aggregate_metadata=place.metadata)


def _resources(classes: dict[str, tuple[int, int, float, int]]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, field in _AMOUNTS:
        total, reserved, ratio, used = classes.get(name, (0, 0, 1.0, 0))
        numbers |= {f"{field}_total": total, f"{field}_capacity": int((total - reserved) * ratio),
                    f"{field}_used": used}
    return numbers


def _newer(one: HostState, known: Stamp | None) -> bool:
    """Aggregates are told apart from the states, all in one."""
    return known is None or (one.generation, one.service_version) != (known.generation, known.service_version)


__all__ = ["Feed", "Place", "state"]
