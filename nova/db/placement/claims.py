"""Claims on providers: a server's allocations on a host, checked and written in one transaction.

A claim begins by writing the ledger row's epoch: if no row changes, a newer epoch owns the server. Capacity, server
groups and CPU pinning are checked under the locks of the providers' rows, taken in id order. This excludes races and
drift, so that no healing tool is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.host.aggregates import zone_of
from nova.db.models.api import allocations, inventories, providers
from nova.db.placement import provider_trees
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.sql.engine import Database
from nova.db.sql.statements import insert_all
from nova.model.numa.fit import pack
from nova.model.numa.topology import TopologyClaim
from nova.model.placement import candidates
from nova.model.placement.providers import Amount, ProviderState
from nova.model.scheduling.decisions import HostRequirements, Resources

VCPU, MEMORY_MB, DISK_GB = "VCPU", "MEMORY_MB", "DISK_GB"


class Claim(NamedTuple):
    """The allocations of one server on one node. ``grouped``: it may be in a server group. ``requirements``: None if it
    needs only ``resources`` of the node itself."""

    server_uuid: str
    epoch: int
    provider_id: int
    resources: Resources
    grouped: bool = False
    requirements: HostRequirements | None = None


class ProviderUsage(NamedTuple):
    """A provider's usage after a claim: resource class -> (capacity, used). ``zone``: the availability zone that an
    aggregate sets for its host, or None. ``instances``: the number of consumers. ``whole``: more than these values
    changed; read the provider again."""

    provider_id: int
    host: str
    node: str
    generation: int
    amounts: Mapping[str, tuple[int, int]]
    zone: str | None = None
    instances: int = 0
    whole: bool = False


Results = dict[str, errors.NovaError | None]


def take(api: Database, claims: Sequence[Claim]) -> tuple[Results, list[ProviderUsage]]:
    """Claim in one transaction; see :func:`claim`. A first claim rarely finds existing allocations, so it checks for
    them only after a conflict."""
    try:
        return api.transact(lambda tx: claim(tx, claims))
    except errors.host.ClaimHeld:  # the connection failed after the commit, before the result arrived
        return api.transact(lambda tx: claim(tx, claims, again=True))


def claim(tx: Connection, claims: Sequence[Claim], again: bool = False) -> tuple[Results, list[ProviderUsage]]:
    """Allocate what each claim requests; return None or the error for each server, and the providers' usage afterwards.

    Idempotent: allocations that the server already has on the provider count as its own. Raises host.ClaimHeld if a
    server's first claim (epoch 1) finds existing allocations without ``again``.
    """
    mine = ledger.raise_epochs(tx, {one.server_uuid: one.epoch for one in claims})
    results: Results = dict(ledger.lost(tx, [one.server_uuid for one in claims if one.server_uuid not in mine]))
    wanted = [one for one in claims if one.server_uuid in mine]
    if not wanted:
        return results, []
    groups = server_groups.HardGroups(tx, [one.server_uuid for one in wanted if one.grouped])
    nodes = _lock(tx, sorted({one.provider_id for one in wanted}))
    _read_beyond(tx, nodes, sorted({one.provider_id for one in wanted if one.requirements is not None}))
    held = _held(tx, [one.server_uuid for one in wanted]) if len(claims) > 1 or again or wanted[0].epoch > 1 else set()
    rows: list[dict[str, Any]] = []
    for one in wanted:
        if (one.server_uuid, one.provider_id) in held:
            results[one.server_uuid] = None
            continue
        taken = _taken(nodes, one, groups)
        results[one.server_uuid] = taken if isinstance(taken, errors.NovaError) else None
        if not isinstance(taken, errors.NovaError):
            rows += taken
    with failures.replaced(exc.IntegrityError, lambda _: errors.host.ClaimHeld()):
        insert_all(tx, allocations, rows)
    _count_children(tx, sorted({row["provider_id"] for row in rows} - nodes.keys()))
    return results, [node.usage() for node in nodes.values()]


class _Node:
    """A node's provider, locked. ``tree_facts``: read only for claims with requirements."""

    def __init__(self, row: sa.Row[*tuple[object, ...]]) -> None:
        self.id, self.uuid, self.host, self.name = row.id, row.uuid, row.host, row.name
        self.generation, self.zone = row.generation, row.zone
        self.amounts: dict[str, Amount] = {}
        self.instances = 0
        self.tree_facts: provider_trees.ProviderTreeFacts | None = None
        self.below: dict[int, ProviderState] = {}
        self.packings: list[TopologyClaim] = []
        self.changed = False

    def know(self, tree_facts: provider_trees.ProviderTreeFacts) -> None:
        self.tree_facts = tree_facts
        self.below = {one.id: one for one in tree_facts.children}
        self.packings = list(tree_facts.packings)

    def tree(self) -> list[ProviderState]:
        tree_facts = self.tree_facts or provider_trees.NOTHING
        root = ProviderState(id=self.id, uuid=self.uuid, name=self.name, amounts=self.amounts, traits=tree_facts.traits,
                             aggregates=tree_facts.aggregates)
        return [root, *self.below.values()]

    def take(self, solution: candidates.Solution, packing: TopologyClaim | None) -> None:
        for key, amounts in solution.amounts.items():
            if key == self.id:
                self.amounts = _used(self.amounts, amounts)
            else:
                one = self.below[key]
                self.below[key] = msgspec.structs.replace(one, amounts=_used(one.amounts, amounts))
        if packing is not None:
            self.packings.append(packing)
        self.instances += 1

    def usage(self) -> ProviderUsage:
        numbers = {name: (one.capacity, one.used) for name, one in self.amounts.items()}
        return ProviderUsage(self.id, self.host, self.name, self.generation, numbers, self.zone, self.instances,
                             self.changed)


def _used(have: Mapping[str, Amount], amounts: Mapping[str, int]) -> dict[str, Amount]:
    return {name: msgspec.structs.replace(one, used=one.used + amounts[name]) if amounts.get(name) else one
            for name, one in have.items()}


# -- reads under the lock

_BY_KEY: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
_TURN = sa.select(providers.c.id).where(providers.c.id.in_(_BY_KEY)).order_by(providers.c.id).with_for_update()
_COUNT_UP = sa.update(providers).where(providers.c.id.in_(_BY_KEY)).values(generation=providers.c.generation + 1)
_used_now = provider_trees.used_of(allocations.c.provider_id.in_(_BY_KEY))
_NUMBERS = (sa.select(providers.c.id, providers.c.uuid, providers.c.host, providers.c.name, providers.c.generation,
                      inventories.c.resource_class, inventories.c.total, inventories.c.reserved,
                      inventories.c.allocation_ratio, inventories.c.min_unit, inventories.c.max_unit,
                      inventories.c.step_size, sa.func.coalesce(_used_now.c.used, 0).label("used"),
                      sa.func.coalesce(_used_now.c.consumers, 0).label("consumers"),
                      zone_of(providers.c.host).label("zone"))
            .select_from(providers.join(inventories, inventories.c.provider_id == providers.c.id)
                         .outerjoin(_used_now, sa.and_(_used_now.c.provider_id == inventories.c.provider_id,
                                                       _used_now.c.resource_class == inventories.c.resource_class)))
            .where(providers.c.id.in_(_BY_KEY)))


def _lock(tx: Connection, keys: Sequence[int]) -> dict[int, _Node]:
    """Lock the providers' rows in id order, by incrementing their generations; return capacity and usage."""
    if len(keys) > 1 and tx.dialect.name == "postgresql":  # whose UPDATE locks rows in no defined order
        tx.execute(_TURN, {"keys": list(keys)})
    tx.execute(_COUNT_UP, {"keys": list(keys)})
    nodes: dict[int, _Node] = {}
    for row in tx.execute(_NUMBERS, {"keys": list(keys)}):
        node = nodes.get(row.id)
        if node is None:
            node = nodes[row.id] = _Node(row)
        node.amounts[row.resource_class] = provider_trees.amount(row.total, row.reserved, row.allocation_ratio,
                                                                 int(row.used), row)
        node.instances = max(node.instances, int(row.consumers))
    return nodes


def _read_beyond(tx: Connection, nodes: Mapping[int, _Node], keys: Sequence[int]) -> None:
    """Read their trees, which the root's lock covers."""
    if keys:
        found = provider_trees.tree_facts(tx, keys, whole=True)
        for key in keys:
            if key in nodes:
                nodes[key].know(found.get(key, provider_trees.NOTHING))


def _held(tx: Connection, uuids: Sequence[str]) -> set[tuple[str, int]]:
    """Return (server, root) for all allocations that they already have."""
    root = sa.func.coalesce(providers.c.root_id, providers.c.id).label("root")
    rows = tx.execute(sa.select(allocations.c.consumer, root)
                      .join_from(allocations, providers, providers.c.id == allocations.c.provider_id)
                      .where(allocations.c.consumer.in_(uuids)).distinct())
    return {(row.consumer, row.root) for row in rows}


def _count_children(tx: Connection, keys: Sequence[int]) -> None:
    if keys:
        tx.execute(_COUNT_UP, {"keys": list(keys)})


# -- allocation

def _taken(nodes: Mapping[int, _Node], one: Claim, groups: server_groups.HardGroups
          ) -> errors.NovaError | list[dict[str, object]]:
    """Return the rows to insert, or the error: the node lacks capacity, or its host would violate the server group's
    policy."""
    node = nodes.get(one.provider_id)
    if node is None:
        return errors.ClaimConflict(f"resource provider {one.provider_id} no longer exists")
    node.changed = node.changed or one.requirements is not None  # after an error, too, the caller's data is outdated
    broken = groups.refusal(one.server_uuid, node.host)
    if broken is not None:
        return broken
    found = _plain(node, one.resources) if one.requirements is None else _required(node, one.requirements)
    if isinstance(found, errors.NovaError):
        return found
    solution, packing = found
    node.take(solution, packing)
    groups.place(one.server_uuid, node.host)
    return _rows(one.server_uuid, node.id, solution, packing)


def _rows(consumer: str, node: int, solution: candidates.Solution, packing: TopologyClaim | None
          ) -> list[dict[str, object]]:
    """Return the rows to insert. The PCI and NUMA claim is stored on one (any) of the node's rows."""
    rows: list[dict[str, Any]] = [
        {"provider_id": key, "consumer": consumer, "resource_class": name, "used": amount, "packing": None}
        for key, amounts in solution.amounts.items() for name, amount in amounts.items()]
    if packing is not None:
        next(row for row in rows if row["provider_id"] == node)["packing"] = packing
    return rows


Found = errors.NovaError | tuple[candidates.Solution, TopologyClaim | None]


def _plain(node: _Node, resources: Resources) -> Found:
    wanted = {name: amount for name, amount in amounts_of(resources).items() if amount}
    for name, amount in wanted.items():
        have = node.amounts.get(name)
        if have is None or amount > min(have.capacity - have.used, have.max_unit) or (
                amount < have.min_unit or amount % have.step_size):
            return errors.host.ClaimNotEnough(resource_class=name, wanted=amount,
                                              free=min(have.capacity - have.used, have.max_unit) if have else 0)
    return candidates.Solution({node.id: wanted}, {}), None


def _required(node: _Node, requirements: HostRequirements) -> Found:
    tree = node.tree()
    solution = candidates.first(tree, requirements.request)
    if solution is None:
        return errors.host.ClaimUnfit(why=candidates.why_not(tree, requirements.request))
    if not requirements.topology.anything:
        return solution, None
    if not solution.amounts.get(node.id):
        return errors.host.ClaimUnfit(why="it requests no resources of the node itself")
    topology = node.tree_facts.topology if node.tree_facts else None
    packing = pack(topology, node.packings, requirements.topology)
    if isinstance(packing, str):
        return errors.host.ClaimUnfit(why=packing)
    charged = _with_devices(node, solution, packing)
    return charged if isinstance(charged, errors.NovaError) else (charged, packing)


def _with_devices(node: _Node, solution: candidates.Solution, packing: TopologyClaim
                  ) -> candidates.Solution | errors.NovaError:
    """Allocate the claimed devices from their own providers as well, if the host reports such (with one class each).
    They are named after the device or, for one of many functions, after its parent device. Returns host.ClaimUnfit if
    another consumer has taken them."""
    named = {one.name: one for one in node.below.values() if len(one.amounts) == 1}
    amounts = {key: Counter(taken) for key, taken in solution.amounts.items()}
    for device in packing.devices:
        found = named.get(f"{node.name}_{device.address}") or named.get(f"{node.name}_{device.parent}")
        if found is not None:
            [resource_class] = found.amounts
            taken = amounts.setdefault(found.id, Counter())
            taken[resource_class] += 1
            if not found.amounts[resource_class].has_room(taken[resource_class]):
                return errors.host.ClaimUnfit(why=f"not enough {resource_class}")
    return candidates.Solution(amounts, solution.mappings)


def amounts_of(resources: Resources) -> dict[str, int]:
    """Return the amounts by resource class: VCPU, MEMORY_MB (MiB) and DISK_GB (GiB), including zeros."""
    return {VCPU: resources.vcpus, MEMORY_MB: resources.memory_mb, DISK_GB: resources.disk_gb}


def topology_claim_at(tx: Connection, server_uuid: str, host: str, leaving: bool = False) -> TopologyClaim | None:
    """Return a server's PCI and NUMA claim on a host; None if it has none there. If a migration has one there, too (a
    resize on one host), ``leaving`` selects the source's claim instead of the destination's."""
    mine = sa.or_(allocations.c.consumer == server_uuid, allocations.c.moving == server_uuid)
    rows = tx.execute(sa.select(allocations.c.moving, allocations.c.packing)
                      .join_from(allocations, providers, providers.c.id == allocations.c.provider_id)
                      .where(mine, providers.c.host == host, allocations.c.packing.is_not(None))).all()
    meant = [row for row in rows if (row.moving is not None) == leaving] or rows
    return meant[0].packing if meant else None


__all__ = ["DISK_GB", "MEMORY_MB", "VCPU", "Claim", "ProviderUsage", "amounts_of", "claim", "topology_claim_at", "take"]
