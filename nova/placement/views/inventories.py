"""Inventories."""

from __future__ import annotations

from nova.model.placement.providers import ClassInventory, ProviderInventories


def record(one: ClassInventory) -> dict[str, object]:
    """Return the six numbers of one inventory."""
    return {"total": one.total, "reserved": one.reserved, "min_unit": one.min_unit, "max_unit": one.max_unit,
            "step_size": one.step_size, "allocation_ratio": one.allocation_ratio}


def listing(found: ProviderInventories) -> dict[str, object]:
    """Return the ``inventories`` by class, with the provider's generation."""
    return {"resource_provider_generation": found.generation,
            "inventories": {one.resource_class: record(one) for one in found.inventories}}


def single(found: ProviderInventories, one: ClassInventory) -> dict[str, object]:
    """Return one inventory's numbers and the provider's generation, at one level."""
    return {"resource_provider_generation": found.generation, **record(one)}
