"""Devices of a host that a guest gets: they meet its requests and, as far as these demand it, are near its cells.

A physical function is assigned either as a whole or as virtual functions, never both. Source: the public guide on PCI
passthrough (NUMA affinity policies).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from nova.model.numa.fit_free import FreeResources
from nova.model.numa.pci_aliases import device_class, normal_traits
from nova.model.numa.topology import DeviceClaim, PciDevice, PciRequest, PciSpec

#: Kinds that are only assigned to requests that name the kind.
ONLY_BY_KIND = frozenset({"type-PF", "vdpa"})

STEPS = 10_000  # limit of steps to find the devices for one placement: a few tenths of a second

TOGETHER = "its PCI devices are not available together"


class Alike(NamedTuple):
    """Free devices that are interchangeable."""

    sample: PciDevice
    addresses: tuple[str, ...]


class Match(NamedTuple):
    """A request, and all matching devices on any cell."""

    request: PciRequest
    devices: tuple[Alike, ...]


def matches(room: FreeResources, requests: Sequence[PciRequest]) -> tuple[Match, ...]:
    """Return the match of each request."""
    if not requests:
        return ()
    groups = _alike(room)
    return tuple(Match(one, tuple(group for group in groups if _is(group.sample, one))) for one in requests)


def lacking(found: Sequence[Match]) -> str | None:
    """Return an error for the first request with too few devices on all cells together; None if each has enough by
    itself."""
    for request, devices in found:
        if sum(len(one.addresses) for one in devices) < request.count:
            return f"fewer than {request.count} free PCI devices {name_of(request)}"
    return None


def far(found: Sequence[Match]) -> str:
    """Return the reason why a guest whose cells fit gets no devices."""
    for request, _ in found:
        if request.numa_policy != "preferred":
            return f"no free PCI devices {name_of(request)} near its cells"
    return TOGETHER


def name_of(request: PciRequest) -> str:
    """Return a description of the request, as text to follow the word "devices"."""
    if request.alias:
        return f"of alias {request.alias}"
    return "that its port requests" if request.id else "as requested"


def choose(room: FreeResources, found: Sequence[Match], cells: frozenset[int] | None) -> tuple[DeviceClaim, ...] | None:
    """Return devices for all requests of a guest on these cells (None: on any cells); None if they are not
    available."""
    options = [_ordered(room, match, cells) for match in found]
    spare = [sum(len(one.addresses) for one in mine) - match.request.count
             for mine, match in zip(options, found, strict=True)]
    if any(count < 0 for count in spare):
        return None
    scarce_first = sorted(range(len(found)), key=lambda at: (spare[at], at))
    search = _Search(options, [at for at in scarce_first for _ in range(found[at].request.count)])
    if not search.fill(0, 0):
        return None
    pairs = sorted(zip(search.slots, search.taken, strict=True), key=lambda pair: pair[0])
    return tuple(_packed(found[at].request, at, device) for at, device in pairs)


class _Search:
    """Search that fills one slot per device with an option of its request. Failed states are not tried again. Requests
    that compete for the same physical functions have too many states for a full search, so the steps are limited."""

    def __init__(self, options: Sequence[Sequence[Alike]], slots: Sequence[int]) -> None:
        self.options, self.slots = options, slots
        self.taken: list[PciDevice] = []
        self._left = STEPS
        self._used: Counter[str] = Counter()  # first address of an interchangeable group -> number in use
        self._dead: set[tuple[int, int, frozenset[tuple[str, int]]]] = set()

    def fill(self, slot: int, start: int) -> bool:
        """Fill the slots from ``slot`` on. ``start``: index into the request's options; interchangeable devices need no
        other order."""
        if slot == len(self.slots):
            return True
        state = (slot, start, frozenset((+self._used).items()))
        if state in self._dead:
            return False
        request = self.slots[slot]
        for at in range(start, len(self.options[request])):
            sample, addresses = self.options[request][at]
            count = self._used[addresses[0]]
            self._left -= 1
            if self._left < 0:
                return False
            if count == len(addresses) or _excluded(sample, self.taken):
                continue
            self.taken.append(_at(sample, addresses[count]))
            self._used[addresses[0]] += 1
            again = slot + 1 < len(self.slots) and self.slots[slot + 1] == request
            if self.fill(slot + 1, at if again else 0):
                return True
            self.taken.pop()
            self._used[addresses[0]] -= 1
        self._dead.add(state)
        return False


def _packed(request: PciRequest, at: int, device: PciDevice) -> DeviceClaim:
    port = bool(request.id)  # its binding contains the device's ids
    return DeviceClaim(address=device.address, request=at, alias=request.alias, id=request.id, kind=device.kind,
                       parent=device.parent, managed=device.managed, live_migratable=device.live_migratable,
                       cell=device.cell, vendor_id=device.vendor_id if port else "",
                       product_id=device.product_id if port else "",
                       physical_network=device.tags.get("physical_network") if port else None)


def _at(sample: PciDevice, address: str) -> PciDevice:
    """Return the device at an address; all other properties are those of the sample."""
    if sample.address == address:
        return sample
    return PciDevice(address=address, vendor_id=sample.vendor_id, product_id=sample.product_id, kind=sample.kind,
                     cell=sample.cell, parent=sample.parent, tags=sample.tags,
                     live_migratable=sample.live_migratable, managed=sample.managed)


def _excluded(device: PciDevice, taken: Sequence[PciDevice]) -> bool:
    """Return whether a physical function and one of its virtual functions would both be assigned."""
    return any(one.parent == device.address or (device.parent is not None and one.address == device.parent)
               for one in taken)


def _ordered(room: FreeResources, match: Match, cells: frozenset[int] | None) -> list[Alike]:
    """Return the devices that the request's policy allows, the best first: near devices; functions of physical
    functions that are already divided; devices of the smallest group."""
    allowed = [one for one in match.devices if cells is None or _near_enough(room, match.request, one.sample, cells)]
    return sorted(allowed, key=lambda one: (
        cells is not None and one.sample.cell is not None and one.sample.cell not in cells,
        cells is not None and one.sample.cell is None,
        one.sample.kind != "type-PCI", one.sample.parent not in room.parents, len(one.addresses), one.addresses))


def _near_enough(room: FreeResources, request: PciRequest, device: PciDevice, cells: frozenset[int]) -> bool:
    if request.numa_policy == "preferred":
        return True
    if device.cell is None:
        return request.numa_policy == "legacy"
    if request.numa_policy != "socket":
        return device.cell in cells
    sockets = {one.id: one.socket for one in room.host.cells}
    mine = sockets.get(device.cell)
    return mine is not None and any(sockets.get(cell) == mine for cell in cells)


# -- matching of devices


def _alike(room: FreeResources) -> list[Alike]:
    groups: dict[object, list[PciDevice]] = {}
    for one in room.devices:
        own = one.address if one.kind == "type-PF" else ""  # two physical functions differ by their virtual functions
        key = (one.vendor_id, one.product_id, one.kind, one.cell, one.parent, own, one.live_migratable, one.managed,
               tuple(sorted(one.tags.items())) if one.tags else ())
        groups.setdefault(key, []).append(one)
    return [Alike(min(lot, key=lambda one: one.address), tuple(sorted(one.address for one in lot)))
            for lot in groups.values()]


def _is(device: PciDevice, request: PciRequest) -> bool:
    return any(_meets(device, spec) for spec in request.specs)


def _meets(device: PciDevice, spec: PciSpec) -> bool:
    if spec.kind is None and device.kind in ONLY_BY_KIND:
        return False
    if any(wanted is not None and wanted != has for wanted, has in (
            (spec.kind, device.kind), (spec.vendor_id, device.vendor_id), (spec.product_id, device.product_id),
            (spec.live_migratable, device.live_migratable))):
        return False
    if spec.resource_class is not None and spec.resource_class != device_class(device):
        return False
    return (set(spec.traits) <= set(normal_traits(device.tags.get("traits", "")))
            and all(device.tags.get(name) == value for name, value in spec.tags.items()))


__all__ = ["TOGETHER", "Alike", "Match", "choose", "far", "lacking", "matches", "name_of"]
