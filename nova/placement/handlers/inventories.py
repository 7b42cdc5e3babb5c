"""Handlers for a provider's inventories, all and single."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.model.base import Json
from nova.model.placement.providers import ClassInventory, ProviderInventories
from nova.placement import versions
from nova.placement.request import PlacementAnswer, PlacementAPIRequest
from nova.placement.views import inventories as views
from nova.placement.views.providers import path_of

FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
GENERATION = "resource_provider_generation"


def index(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """Show all inventories of a provider, by class. Raises placement.ResourceProviderNotFound (404)."""
    return views.listing(req.conductor.get_inventories(uuid))


def create(req: PlacementAPIRequest, uuid: str) -> PlacementAnswer:
    """Add the inventory of a class to a provider. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryBadCapacity, InventoryInvalid (400); placement.InventoryExists, ConcurrentUpdate (409)."""
    name = req.body["resource_class"]
    written = req.conductor.set_inventory(uuid, req.body.get(GENERATION), read(name, req.body, req.version), True)
    return PlacementAnswer(views.single(written, _of(written, name)), 201, f"{path_of(uuid)}/inventories/{name}")


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """Replace all inventories of a provider. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryBadCapacity, InventoryInvalid (400); placement.InventoryInuse, ConcurrentUpdate (409)."""
    return views.listing(req.conductor.set_inventories(whole(uuid, req.body, req.version)))


def clear(req: PlacementAPIRequest, uuid: str) -> None:
    """Delete all inventories of a provider, at any generation. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryInuse (409)."""
    req.conductor.set_inventories(ProviderInventories(uuid=uuid))


def show(req: PlacementAPIRequest, uuid: str, name: str) -> dict[str, Json]:
    """Show the inventory of one class. Raises placement.ResourceProviderNotFound, placement.NotFound (404)."""
    found = req.conductor.get_inventories(uuid)
    return views.single(found, _of(found, name))


def update(req: PlacementAPIRequest, uuid: str, name: str) -> dict[str, Json]:
    """Update the inventory of a class that the provider has. Raises placement.ResourceProviderNotFound (404);
    placement.InventoryMissing, InventoryBadCapacity, InventoryInvalid (400); placement.ConcurrentUpdate (409)."""
    written = req.conductor.set_inventory(uuid, req.body[GENERATION], read(name, req.body, req.version), False)
    return views.single(written, _of(written, name))


def delete(req: PlacementAPIRequest, uuid: str, name: str) -> None:
    """Delete the inventory of one class from a provider. Raises placement.ResourceProviderNotFound, InventoryNotFound
    (404); placement.InventoryInuse (409)."""
    req.conductor.delete_inventory(uuid, name)


def whole(uuid: str, body: Mapping[str, Json], version: int) -> ProviderInventories:
    """Return all inventories of a provider from a body. Raises placement.InventoryBadCapacity."""
    return ProviderInventories(uuid=uuid, generation=body[GENERATION], inventories=tuple(
        read(name, record, version) for name, record in body["inventories"].items()))


def read(name: str, record: Mapping[str, Json], version: int) -> ClassInventory:
    """Return one inventory from a body. Raises placement.InventoryBadCapacity if ``reserved`` leaves no capacity,
    before 1.26."""
    one = ClassInventory(resource_class=name, **{field: record[field] for field in FIELDS if field in record})
    if one.reserved > one.total or (one.reserved == one.total and not versions.reserved_may_be_total(version)):
        rule = "at most" if versions.reserved_may_be_total(version) else "less than"
        raise errors.placement.InventoryBadCapacity(name=name, rule=rule)
    return one


def _of(found: ProviderInventories, name: str) -> ClassInventory:
    one = next((one for one in found.inventories if one.resource_class == name), None)
    if one is None:
        raise errors.placement.NotFound(kind=f"inventory of resource provider {found.uuid}", name=name)
    return one
