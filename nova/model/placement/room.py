"""How much a host has to give, by resource class, and how much of what it claims is believed.

A host that lies about its size draws every new server to itself. So what it reported first is its mark, and it is
taken at its word up to :data:`GROWTH` times that; beyond it an operator has to accept the host as it is. A mark does
not follow a host that grows, else it could grow step by step; nor one that shrinks, whose disk may be back tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nova.model.placement.providers import ClassInventory

GROWTH = 2

Room = Mapping[str, int]  # what can be given of each resource class, with ratios and without what is reserved


def capacity(one: ClassInventory) -> int:
    """What can be given of an inventory."""
    return int((one.total - one.reserved) * one.allocation_ratio)


def claimed(inventories: Iterable[ClassInventory]) -> dict[str, int]:
    """Of all of a host's providers together: what one of them has too much, another may not have either."""
    found: dict[str, int] = {}
    for one in inventories:
        found[one.resource_class] = found.get(one.resource_class, 0) + capacity(one)
    return found


def marked(mark: Room, claim: Room) -> dict[str, int]:
    """The mark, with classes that the host had nothing of until now as it first claims them."""
    return {**{name: amount for name, amount in claim.items() if amount}, **mark}


def limits(mark: Room) -> dict[str, int]:
    """What is believed of each class at most; a class without a mark has no limit."""
    return {name: GROWTH * amount for name, amount in mark.items()}


def beyond(mark: Room, claim: Room) -> tuple[str, ...]:
    """The classes of which a host claims more than is believed."""
    most = limits(mark)
    return tuple(sorted(name for name, amount in claim.items() if amount > most.get(name, amount)))


def within(one: ClassInventory, left: dict[str, int]) -> ClassInventory:
    """The inventory as far as it is believed. ``left``: what is believed of the host's providers that are still to
    come; this one's part is taken from it."""
    most, wanted = left.get(one.resource_class), capacity(one)
    if most is None:
        return one
    left[one.resource_class] = most - min(wanted, most)
    if wanted <= most:
        return one
    return msgspec.structs.replace(one, total=most, reserved=0, allocation_ratio=1.0,
                                   max_unit=max(1, min(one.max_unit, most)))
