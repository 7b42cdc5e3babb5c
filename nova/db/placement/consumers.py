"""Allocations as written through the Placement API: many consumers in one transaction, or none.

Consumers are locked first, in the order of their UUIDs, then the roots of all trees that they use or request. So
neither two writers, nor a writer and a claim (which locks the same roots), can allocate the last unit twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import allocations, consumers, inventories, ledger, providers
from nova.db.placement import inventories as inventory_rows
from nova.db.placement import locks, names
from nova.db.placement.locks import Locked
from nova.db.placement.provider_trees import amount, used_of
from nova.db.sql.statements import insert_all, insert_ignoring
from nova.db.sql.types import utc_now
from nova.model.placement.providers import Amount, ConsumerAllocations, Reshape

UNCHECKED = -1  # the generation in requests of versions without consumer generations


Key = tuple[int, str]  # a provider's id, and a class


class ConsumerBefore(NamedTuple):
    """A consumer's allocations before the change, under its lock."""

    amounts: Mapping[Key, int]
    providers: frozenset[str]  # their UUIDs


# -- writes

def replace(tx: Connection, wanted: Sequence[ConsumerAllocations]) -> list[Locked]:
    """Replace the allocations of all these consumers, or of none; empty allocations release everything. Returns the
    changed providers. Raises placement.AllocationServers, placement.ConsumerChanged,
    placement.AllocationUnknownProvider, placement.ResourceClassUnknown, placement.AllocationNoRoom."""
    _check_names(tx, wanted)
    held = _lock_consumers(tx, wanted)
    found = _lock_providers(tx, wanted, held)
    _replace(tx, wanted, held, found)
    touched, named = _touched(wanted, held, found), _named(wanted, held, found)
    locks.count_up(tx, touched, {one.id: int(one.uuid in named) for one in touched})
    return touched


def delete(tx: Connection, consumer: str) -> list[Locked]:
    """Delete a consumer's allocations; return the providers changed, whose generations do not increase. Raises
    placement.AllocationNotFound, placement.AllocationServers."""
    wanted = [ConsumerAllocations(consumer=consumer, generation=UNCHECKED)]
    held = _lock_consumers(tx, wanted)
    if not held[consumer].amounts:
        raise errors.placement.AllocationNotFound(consumer=consumer)
    found = _lock_providers(tx, wanted, held)
    _replace(tx, wanted, held, found)
    touched = _touched(wanted, held, found)
    locks.count_up(tx, touched, {one.id: 0 for one in touched})
    return touched


def reshape(tx: Connection, wanted: Reshape) -> list[Locked]:
    """Replace inventories and allocations in one transaction; only the final state must be valid. Raises the errors of
    :func:`replace` and ``inventories.replace``. Generations increase as for three separate writes: old and new
    inventories together (if there are new ones), allocations, new inventories."""
    _check_names(tx, wanted.allocations, [one.resource_class for each in wanted.inventories
                                          for one in each.inventories])
    held = _lock_consumers(tx, wanted.allocations)
    found = _lock_providers(tx, wanted.allocations, held, [each.uuid for each in wanted.inventories])
    dropped: list[tuple[Locked, Sequence[str]]] = []
    for each in wanted.inventories:
        one = found[each.uuid]
        one.check(each.generation)
        inventory_rows.check(tx, each.inventories)
        dropped.append((one, inventory_rows.write(tx, one, each.inventories)))
    _replace(tx, wanted.allocations, held, found, {one.id for one, _ in dropped})
    for one, classes in dropped:
        inventory_rows.check_unused(tx, one, classes)
    counts = Counter(found[uuid].id for uuid in _named(wanted.allocations, held, found))
    counts.update({found[each.uuid].id: 2 if each.inventories else 1 for each in wanted.inventories})
    touched = {one.id: one for one in _touched(wanted.allocations, held, found)} | {one.id: one for one, _ in dropped}
    locks.count_up(tx, touched.values(), counts)
    return list(touched.values())


def _check_names(tx: Connection, wanted: Sequence[ConsumerAllocations], more: Sequence[str] = ()) -> None:
    amounts = [(name, amount) for one in wanted for each in one.allocations for name, amount in each.resources.items()]
    unknown = names.unknown_classes(tx, {*(name for name, _ in amounts), *more})
    if unknown:
        raise errors.placement.ResourceClassUnknown(resource_class=unknown[0])
    for name, given in amounts:
        if given < 1:
            raise errors.placement.AllocationInvalid(resource_class=name, amount=given)


# -- locks

def _lock_consumers(tx: Connection, wanted: Sequence[ConsumerAllocations]) -> dict[str, ConsumerBefore]:
    """Lock each consumer's row (new ones are inserted with generation 0) and check its generation; return their
    allocations."""
    uuids = sorted({one.consumer for one in wanted})
    if not uuids:
        return {}
    _check_no_servers(tx, uuids)
    rows = _locked_rows(tx, uuids)
    missing = [uuid for uuid in uuids if uuid not in rows]
    if missing:
        insert_ignoring(tx, consumers, [{"uuid": uuid, "project_id": "", "user_id": "", "generation": 0,
                                         "created_at": utc_now()} for uuid in missing])
        rows |= _locked_rows(tx, missing)  # a concurrent request may have inserted one of them
    held = _held(tx, uuids)
    for one in wanted:  # without allocations it counts as new; its row may remain
        _check_generation(one, rows[one.consumer] if held[one.consumer].amounts else 0)
    return held


def _check_no_servers(tx: Connection, uuids: Sequence[str]) -> None:
    servers = sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(uuids))
    moves = sa.select(allocations.c.consumer).where(allocations.c.consumer.in_(uuids),
                                                    allocations.c.moving.is_not(None))
    theirs = tx.execute(servers.union(moves)).first()
    if theirs is not None:
        raise errors.placement.AllocationServers(consumer=theirs[0])


def _locked_rows(tx: Connection, uuids: Sequence[str]) -> dict[str, int]:
    """Lock the consumers' rows; return their generations."""
    return {row.uuid: row.generation for row in tx.execute(
        sa.select(consumers.c.uuid, consumers.c.generation).where(consumers.c.uuid.in_(list(uuids)))
        .order_by(consumers.c.uuid).with_for_update())}


def _check_generation(one: ConsumerAllocations, generation: int) -> None:
    """Check a consumer's generation; that of a consumer without allocations is 0."""
    if one.generation != UNCHECKED and one.generation != (generation or None):
        raise errors.placement.ConsumerChanged(consumer=one.consumer, generation=generation or "null",
                                               given="null" if one.generation is None else one.generation)


def _held(tx: Connection, uuids: Sequence[str]) -> dict[str, ConsumerBefore]:
    of: dict[str, list[Any]] = {uuid: [] for uuid in uuids}
    for row in tx.execute(sa.select(allocations.c.consumer, allocations.c.provider_id, allocations.c.resource_class,
                                    allocations.c.used, providers.c.uuid)
                          .join_from(allocations, providers, providers.c.id == allocations.c.provider_id)
                          .where(allocations.c.consumer.in_(uuids))):
        of[row.consumer].append(row)
    return {uuid: ConsumerBefore({(row.provider_id, row.resource_class): row.used for row in rows},
                                 frozenset(row.uuid for row in rows)) for uuid, rows in of.items()}


def _lock_providers(tx: Connection, wanted: Sequence[ConsumerAllocations], held: Mapping[str, ConsumerBefore],
                    more: Sequence[str] = ()) -> dict[str, Locked]:
    """Lock and return all providers that the consumers use or request, and ``more``. Raises
    placement.AllocationUnknownProvider."""
    asked = {each.provider_uuid for one in wanted for each in one.allocations} | set(more)
    found = locks.trees(tx, asked.union(*(one.providers for one in held.values())))
    for uuid in sorted(asked):
        if uuid not in found:
            raise errors.placement.AllocationUnknownProvider(uuid=uuid)
    return found


# -- under the locks

def _replace(tx: Connection, wanted: Sequence[ConsumerAllocations], held: Mapping[str, ConsumerBefore],
             found: Mapping[str, Locked], anew: Collection[int] = ()) -> None:
    """Replace the allocations. ``anew``: ids of providers with new inventories, whose existing allocations are checked
    as well."""
    after = {one.consumer: {(found[each.provider_uuid].id, name): amount for each in one.allocations
                            for name, amount in each.resources.items()} for one in wanted}
    _check_room(tx, held, after, {one.id: one.uuid for one in found.values()}, anew)
    if held:
        tx.execute(sa.delete(allocations).where(allocations.c.consumer.in_(sorted(held))))
    insert_all(tx, allocations, [{"provider_id": key, "consumer": consumer, "resource_class": name, "used": amount}
                                 for consumer, amounts in after.items() for (key, name), amount in amounts.items()])
    for one in wanted:
        _write_consumer(tx, one)


def _touched(wanted: Sequence[ConsumerAllocations], held: Mapping[str, ConsumerBefore], found: Mapping[str, Locked],
             ) -> list[Locked]:
    """Return the providers that the consumers used before, or use now."""
    uuids = {each.provider_uuid for one in wanted for each in one.allocations}.union(
        *(one.providers for one in held.values()))
    return [one for uuid, one in found.items() if uuid in uuids]


def _named(wanted: Sequence[ConsumerAllocations], held: Mapping[str, ConsumerBefore],
           found: Mapping[str, Locked]) -> set[str]:
    """Return the UUIDs of providers whose generations count the write: those in the new allocations, and those released
    by an empty request. Providers that a consumer merely stopped using do not count."""
    return {each.provider_uuid for one in wanted for each in one.allocations}.union(
        *(held[one.consumer].providers & found.keys() for one in wanted if not one.allocations))


def _write_consumer(tx: Connection, one: ConsumerAllocations) -> None:
    """Update the consumer's row and increment its generation; delete it if it has no allocations."""
    mine = consumers.c.uuid == one.consumer
    if not one.allocations:
        tx.execute(sa.delete(consumers).where(mine))
        return
    mappings: dict[str, list[str]] = {}
    for each in one.allocations:
        for suffix in each.mappings:
            mappings.setdefault(suffix, []).append(each.provider_uuid)
    said = {name: value for name, value in (("project_id", one.project_id), ("user_id", one.user_id),
                                            ("consumer_type", one.consumer_type)) if value}
    tx.execute(sa.update(consumers).where(mine).values(**said, mappings=mappings or None, updated_at=utc_now(),
                                                       generation=consumers.c.generation + 1))


def _check_room(tx: Connection, held: Mapping[str, ConsumerBefore], after: Mapping[str, Mapping[Key, int]],
                uuids: Mapping[int, str], anew: Collection[int]) -> None:
    """Check units and capacity. Raises placement.AllocationNoRoom. Unchanged or smaller amounts are checked only for
    ``anew``: a provider that shrank below its usage may be released piece by piece, or pass from one consumer to
    another."""
    before: Counter[Key] = Counter()
    for one in held.values():
        before.update(one.amounts)
    requested: Counter[Key] = Counter()
    for amounts in after.values():
        requested.update(amounts)
    have = _amounts(tx, sorted({key for key, _ in requested}))
    for consumer, amounts in after.items():
        for key, given in amounts.items():
            if held[consumer].amounts.get(key) != given or key[0] in anew:
                _check_units(uuids[key[0]], key[1], have.get(key), given)
    for key, all_given in requested.items():
        if all_given > before[key] or key[0] in anew:
            _check_capacity(uuids[key[0]], key[1], have[key], all_given - before[key])


def _check_units(uuid: str, name: str, have: Amount | None, given: int) -> None:
    if have is None:
        raise errors.placement.AllocationNoRoom(resource_class=name, uuid=uuid,
                                                why="It has no inventory of that resource class.")
    if not have.allows(given):
        raise errors.placement.AllocationNoRoom(
            resource_class=name, uuid=uuid,
            why=(f"The requested amount {given} is not within min_unit {have.min_unit}, max_unit {have.max_unit} and "
            f"step_size {have.step_size}."))


def _check_capacity(uuid: str, name: str, have: Amount, more: int) -> None:
    """Check the capacity for ``more``, the increase of all consumers together."""
    if have.used + more > have.capacity:
        raise errors.placement.AllocationNoRoom(
            resource_class=name, uuid=uuid,
            why=(f"The requested amount would exceed the capacity: {have.used} of {have.capacity} are used."))


def _amounts(tx: Connection, keys: Sequence[int]) -> dict[Key, Amount]:
    if not keys:
        return {}
    used = used_of(allocations.c.provider_id.in_(keys))
    rows = tx.execute(
        sa.select(inventories, sa.func.coalesce(used.c.used, 0).label("used"))
        .select_from(inventories.outerjoin(used, sa.and_(used.c.provider_id == inventories.c.provider_id,
                                                         used.c.resource_class == inventories.c.resource_class)))
        .where(inventories.c.provider_id.in_(keys)))
    return {(row.provider_id, row.resource_class): amount(row.total, row.reserved, row.allocation_ratio,
                                                          int(row.used), row) for row in rows}


__all__ = ["delete", "replace", "reshape"]
