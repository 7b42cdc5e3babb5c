"""VLAN numbers of new networks, and what VlanManager derives from them. Pure rules, as :mod:`nova.model.addressing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nova.errors import Conflict

FIRST, LAST = 1, 4094


class VlanTaken(Conflict):
    code, message = "network.vlan_taken", "Detected existing vlan with id {vlan}"


class NoVlanLeft(Conflict):
    code, message = "network.no_vlan", "No VLAN number is left: {vlan} is above {last}."


def numbers(given: int | None, start: int, used: Iterable[int], existing: int) -> Iterator[int]:
    """One number a new network: from ``given`` on, else from ``start`` past the ``existing`` networks; one that is
    taken then gives way to the highest used + 1. VlanTaken where it was asked for; NoVlanLeft."""
    taken = set(used)
    index = 0
    while True:
        number = given + index if given is not None else start + existing + index
        if number in taken:
            if given is not None:
                raise VlanTaken(vlan=number)
            number = max(taken) + 1
        if number > LAST:
            raise NoVlanLeft(vlan=number, last=LAST)
        taken.add(number)
        yield number
        index += 1


def bridge(vlan: int) -> str:
    """VlanManager's bridge of that number, whatever was asked for."""
    return f"br{vlan}"
