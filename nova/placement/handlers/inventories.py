"""Handlers for a provider's inventories, all and single."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova import decoding, errors
from nova.model.placement.providers import ClassInventory, ProviderInventories
from nova.placement import versions
from nova.placement.request import PlacementAnswer, PlacementAPIRequest
from nova.placement.views import inventories as views
from nova.placement.views.providers import path_of
from nova.web.schema import MAX_INT


class AskedInventory(msgspec.Struct, frozen=True):
    """An inventory in a body. For a single one, the body also has the class and the provider's generation."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0
    resource_class: str = ""
    resource_provider_generation: int | None = None


class AskedInventories(msgspec.Struct, frozen=True):
    """All inventories of a provider in a body, by class."""

    resource_provider_generation: int
    inventories: Mapping[str, AskedInventory]


def index(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """Show all inventories of a provider, by class. Raises placement.ResourceProviderNotFound (404)."""
    return views.listing(req.conductor.get_inventories(uuid))


def create(req: PlacementAPIRequest, uuid: str) -> PlacementAnswer:
    """Add the inventory of a class to a provider. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryBadCapacity, InventoryInvalid (400); placement.InventoryExists, ConcurrentUpdate (409)."""
    asked = decoding.convert(req.body, AskedInventory)
    name = asked.resource_class
    written = req.conductor.set_inventory(uuid, asked.resource_provider_generation, read(name, asked, req.version),
                                          True)
    return PlacementAnswer(views.single(written, _of(written, name)), 201, f"{path_of(uuid)}/inventories/{name}")


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """Replace all inventories of a provider. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryBadCapacity, InventoryInvalid (400); placement.InventoryInuse, ConcurrentUpdate (409)."""
    return views.listing(req.conductor.set_inventories(whole(uuid, decoding.convert(req.body, AskedInventories),
                                                               req.version)))


def clear(req: PlacementAPIRequest, uuid: str) -> None:
    """Delete all inventories of a provider, at any generation. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryInuse (409)."""
    req.conductor.set_inventories(ProviderInventories(uuid=uuid))


def show(req: PlacementAPIRequest, uuid: str, name: str) -> dict[str, object]:
    """Show the inventory of one class. Raises placement.ResourceProviderNotFound, placement.NotFound (404)."""
    found = req.conductor.get_inventories(uuid)
    return views.single(found, _of(found, name))


def update(req: PlacementAPIRequest, uuid: str, name: str) -> dict[str, object]:
    """Update the inventory of a class that the provider has. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryMissing, InventoryBadCapacity, InventoryInvalid (400); placement.ConcurrentUpdate (409)."""
    asked = decoding.convert(req.body, AskedInventory)
    written = req.conductor.set_inventory(uuid, asked.resource_provider_generation, read(name, asked, req.version),
                                          False)
    return views.single(written, _of(written, name))


def delete(req: PlacementAPIRequest, uuid: str, name: str) -> None:
    """Delete the inventory of one class from a provider. Raises placement.ResourceProviderNotFound, InventoryNotFound
    (404); placement.InventoryInuse (409)."""
    req.conductor.delete_inventory(uuid, name)


def whole(uuid: str, asked: AskedInventories, version: int) -> ProviderInventories:
    """Return all inventories of a provider from a body. Raises placement.InventoryBadCapacity."""
    return ProviderInventories(uuid=uuid, generation=asked.resource_provider_generation, inventories=tuple(
        read(name, record, version) for name, record in asked.inventories.items()))


def read(name: str, asked: AskedInventory, version: int) -> ClassInventory:
    """Return one inventory from a body. Raises placement.InventoryBadCapacity if ``reserved`` leaves no capacity,
    before 1.26."""
    one = ClassInventory(resource_class=name, total=asked.total, reserved=asked.reserved, min_unit=asked.min_unit,
                         max_unit=asked.max_unit, step_size=asked.step_size, allocation_ratio=asked.allocation_ratio)
    if one.reserved > one.total or (one.reserved == one.total and not versions.reserved_may_be_total(version)):
        rule = "at most" if versions.reserved_may_be_total(version) else "less than"
        raise errors.placement.InventoryBadCapacity(name=name, rule=rule)
    return one


def _of(found: ProviderInventories, name: str) -> ClassInventory:
    one = next((one for one in found.inventories if one.resource_class == name), None)
    if one is None:
        raise errors.placement.NotFound(kind=f"inventory of resource provider {found.uuid}", name=name)
    return one
