"""Providers as reported by hosts: a node's inventories and traits, its topology, and the providers below it.

A report replaces earlier reports, but not changes made through the Placement API, nor allocations: a host that reports
less than is allocated is logged, and gets no new allocations.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import allocations, inventories, provider_aggregates, provider_traits, providers
from nova.db.sql.statements import insert_all, insert_ignoring
from nova.db.sql.types import new_key, utc_now
from nova.model.host.hosts import Inventory, Node
from nova.model.placement import accepted_capacity
from nova.model.placement.providers import ChildProvider, ClassInventory

LOG = logging.getLogger(__name__)

LARGEST = 2147483647
MOST_RATIO = 1e9  # the limit of the Placement API, too


def claimed_room(inventory: Inventory) -> dict[str, int]:
    """Return the total capacity that a host claims for all its providers, by resource class."""
    return accepted_capacity.claimed(
        one for node in inventory.nodes
        for provider in (_inventories(node), *map(_of_child, node.children)) for one in provider)


def write_providers(tx: Connection, inventory: Inventory, limits: accepted_capacity.Capacities | None = None) -> None:
    """Write providers and inventories as reported by the host, up to the limits
    (:func:`nova.model.placement.accepted_capacity.limits`). Older reports are ignored. Raises host.NodeNotYours if a
    UUID belongs to a provider of another host, below a node, or of the Placement API."""
    left = dict(limits or {})
    known = _known(tx, [node.uuid for node in inventory.nodes])
    new = [node for node in inventory.nodes if node.uuid not in known]
    if new:
        _insert(tx, inventory, new)
        known = _known(tx, [node.uuid for node in inventory.nodes])
    for node in inventory.nodes:
        row = known[node.uuid]
        if row.parent_id is not None or (row.host != inventory.host and row.host_id != inventory.host_id):
            raise errors.host.NodeNotYours(host=inventory.host, uuid=node.uuid)
        if row.inventory_version > inventory.version:
            continue
        values = {"name": node.name, "host": inventory.host, "host_id": inventory.host_id, "parent_id": None,
                  "root_id": None, "topology": node.topology, "inventory_version": inventory.version}
        key = _write(tx, node.uuid, row.id, values)
        _write_inventories(tx, key, [accepted_capacity.within(one, left) for one in _inventories(node)], node.name)
        _write_traits(tx, key, node.traits)
        _write_children(tx, key, Reported(inventory, node, left))


def owners(tx: Connection, uuids: Collection[str]) -> dict[str, str]:
    """Return the hosts of these nodes' providers, by UUID."""
    rows = tx.execute(sa.select(providers.c.uuid, providers.c.host).where(
        providers.c.uuid.in_(list(uuids)), providers.c.host != ""))
    return {row.uuid: row.host for row in rows}


class Reported(NamedTuple):
    """A node of a report. ``left``: the accepted capacity for the providers that are still to be written."""

    inventory: Inventory
    node: Node
    left: dict[str, int]


class _Provider(NamedTuple):
    id: int
    uuid: str
    name: str
    inventory_version: int
    parent_id: int | None
    host: str
    host_id: str


def _known(tx: Connection, uuids: Sequence[str]) -> dict[str, _Provider]:
    """Return rows by UUID, locked in the same order as claims lock them."""
    return {row.uuid: _Provider._make(row) for row in tx.execute(
        sa.select(*[providers.c[name] for name in _Provider._fields])
        .where(providers.c.uuid.in_(list(uuids))).order_by(providers.c.id).with_for_update())}


def _insert(tx: Connection, inventory: Inventory, new: Sequence[Node]) -> None:
    """Insert the providers of new nodes, still without data: several conductors may carry the same report."""
    insert_ignoring(tx, providers, [
        {"uuid": node.uuid, "name": node.name, "host": inventory.host, "host_id": inventory.host_id, "generation": 0,
         "inventory_version": 0, "updated_at": utc_now()} for node in new])


def _write(tx: Connection, uuid: str, key: int | None, values: Mapping[str, object]) -> int:
    """Insert or update the provider and increment its generation; return its key."""
    if key is None:
        made = tx.execute(sa.insert(providers).values(**values, uuid=uuid, generation=1, updated_at=utc_now()))
        return new_key(made)
    tx.execute(sa.update(providers).where(providers.c.id == key)
               .values(**values, generation=providers.c.generation + 1, updated_at=utc_now()))
    return key


def _inventories(node: Node) -> list[ClassInventory]:
    rows = (("VCPU", node.vcpus, node.reserved_vcpus, node.cpu_allocation_ratio),
            ("MEMORY_MB", node.memory_mb, node.reserved_memory_mb, node.ram_allocation_ratio),
            ("DISK_GB", node.local_gb, node.reserved_disk_gb, node.disk_allocation_ratio))
    plain = [ClassInventory(resource_class=name, total=total, reserved=min(reserved, total), allocation_ratio=ratio,
                            max_unit=total) for name, total, reserved, ratio in rows if total > 0]
    return [_within_bounds(one) for one in (*plain, *node.inventories) if one.total > 0]


def _of_child(child: ChildProvider) -> list[ClassInventory]:
    return [_within_bounds(one) for one in child.inventories if one.total > 0]


def _write_inventories(tx: Connection, key: int, wanted: Sequence[ClassInventory], name: str) -> None:
    """Write a provider's inventories. Classes no longer reported are deleted; if they have allocations, they stay with
    a total of 0."""
    used = dict(tx.execute(sa.select(allocations.c.resource_class, sa.func.sum(allocations.c.used))
                           .where(allocations.c.provider_id == key).group_by(allocations.c.resource_class)).all())
    before = {row.resource_class: row for row in tx.execute(
        sa.select(inventories).where(inventories.c.provider_id == key))}
    now = {one.resource_class: one for one in wanted}
    gone = {one for one, row in before.items() if row.reported and one not in now}
    kept = [ClassInventory(resource_class=one, total=0, max_unit=1) for one in sorted(gone & used.keys())]
    tx.execute(sa.delete(inventories).where(inventories.c.provider_id == key,
                                            inventories.c.resource_class.in_([*now, *gone])))
    insert_all(tx, inventories, [_row(key, one) for one in (*wanted, *kept)])
    for one in (*wanted, *kept):
        old = before.get(one.resource_class)
        was = int((old.total - old.reserved) * old.allocation_ratio) if old is not None else None
        _log_overuse(name, one, int(used.get(one.resource_class, 0)), was)


def _within_bounds(one: ClassInventory) -> ClassInventory:
    """Limit an inventory to values that databases and messages can hold: one host's error must not block the reports of
    all hosts."""
    total, ratio = _between(0, one.total, LARGEST), one.allocation_ratio
    return ClassInventory(
        resource_class=one.resource_class, total=total, reserved=_between(0, one.reserved, total),
        min_unit=_between(1, one.min_unit, LARGEST), max_unit=_between(1, one.max_unit, LARGEST),
        step_size=_between(1, one.step_size, LARGEST),
        allocation_ratio=min(ratio, MOST_RATIO) if ratio >= 0 else 0.0)  # NaN is not >= 0, either


def _between(least: int, value: int, most: int) -> int:
    return max(least, min(value, most))


def _row(key: int, one: ClassInventory) -> dict[str, object]:
    return {"provider_id": key, "resource_class": one.resource_class, "total": one.total, "reserved": one.reserved,
            "min_unit": one.min_unit, "max_unit": one.max_unit, "step_size": one.step_size,
            "allocation_ratio": one.allocation_ratio, "reported": True}


def _log_overuse(name: str, one: ClassInventory, used: int, was: int | None) -> None:
    """Log once per change that a host has less capacity than is in use: it keeps its guests, but gets no new ones.
    ``was``: the capacity before the report."""
    capacity = accepted_capacity.capacity(one)
    if used > capacity and was != capacity:
        LOG.warning("provider %s has a capacity of %d %s, but %d are in use; it gets no new allocations until "
                    "usage drops (move servers off with 'nova-manage host drain', or raise its ratio)",
                    name, capacity, one.resource_class, used)


def _write_traits(tx: Connection, key: int, wanted: Sequence[str]) -> None:
    """Write the reported traits; a trait set through the API becomes the host's once the host reports it."""
    table = provider_traits
    before = {row.trait: row.reported for row in tx.execute(
        sa.select(table.c.trait, table.c.reported).where(table.c.provider_id == key))}
    now = set(wanted)
    if {trait for trait, reported in before.items() if reported} == now:
        return
    stale = [trait for trait, reported in before.items() if reported != (trait in now)]
    if stale:
        tx.execute(sa.delete(table).where(table.c.provider_id == key, table.c.trait.in_(stale)))
    insert_all(tx, table, [{"provider_id": key, "trait": trait, "reported": True}
                           for trait in sorted(now) if not before.get(trait)])


# -- providers below a node

def _write_children(tx: Connection, root: int, reported: Reported) -> None:
    """Write the providers below a node. Those no longer reported are deleted, or emptied if they have allocations."""
    inventory, node, left = reported
    rows = {row.uuid: _Provider._make(row) for row in tx.execute(
        sa.select(*[providers.c[name] for name in _Provider._fields])
        .where(providers.c.root_id == root).order_by(providers.c.id))}
    new = {child.uuid for child in node.children} - rows.keys()
    taken = tx.execute(sa.select(providers.c.uuid).where(providers.c.uuid.in_(new)).limit(1)).scalar() if new else None
    if taken is not None:
        raise errors.host.NodeNotYours(host=inventory.host, uuid=taken)
    keys: dict[str, int] = {"": root}
    for child in _parents_first(node.children):
        if child.parent not in keys:
            LOG.warning("node %s reports provider %s with the unknown parent %s; ignored", node.name, child.name,
                        child.parent)
            continue
        values = {"name": child.name, "host": inventory.host, "host_id": inventory.host_id, "root_id": root,
                  "parent_id": keys[child.parent], "inventory_version": max(1, inventory.version)}
        keys[child.name] = _write(tx, child.uuid, rows[child.uuid].id if child.uuid in rows else None, values)
        inventories = [accepted_capacity.within(one, left) for one in _of_child(child)]
        _write_inventories(tx, keys[child.name], inventories, child.name)
        _write_traits(tx, keys[child.name], child.traits)
    present = set(keys.values())
    gone = [row for row in rows.values() if row.id not in present and row.inventory_version]  # 0: by Placement's API
    _drop(tx, gone)


def _parents_first(children: Sequence[ChildProvider]) -> list[ChildProvider]:
    names = {child.name: child for child in children}

    def depth(child: ChildProvider, seen: frozenset[str] = frozenset()) -> int:
        parent = names.get(child.parent)
        return 0 if parent is None or child.name in seen else 1 + depth(parent, seen | {child.name})
    return sorted(children, key=depth)


def _drop(tx: Connection, gone: Sequence[_Provider]) -> None:
    keys = [row.id for row in gone]
    if not keys:
        return
    busy = set(tx.execute(sa.select(allocations.c.provider_id).where(allocations.c.provider_id.in_(keys)).distinct())
               .scalars())
    above = set(tx.execute(sa.select(providers.c.parent_id).where(providers.c.parent_id.in_(keys),
                                                                  providers.c.id.not_in(keys))).scalars())
    for row in gone:
        if row.id in busy | above:
            _write_inventories(tx, row.id, [], row.name)
    forget(tx, [key for key in keys if key not in busy | above])


def forget(tx: Connection, keys: Sequence[int]) -> None:
    """Delete these providers with all their rows."""
    if not keys:
        return
    for table, column in ((allocations, allocations.c.provider_id), (inventories, inventories.c.provider_id),
                          (provider_traits, provider_traits.c.provider_id),
                          (provider_aggregates, provider_aggregates.c.provider_id), (providers, providers.c.id)):
        tx.execute(sa.delete(table).where(column.in_(list(keys))))


__all__ = ["claimed_room", "forget", "write_providers"]
