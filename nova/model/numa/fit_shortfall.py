"""Shortage of a host's cells and devices for a guest, which explains why no valid host was found.

Each requirement is measured separately, against the cell with the most of it. If each is met by some cell, but the
guest fits nowhere, no shortage can be measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nova.model.numa import fit_devices
from nova.model.numa.fit_free import FreeCell, FreeResources, free_resources
from nova.model.numa.topology import GuestTopology, HostTopology, TopologyClaim, Wanted


class Shortage(NamedTuple):
    """A shortage. ``what``: text to follow the number."""

    need: int
    free: int
    what: str

    @property
    def share(self) -> float:
        """Missing share of the required amount, 0..1."""
        return min(1.0, (self.need - self.free) / self.need)


def shortages(host: HostTopology | None, guests: Iterable[TopologyClaim], wanted: Wanted) -> list[Shortage]:
    """Return the shortages of a host that the guest does not fit, with these guests deducted."""
    if host is None:
        return []
    room = free_resources(host, guests)
    found = [*_cells(room, wanted.guest)] if wanted.guest is not None else []
    for match in fit_devices.matches(room, wanted.devices):
        free = sum(len(one.addresses) for one in match.devices)
        found.append(Shortage(match.request.count, free, f"PCI devices {fit_devices.name_of(match.request)}"))
    return [lack._replace(free=max(0, lack.free)) for lack in found if lack.free < lack.need]


def _cells(room: FreeResources, guest: GuestTopology) -> Iterator[Shortage]:
    cells = room.cells
    yield Shortage(len(guest.cells), len(cells), "NUMA cells")
    pins = max(len(cell.pinned) + (guest.emulator == "isolate" and at == 0) for at, cell in enumerate(guest.cells))
    yield Shortage(pins, _most(len(one.dedicated) for one in cells), "dedicated CPUs in one cell")
    floating = max(len(cell.vcpus) - len(cell.pinned) for cell in guest.cells)
    yield Shortage(floating, _most(min(one.shared, len(one.cell.shared)) for one in cells), "shared CPUs in one cell")
    yield _memory(cells, guest, max(cell.memory_mb for cell in guest.cells))


def _memory(cells: Iterable[FreeCell], guest: GuestTopology, memory_mb: int) -> Shortage:
    rooms = tuple(cells)
    small = _most(min(one.memory_mb, one.small_mb) for one in rooms)
    sizes = {one.small_kb for one in rooms}
    if guest.page in ("", "small") or (guest.page.isdecimal() and int(guest.page) in sizes):
        return Shortage(memory_mb, small, "MB of memory in one cell")
    if guest.page.isdecimal():
        size = int(guest.page)
        free = _most(one.pages.get(size, 0) for one in rooms)
        return Shortage(-(-memory_mb * 1024 // size), free, f"pages of {size} KB in one cell")
    large = _most(size * count // 1024 for one in rooms for size, count in one.pages.items())
    return Shortage(memory_mb, max(large, small if guest.page == "any" else 0), "MB of large pages in one cell")


def _most(amounts: Iterable[int]) -> int:
    return max(amounts, default=0)


__all__ = ["Shortage", "shortages"]
