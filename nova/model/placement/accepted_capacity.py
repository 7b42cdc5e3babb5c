"""Capacity of a host by resource class, and the limit up to which its reported capacity is trusted.

A host that reports too much capacity attracts every new server. So the first report is the host's mark, and reports are
trusted up to :data:`GROWTH` times the mark; above that, an operator must accept the host's report. The mark does not
grow with the host, which could otherwise grow step by step. It does not shrink either: a missing disk may be back
tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nova.model.placement.providers import ClassInventory

GROWTH = 2

Capacities = Mapping[str, int]  # allocatable amounts by resource class, with ratios and without reserved amounts


def capacity(one: ClassInventory) -> int:
    """Return the allocatable amount of an inventory."""
    return int((one.total - one.reserved) * one.allocation_ratio)


def claimed(inventories: Iterable[ClassInventory]) -> dict[str, int]:
    """Return the capacity of all of a host's providers together: amounts that one reports in excess are missing for the
    others."""
    found: dict[str, int] = {}
    for one in inventories:
        found[one.resource_class] = found.get(one.resource_class, 0) + capacity(one)
    return found


def marked(mark: Capacities, claim: Capacities) -> dict[str, int]:
    """Return the mark, extended by the claims of classes that the host had no capacity of before."""
    return {**{name: amount for name, amount in claim.items() if amount}, **mark}


def limits(mark: Capacities) -> dict[str, int]:
    """Return the trusted maximum of each class; a class without a mark has no limit."""
    return {name: GROWTH * amount for name, amount in mark.items()}


def beyond(mark: Capacities, claim: Capacities) -> tuple[str, ...]:
    """Return the classes of which a host reports more than the trusted maximum."""
    most = limits(mark)
    return tuple(sorted(name for name, amount in claim.items() if amount > most.get(name, amount)))


def within(one: ClassInventory, left: dict[str, int]) -> ClassInventory:
    """Return the inventory, reduced to the trusted amount. ``left``: trusted amounts for the host's remaining
    providers; this provider's part is deducted."""
    most, wanted = left.get(one.resource_class), capacity(one)
    if most is None:
        return one
    left[one.resource_class] = most - min(wanted, most)
    if wanted <= most:
        return one
    return msgspec.structs.replace(one, total=most, reserved=0, allocation_ratio=1.0,
                                   max_unit=max(1, min(one.max_unit, most)))
