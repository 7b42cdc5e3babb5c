"""Validation of a packing on the host itself: whether it still fits, with the host's guests deducted. The host checks
this before a build, by the same count of free resources as :mod:`nova.model.numa.fit`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nova.model.numa.fit_free import FreeCell, FreeResources, free_resources, pages_of
from nova.model.numa.topology import CellClaim, HostTopology, TopologyClaim


def clash(host: HostTopology | None, others: Iterable[TopologyClaim], packing: TopologyClaim, amounts: bool = True
          ) -> str | None:
    """Return the conflict as a short text; None if the packing fits. ``amounts`` False: check only exclusive resources
    (CPUs, huge pages, devices), not the allocation of shared ones."""
    if host is None:
        return None if not (packing.cells or packing.devices) else "its NUMA cells and devices are unknown"
    room = free_resources(host, others)
    return _cpus(room, packing) or _memory(room, packing, amounts) or _devices(room, packing)


def _cpus(room: FreeResources, packing: TopologyClaim) -> str | None:
    cells = {one.cell.id: one for one in room.cells}
    taken: Counter[int] = Counter()
    for cell in packing.cells:
        if cell.host_cell not in cells:
            return f"unknown NUMA cell {cell.host_cell}"
        own, here = set(cells[cell.host_cell].cell.dedicated), cells[cell.host_cell]
        wanted = [*cell.pins.values(), *cell.emulator, *cell.idle]
        for cpu in wanted:
            if cpu not in own:
                return f"CPU {cpu} of cell {cell.host_cell} is not dedicated to guests"
            if cpu not in here.dedicated:
                return f"CPU {cpu} is used by another guest"
        taken.update(wanted)
        missing = set(cell.shared) - set(here.cell.shared)
        if missing:
            return f"CPU {min(missing)} of cell {cell.host_cell} is not shared by guests"
    twice = [cpu for cpu, count in taken.items() if count > 1]
    return f"CPU {twice[0]} is assigned twice" if twice else None


def _memory(room: FreeResources, packing: TopologyClaim, amounts: bool) -> str | None:
    cells = {one.cell.id: one for one in room.cells}
    floating: Counter[int] = Counter()
    small: Counter[int] = Counter()
    pages: Counter[tuple[int, int]] = Counter()
    for cell in packing.cells:
        floating[cell.host_cell] += len(cell.vcpus) - len(cell.pins)
        if _is_small(cells[cell.host_cell], cell):
            small[cell.host_cell] += cell.memory_mb
        else:
            pages[cell.host_cell, cell.page_kb or 0] += pages_of(cell)
    for (at, size), count in pages.items():
        free = cells[at].pages.get(size, 0)
        if count > free:
            return f"cell {at} has {max(0, free)} free {size} KB pages, not {count}"
    for at in {**small, **floating} if amounts else ():
        if small[at] > cells[at].memory_mb:
            return f"cell {at} has {max(0, cells[at].memory_mb)} MB of free memory, not {small[at]}"
        if floating[at] > cells[at].shared:
            return f"cell {at} has {max(0, cells[at].shared)} free shared CPUs, not {floating[at]}"
    return None


def _is_small(room: FreeCell, cell: CellClaim) -> bool:
    return cell.page_kb in (None, room.small_kb)


def _devices(room: FreeResources, packing: TopologyClaim) -> str | None:
    known, free = {one.address for one in room.host.devices}, {one.address for one in room.devices}
    addresses = [one.address for one in packing.devices]
    for address in addresses:
        if address not in known:
            return f"device {address} is not available to guests"
        if address not in free:
            return f"device {address} is used by another guest"
    twice = [address for address, count in Counter(addresses).items() if count > 1]
    return f"device {twice[0]} is assigned twice" if twice else None
