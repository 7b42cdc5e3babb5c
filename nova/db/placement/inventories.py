"""Inventories of providers, by resource class."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import allocations, inventories, providers
from nova.db.placement import locks, names
from nova.db.placement.locks import Locked
from nova.db.sql.statements import insert_all
from nova.model.placement.providers import ClassInventory, ProviderInventories, ProviderUsages

LOG = logging.getLogger(__name__)

MOST = 2**31 - 1


_COLUMNS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


# -- reads

def get(tx: Connection, uuid: str) -> ProviderInventories:
    """Return a provider's inventories. Raises placement.ResourceProviderNotFound."""
    rows = tx.execute(sa.select(providers.c.generation, inventories)
                      .select_from(providers.outerjoin(inventories, inventories.c.provider_id == providers.c.id))
                      .where(providers.c.uuid == uuid).order_by(inventories.c.resource_class)).all()
    if not rows:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    return ProviderInventories(uuid=uuid, generation=rows[0].generation, inventories=tuple(
        ClassInventory(resource_class=row.resource_class, **{name: getattr(row, name) for name in _COLUMNS})
        for row in rows if row.resource_class is not None))


def usages(tx: Connection, uuid: str) -> ProviderUsages:
    """Return the usage of each resource class that the provider has, or that has remaining allocations. Raises
    placement.ResourceProviderNotFound."""
    have = (sa.select(inventories.c.provider_id, inventories.c.resource_class, sa.literal(0).label("used"))
            .union_all(sa.select(allocations.c.provider_id, allocations.c.resource_class, allocations.c.used))
            .subquery())
    rows = tx.execute(
        sa.select(providers.c.generation, have.c.resource_class, sa.func.sum(have.c.used).label("used"))
        .select_from(providers.outerjoin(have, have.c.provider_id == providers.c.id))
        .where(providers.c.uuid == uuid).group_by(providers.c.generation, have.c.resource_class)
        .order_by(have.c.resource_class)).all()
    if not rows:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    return ProviderUsages(uuid=uuid, generation=rows[0].generation, used={
        row.resource_class: int(row.used) for row in rows if row.resource_class is not None})


# -- writes

def replace(tx: Connection, wanted: ProviderInventories) -> Locked:
    """Replace all inventories of a provider. Raises placement.ResourceProviderNotFound, placement.ConcurrentUpdate,
    placement.InventoryInuse, placement.InventoryInvalid."""
    one = locks.tree(tx, wanted.uuid, wanted.generation)
    check(tx, wanted.inventories)
    dropped = write(tx, one, wanted.inventories)
    check_unused(tx, one, dropped)
    locks.count_up(tx, [one])
    return one


def set_one(tx: Connection, uuid: str, generation: int | None, inventory: ClassInventory, create: bool) -> Locked:
    """Create or update the inventory of one class. Raises placement.ResourceProviderNotFound,
    placement.ConcurrentUpdate, placement.InventoryExists (on create), placement.InventoryMissing (on update),
    placement.InventoryInvalid."""
    one = locks.tree(tx, uuid, generation)
    check(tx, [inventory])
    there = inventory.resource_class in _classes(tx, one)
    if there == create:
        refusal = errors.placement.InventoryExists if there else errors.placement.InventoryMissing
        raise refusal(uuid=uuid, resource_class=inventory.resource_class)
    _write(tx, one, inventory, there)
    locks.count_up(tx, [one])
    return one


def delete(tx: Connection, uuid: str, resource_class: str) -> Locked:
    """Delete the inventory of one class. Raises placement.ResourceProviderNotFound, placement.InventoryNotFound,
    placement.InventoryInuse."""
    one = locks.tree(tx, uuid)
    if resource_class not in _classes(tx, one):
        raise errors.placement.InventoryNotFound(uuid=uuid, resource_class=resource_class)
    check_unused(tx, one, [resource_class])
    _drop(tx, one, [resource_class])
    locks.count_up(tx, [one])
    return one


# -- parts of these, under the tree's lock

def check(tx: Connection, wanted: Sequence[ClassInventory]) -> None:
    """Check inventories. Raises placement.InventoryInvalid for an unknown class or invalid amounts."""
    for one in wanted:
        why = next((words for bad, words in (
            (one.total < 0 or one.reserved < 0, "amounts must not be negative"),
            (max(one.total, one.max_unit, one.step_size) > MOST, f"amounts must not exceed {MOST}"),
            (one.reserved > one.total, f"reserved ({one.reserved}) is more than total ({one.total})"),
            (one.min_unit < 1 or one.step_size < 1, "min_unit and step_size must be at least 1"),
            (one.max_unit < one.min_unit, "max_unit is less than min_unit"),
            (not 0 < one.allocation_ratio <= 1e9, "allocation_ratio must be above 0 and at most 1e9")) if bad), None)
        if why:
            raise errors.placement.InventoryInvalid(resource_class=one.resource_class, why=why)
    unknown = names.unknown_classes(tx, [one.resource_class for one in wanted])
    if unknown:
        raise errors.placement.InventoryInvalid(resource_class=unknown[0], why="unknown resource class")


def write(tx: Connection, one: Locked, wanted: Sequence[ClassInventory]) -> list[str]:
    """Set the provider's inventories; return the classes removed. Reported rows remain the host's: its next report sets
    them again."""
    there = _classes(tx, one)
    for inventory in wanted:
        _write(tx, one, inventory, inventory.resource_class in there)
    dropped = sorted(there - {inventory.resource_class for inventory in wanted})
    _drop(tx, one, dropped)
    return dropped


def check_unused(tx: Connection, one: Locked, classes: Sequence[str]) -> None:
    """Check that the classes have no allocations. Raises placement.InventoryInuse."""
    used = list(tx.execute(sa.select(allocations.c.resource_class).where(
        allocations.c.provider_id == one.id, allocations.c.resource_class.in_(list(classes))).distinct()
        .order_by(allocations.c.resource_class)).scalars()) if classes else []
    if used:
        raise errors.placement.InventoryInuse(classes=", ".join(used), uuid=one.uuid)


def _classes(tx: Connection, one: Locked) -> set[str]:
    return set(tx.execute(sa.select(inventories.c.resource_class).where(inventories.c.provider_id == one.id)).scalars())


def _write(tx: Connection, one: Locked, inventory: ClassInventory, there: bool) -> None:
    values: dict[str, Any] = {name: getattr(inventory, name) for name in _COLUMNS}
    if there:
        tx.execute(sa.update(inventories).where(inventories.c.provider_id == one.id,
                                                inventories.c.resource_class == inventory.resource_class)
                   .values(**values))
        _warn(tx, one, inventory)
    else:
        insert_all(tx, inventories, [{"provider_id": one.id, "resource_class": inventory.resource_class,
                                      "reported": False, **values}])


def _warn(tx: Connection, one: Locked, inventory: ClassInventory) -> None:
    """Warn if a provider shrank below its usage: it gets no new allocations until usage drops."""
    used = tx.execute(sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used), 0)).where(
        allocations.c.provider_id == one.id, allocations.c.resource_class == inventory.resource_class)).scalar_one()
    capacity = int((inventory.total - inventory.reserved) * inventory.allocation_ratio)
    if used > capacity:
        LOG.warning("resource provider %s now has a capacity of %d %s, below the %d in use", one.uuid, capacity,
                    inventory.resource_class, used)


def _drop(tx: Connection, one: Locked, classes: Sequence[str]) -> None:
    if classes:
        tx.execute(sa.delete(inventories).where(inventories.c.provider_id == one.id,
                                                inventories.c.resource_class.in_(list(classes))))
