"""Host states for the schedulers: full states, not deltas, sent on each change and on request."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nova import failures
from nova.conductor.engine.deps import Deps
from nova.db.host import aggregates as aggregate_rows
from nova.db.host import hosts as host_rows
from nova.db.host import services
from nova.db.host.services import as_time
from nova.db.placement import provider_trees
from nova.db.placement.claims import DISK_GB, MEMORY_MB, VCPU, ProviderUsage
from nova.db.sql.engine import Connection
from nova.model.base import Time
from nova.model.host.aggregates import placed
from nova.model.host.hosts import AggregateMembers, AggregateStates, HostState, HostStates, Node, NodeStamp

LOG = logging.getLogger(__name__)

MOST_BYTES = 24 * 1024 * 1024  # uncompressed; ``rpc.codec`` refuses far larger messages

_AMOUNTS = ((VCPU, "vcpus"), (MEMORY_MB, "memory_mb"), (DISK_GB, "disk_gb"))
PLAIN = frozenset(name for name, _ in _AMOUNTS)


class Feed:
    """Reader of host states from both databases, cast to every scheduler. ``most_bytes``: the limit of the states in
    one answer."""

    def __init__(self, deps: Deps, most_bytes: int = MOST_BYTES) -> None:
        self.deps, self._most_bytes = deps, most_bytes

    def states(self, known: Sequence[NodeStamp] = (), everything: bool = True) -> HostStates:
        """Return the states that are newer than the stamps, or all of them if ``everything``. The aggregates are
        included if one of the stamps is older than they are."""
        aggregates, rows, found, silent = self._read_all()
        stamps = {(stamp.host, stamp.node): stamp for stamp in known}
        alive = tuple((row.host, row.last_seen_at) for row in rows if row.last_seen_at is not None)
        gone = () if silent else tuple(sorted(set(stamps) - {(one.host, one.node) for one in found}))
        fresh = everything or any(stamp.aggregates_version != aggregates.version for stamp in known)
        if not everything:
            found = [one for one in found if _newer(one, stamps.get((one.host, one.node)))]
        sent = fitting(found, self._most_bytes)
        more = len(sent) < len(found)
        return HostStates(states=tuple(sent), now=as_time(rows[0].clock) if rows else None, alive=alive, gone=gone,
                          complete=everything and not (more or silent),
                          aggregates=aggregates if fresh else None, more=more)

    def _read_all(self) -> tuple[AggregateStates, list[host_rows.NodeRow], list[HostState], bool]:
        """Return the aggregates, the rows of all cells' nodes, the nodes' states, and whether a cell is missing because
        it does not answer."""
        by_cell = self.deps.cells.nodes()
        rows = [row for of_cell in by_cell.values() for row in of_cell]
        with self.deps.api.reading() as tx:
            providers = host_rows.provider_rows(tx)
            tree_facts = provider_trees.tree_facts(tx)
            aggregates = self._aggregates(tx)
        of_host: dict[str, list[AggregateMembers]] = {}
        for one in aggregates.aggregates:
            for host in one.hosts:
                of_host.setdefault(host, []).append(one)

        def place(host: str) -> AggregateInfo:
            mine = of_host.get(host, ())
            zone, metadata = placed([one.metadata for one in mine], aggregates.default_zone)
            return AggregateInfo(aggregates.version, zone, metadata, tuple(one.uuid for one in mine))
        found = [state(row, NodeProvider(providers[row.uuid], tree_facts), place(row.host), cell)
                 for cell, of_cell in by_cell.items() for row in of_cell if host_rows.has_provider(row, providers)]
        return aggregates, rows, found, len(by_cell) < len(self.deps.cells.all())

    def _read_one(self, host: str) -> tuple[list[host_rows.NodeRow], list[HostState]]:
        """Return the rows of one host's nodes, and the nodes' full states."""
        with self.deps.cell.reading() as tx:
            rows = host_rows.node_rows(tx, host_rows.NodesWanted(host=host))
        if not rows:
            return [], []
        with self.deps.api.reading() as tx:
            providers = host_rows.provider_rows(tx, host=host)
            tree_facts = provider_trees.tree_facts(tx, [one.id for one in providers.values()])
            place = self._place(tx, host)
        return rows, [state(row, NodeProvider(providers[row.uuid], tree_facts), place, self.deps.cell_uuid)
                      for row in rows if row.uuid in providers]

    def _aggregates(self, tx: Connection) -> AggregateStates:
        """Return the aggregates, stamp first: rows may be newer than the stamp, and are then sent again; never
        older."""
        stamp = aggregate_rows.version(tx)
        return AggregateStates(
            version=stamp, default_zone=self.deps.settings.default_availability_zone,
            aggregates=tuple(AggregateMembers(hosts=one.hosts, metadata=one.metadata, uuid=one.uuid, name=one.name)
                             for one in aggregate_rows.select(tx) if one.hosts))

    def _place(self, tx: Connection, host: str) -> AggregateInfo:
        stamp = aggregate_rows.version(tx)
        mine = [one for one in aggregate_rows.select(tx) if host in one.hosts]
        zone, metadata = placed([one.metadata for one in mine], self.deps.settings.default_availability_zone)
        return AggregateInfo(stamp, zone, metadata, tuple(one.uuid for one in mine))

    def after_claims(self, usages: Sequence[ProviderUsage], claimed: Sequence[str]) -> None:
        """Send the schedulers a provider's new amounts, and the servers whose claims they include. No host is named:
        the generation's other members (totals) are not known here, and follow with the next sweep."""
        if not usages:
            return
        whole = self._parts([usage.provider_id for usage in usages if usage.whole])
        plain = tuple(self._resources(usage) for usage in usages if not usage.whole)
        self._cast(HostStates(states=(*plain, *whole), claimed=tuple(claimed)))

    def after_release(self, providers: Sequence[int]) -> None:
        """Send the amounts of providers (of nodes, or below them) that must be read again after a release."""
        if providers:
            self._cast(HostStates(states=self._parts(providers)))

    def _parts(self, providers: Sequence[int]) -> tuple[HostState, ...]:
        """Return the members that claims change, of the nodes that own these providers; for a plain node, only its
        amounts."""
        if not providers:
            return ()
        with self.deps.api.reading() as tx:
            rows = host_rows.provider_rows(tx, providers).values()
            deep = [row.id for row in rows if row.deep or row.classes.keys() - PLAIN]
            tree_facts = provider_trees.tree_facts(tx, deep) if deep else {}
        return tuple(HostState(host=row.host, node=row.name, **NodeProvider(row, tree_facts).fields())
                     if row.id in deep else _amounts(row) for row in rows)

    def host_changed(self, host: str) -> None:
        """Send the state of a host that was registered, changed, enabled or disabled."""
        rows, found = self._read_one(host)
        if rows:
            alive = tuple((row.host, row.last_seen_at) for row in rows if row.last_seen_at is not None)
            self._cast(HostStates(states=tuple(found), now=as_time(rows[0].clock), alive=alive))

    def host_gone(self, host: str, nodes: Sequence[str]) -> None:
        """Announce the removal of a host with these nodes."""
        with self.deps.cell.reading() as tx:
            now = services.now(tx)
        self._cast(HostStates(now=now, gone=tuple((host, node) for node in nodes)))

    def aggregates_changed(self) -> None:
        """Send all aggregates after a change of members or metadata; they are small."""
        with self.deps.api.reading() as tx:
            aggregates = self._aggregates(tx)
        self._cast(HostStates(aggregates=aggregates))

    def alive(self, heartbeats: Sequence[tuple[str, Time]], now: Time | None) -> bool:
        """Send the times at which hosts were last seen. True if the broker accepted the message."""
        return self._cast(HostStates(alive=tuple(heartbeats), now=now))

    def _resources(self, usage: ProviderUsage) -> HostState:
        numbers: dict[str, Any] = {}
        for name, field in _AMOUNTS:
            capacity, used = usage.amounts.get(name, (0, 0))
            numbers |= {f"{field}_capacity": capacity, f"{field}_used": used}
        return HostState(host="", node="", provider_id=usage.provider_id, generation=usage.generation,
                         instances=usage.instances, **numbers)

    def _cast(self, states: HostStates) -> bool:
        # the periodic sweep repairs what was lost
        with failures.best_effort(LOG, "could not send host states to the schedulers: %s", level=logging.DEBUG):
            self.deps.scheduler.update_hosts(states)
            return True
        return False


class AggregateInfo(NamedTuple):
    """A host's zone, metadata and aggregates, at one version of the aggregates."""

    version: int
    zone: str
    metadata: Mapping[str, tuple[str, ...]]
    uuids: tuple[str, ...] = ()


class NodeProvider(NamedTuple):
    """A node's provider: its row (of ``provider_rows``), and its children, traits and aggregates."""

    row: host_rows.NodeProviderRow
    tree_facts: Mapping[int, provider_trees.ProviderTreeFacts]

    def fields(self) -> dict[str, Any]:
        """Return the members of a state that belong to the provider's generation."""
        row, tree_facts = self.row, self.tree_facts.get(self.row.id, provider_trees.NOTHING)
        others = {name: provider_trees.amount(one.total, one.reserved, one.allocation_ratio, int(one.used), one)
                  for name, one in row.classes.items() if name not in PLAIN}
        return {"provider_id": row.id, "generation": row.generation, "instances": row.consumers,
                **_resources(row.classes), "amounts": others, "children": tree_facts.children,
                "packings": tree_facts.packings, "own_traits": tree_facts.traits,
                "own_aggregates": tree_facts.aggregates}


def state(row: host_rows.NodeRow, provider: NodeProvider, place: AggregateInfo, cell: str) -> HostState:
    """Return a node's full state from its row (of ``node_rows``), its provider, its place in the aggregates, and its
    cell."""
    facts = row.facts
    return HostState(
        host=row.host, node=row.name, **provider.fields(), service_version=row.service_version,
        enabled=not row.disabled, forced_down=row.forced_down, disabled_reason=row.disabled_reason,
        last_seen_at=row.last_seen_at, hypervisor_type=facts.hypervisor_type,
        hypervisor_version=facts.hypervisor_version, supported=facts.supported, capabilities=_capabilities(facts),
        traits=facts.traits, topology=facts.topology, host_ip=facts.host_ip, metrics=facts.metrics,
        failed_builds=facts.failed_builds, provider_uuid=row.uuid, aggregates_version=place.version, zone=place.zone,
        aggregate_metadata=place.metadata, aggregate_uuids=place.uuids, cell=cell)


def _capabilities(facts: Node) -> Mapping[str, str]:
    """Return the capabilities that the driver reported by name, with the processor as ``cpu_info``."""
    return {**facts.capabilities, "cpu_info": facts.cpu_info} if facts.cpu_info else facts.capabilities


def _resources(classes: Mapping[str, host_rows.ClassRow]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name, field in _AMOUNTS:
        one = classes.get(name)
        total, reserved, ratio, used = (one.total, one.reserved, one.allocation_ratio, int(one.used)) \
            if one is not None else (0, 0, 1.0, 0)
        numbers |= {f"{field}_total": total, f"{field}_capacity": int((total - reserved) * ratio),
                    f"{field}_used": used}
    return numbers


def _amounts(row: host_rows.NodeProviderRow) -> HostState:
    numbers: dict[str, Any] = {name: value for name, value in _resources(row.classes).items()
                               if not name.endswith("_total")}
    return HostState(host="", node="", provider_id=row.id, generation=row.generation, instances=row.consumers,
                     **numbers)


def fitting(states: Sequence[HostState], most_bytes: int) -> list[HostState]:
    """Return as many of the first states as fit into one message; at least one."""
    found: list[HostState] = []
    size, encode = 0, msgspec.msgpack.Encoder().encode
    for one in states:
        size += len(encode(one))
        if found and size > most_bytes:
            break
        found.append(one)
    return found


def _newer(one: HostState, known: NodeStamp | None) -> bool:
    """True if the state is newer than the known stamp. Aggregates are not compared: they are sent apart from the
    states, in one part."""
    return known is None or known.provider_id not in (0, one.provider_id) or \
        (one.generation, one.service_version) != (known.generation, known.service_version)


__all__ = ["Feed", "AggregateInfo", "NodeProvider", "state"]
