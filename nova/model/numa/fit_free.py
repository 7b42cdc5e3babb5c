"""Free resources of a host's cells and devices: the total minus those of all guests, in any order.

Memory in MB, page sizes in KB. Amounts are negative if a host became smaller than its guests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nova.model.numa.topology import CellClaim, Cpus, HostCell, HostTopology, PciDevice, TopologyClaim

LARGEST_SMALL_KB = 64  # no CPU architecture has larger smallest pages
USUAL_SMALL_KB = 4


class Core(NamedTuple):
    """A core with free CPUs for pinning. ``whole``: no other guest runs on any of its threads."""

    free: Cpus
    threads: int
    whole: bool


class FreeCell(NamedTuple):
    """Free capacity of a cell. ``shared``: virtual CPUs that can still float here; ``memory_mb``: in small pages;
    ``pages``: size -> number of larger pages. ``small_mb`` is all memory in small pages, without a ratio."""

    cell: HostCell
    dedicated: Cpus
    shared: int
    memory_mb: int
    pages: Mapping[int, int]
    small_kb: int
    small_mb: int

    def cores(self) -> list[Core]:
        """Return the cores that have a free CPU for pinning."""
        free, mine, shared = set(self.dedicated), set(self.cell.dedicated), set(self.cell.shared)
        found, seen = [], set[int]()
        for threads in self.cell.siblings:
            left = tuple(sorted(free.intersection(threads)))
            seen.update(threads)
            if left:
                found.append(Core(left, len(threads), len(left) == len(mine.intersection(threads))
                                  and shared.isdisjoint(threads)))
        return found + [Core((cpu,), 1, True) for cpu in self.dedicated if cpu not in seen]


class FreeResources(NamedTuple):
    """Free capacity of a host. ``devices``: free devices. ``parents``: physical functions of which virtual functions
    are assigned."""

    host: HostTopology
    cells: tuple[FreeCell, ...]
    devices: tuple[PciDevice, ...]
    parents: frozenset[str]


def free_resources(host: HostTopology, guests: Iterable[TopologyClaim]) -> FreeResources:
    """Return the free capacity, with these guests deducted."""
    pinned: set[int] = set()
    floating: Counter[int] = Counter()
    small: Counter[int] = Counter()
    pages: Counter[tuple[int, int]] = Counter()
    given: set[str] = set()
    parents: set[str] = set()
    sizes = {cell.id: _small_kb(cell) for cell in host.cells}
    for guest in guests:
        for cell in guest.cells:
            pinned.update(cell.pins.values(), cell.emulator, cell.idle)
            floating[cell.host_cell] += len(cell.vcpus) - len(cell.pins)
            if cell.page_kb in (None, sizes.get(cell.host_cell)):
                small[cell.host_cell] += cell.memory_mb
            else:
                pages[cell.host_cell, cell.page_kb or 0] += pages_of(cell)
        for device in guest.devices:
            given.add(device.address)
            if device.parent:
                parents.add(device.parent)
    cells = tuple(_cell_room(host, cell, pinned, (floating[cell.id], small[cell.id]), pages) for cell in host.cells)
    free = tuple(one for one in host.devices if one.address not in given and one.address not in parents
                 and one.parent not in given) if host.devices else ()
    return FreeResources(host, cells, free, frozenset(parents))


def _cell_room(host: HostTopology, cell: HostCell, pinned: set[int], used: tuple[int, int],
               pages: Mapping[tuple[int, int], int]) -> FreeCell:
    """Return a cell's free capacity. ``used``: (floating virtual CPUs, MB of small pages)."""
    size = _small_kb(cell)
    small_mb = _small_mb(cell, size)
    return FreeCell(
        cell=cell, dedicated=tuple(sorted(set(cell.dedicated) - pinned)), small_kb=size, small_mb=small_mb,
        shared=int(len(cell.shared) * host.cpu_ratio) - used[0],
        memory_mb=int(small_mb * host.memory_ratio) - used[1],
        pages={one.size_kb: one.total - one.reserved - pages.get((cell.id, one.size_kb), 0) for one in cell.pages
               if one.size_kb != size})


def pages_of(cell: CellClaim) -> int:
    """Return the number of a packed cell's pages of its size."""
    return cell.memory_mb * 1024 // cell.page_kb if cell.page_kb else 0


def _small_kb(cell: HostCell) -> int:
    return min((one.size_kb for one in cell.pages if one.size_kb <= LARGEST_SMALL_KB), default=USUAL_SMALL_KB)


def _small_mb(cell: HostCell, size: int) -> int:
    """Return the cell's memory in small pages. If these are not counted, it is the memory outside of larger pages."""
    for one in cell.pages:
        if one.size_kb == size:
            return (one.total - one.reserved) * size // 1024
    return cell.memory_mb - sum(one.total * one.size_kb for one in cell.pages) // 1024


__all__ = ["FreeCell", "Core", "FreeResources", "pages_of", "free_resources"]
