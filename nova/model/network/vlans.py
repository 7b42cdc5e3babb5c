"""VLAN numbers of new networks, and what VlanManager derives from them. Pure rules, as
:mod:`nova.model.network.addressing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nova import errors

FIRST, LAST = 1, 4094


def numbers(given: int | None, start: int, used: Iterable[int], existing: int) -> Iterator[int]:
    """One number a new network: from ``given`` on, else from ``start`` past the ``existing`` networks; one that is
    taken then gives way to the highest used + 1. network.VlanTaken where it was asked for; network.NoVlan."""
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
    """VlanManager's bridge of that number, whatever was asked for."""
    return f"br{vlan}"
