"""VLAN numbers of new networks, and the values that VlanManager derives from them. Pure rules, like
:mod:`nova.model.network.addressing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nova import errors

FIRST, LAST = 1, 4094


def numbers(given: int | None, start: int, used: Iterable[int], existing: int) -> Iterator[int]:
    """Yield one number per new network: from ``given`` on, or else from ``start`` plus ``existing`` on. In the second
    case, the highest used number + 1 replaces a number in use. Raises network.VlanTaken if a given number is in use, or
    network.NoVlan."""
    taken = set(used)
    index = 0
    while True:
        number = given + index if given is not None else start + existing + index
        if number in taken:
            if given is not None:
                raise errors.network.VlanTaken(vlan=number)
            number = max(taken) + 1
        if number > LAST:
            raise errors.network.NoVlan(vlan=number, last=LAST)
        taken.add(number)
        yield number
        index += 1


def bridge(vlan: int) -> str:
    """Return the name of VlanManager's bridge for that number, which overrides a requested name."""
    return f"br{vlan}"
