"""NUMA and PCI claims: the placement of a guest on a host's NUMA cells and PCI devices. The one rule for the scheduler,
for the claim that decides, and for the host that validates its orders.

Pure: two guests never share a pinned CPU, a page, or a device. Free resources are the total minus those of all guests.
Each cell of a guest is on a host cell of its own. The tightest-fitting host cells are preferred; cells with devices are
preferred only for guests that request devices.

Source: the public guides on CPU topologies, huge pages, realtime and PCI passthrough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nova.model.numa import fit_cpus, fit_devices
from nova.model.numa.fit_free import FreeCell, FreeResources, free_resources
from nova.model.numa.topology import (
    CellClaim,
    DeviceClaim,
    GuestCell,
    GuestTopology,
    HostTopology,
    TopologyClaim,
    Wanted,
)

STEPS = 10_000  # limit of steps to place a guest's cells: more than a host with eight full cells could need
ISOLATE = "isolate"
LARGE, SMALL, ANY = "large", "small", "any"
UNKNOWN = "its NUMA cells and devices are unknown"


class _Need(NamedTuple):
    """Requirements of a guest cell, without the numbers of its virtual CPUs."""

    pins: int
    floating: int
    memory_mb: int
    emulator: bool
    policy: str


class _Seat(NamedTuple):
    """A host cell with enough capacity for a guest cell."""

    room: FreeCell
    need: _Need

    def pinned(self) -> fit_cpus.Pinned | None:
        """Return the host CPUs that the guest cell gets."""
        if not self.need.pins and not self.need.emulator:
            return fit_cpus.Pinned(())
        return fit_cpus.choose(self.room.cores(), self.need.pins, self.need.policy, self.need.emulator)

    def has_processors(self) -> bool:
        """Return whether there are such CPUs; without a thread policy, their number decides."""
        if len(self.room.dedicated) < self.need.pins + self.need.emulator:
            return False
        return self.need.policy == fit_cpus.PREFER or self.pinned() is not None


class _Found(NamedTuple):
    """Host cells of a guest's cells, and its devices."""

    seats: tuple[_Seat, ...] = ()
    devices: tuple[DeviceClaim, ...] = ()
    page: int | None = None


def pack(host: HostTopology | None, guests: Iterable[TopologyClaim], wanted: Wanted) -> TopologyClaim | str:
    """Return the guest's resources on a host with other guests; or the reason why it does not fit, as a short text
    without the host's name."""
    if not wanted.anything:
        return TopologyClaim()
    return UNKNOWN if host is None else pack_into(free_resources(host, guests), wanted)


def usage(host: HostTopology, guests: Iterable[TopologyClaim]) -> FreeResources:
    """Return the free resources by cell, with the guests deducted."""
    return free_resources(host, guests)


def why_not(host: HostTopology | None, guests: Iterable[TopologyClaim], wanted: Wanted) -> str | None:
    """Return the reason that :func:`pack` would give; None if the guest fits. No packing is built."""
    if not wanted.anything:
        return None
    if host is None:
        return UNKNOWN
    found = _search(free_resources(host, guests), wanted)
    return found if isinstance(found, str) else None


def pack_into(room: FreeResources, wanted: Wanted) -> TopologyClaim | str:
    """Return the result of :func:`pack` for the given free resources."""
    found = _search(room, wanted)
    if isinstance(found, str):
        return found
    guest = wanted.guest
    if guest is None:
        return TopologyClaim(devices=found.devices)
    cells = tuple(_packed(cell, seat, found.page) for cell, seat in zip(guest.cells, found.seats, strict=True))
    return TopologyClaim(cells=cells, devices=found.devices, numa=guest.numa, emulator=guest.emulator,
                         realtime=guest.realtime, locked=guest.locked)


def _search(room: FreeResources, wanted: Wanted) -> _Found | str:
    devices = fit_devices.matches(room, wanted.devices)
    why = fit_devices.lacking(devices)
    if why is not None:
        return why
    if wanted.guest is None:
        chosen = fit_devices.choose(room, devices, None)
        return fit_devices.TOGETHER if chosen is None else _Found(devices=chosen)
    if len(wanted.guest.cells) > len(room.cells):
        return f"fewer than {len(wanted.guest.cells)} NUMA cells" if room.cells else "no NUMA cells"
    reason = ""
    for page in _sizes(room, wanted.guest.page):
        found = _seat_guest(room, wanted.guest, devices, page)
        if isinstance(found, _Found):
            return found
        reason = reason or found
    return reason or f"no {wanted.guest.page} pages"


def _sizes(room: FreeResources, page: str) -> list[int | None]:
    """Return the page sizes to try, in this order. None: small pages, as no size was requested."""
    if not page:
        return [None]
    small = min((cell.small_kb for cell in room.cells), default=0)
    larger = sorted({size for cell in room.cells for size in cell.pages}, reverse=True)
    named: dict[str, list[int | None]] = {LARGE: [*larger], SMALL: [small], ANY: [*larger, small]}
    return named[page] if page in named else [int(page)]


# -- cells

def _seat_guest(room: FreeResources, guest: GuestTopology, devices: Sequence[fit_devices.Match],
                page: int | None) -> _Found | str:
    needs = [_Need(len(cell.pinned), len(cell.vcpus) - len(cell.pinned), cell.memory_mb,
                   guest.emulator == ISOLATE and at == 0, guest.thread_policy or fit_cpus.PREFER)
             for at, cell in enumerate(guest.cells)]
    near = _cells_of_interest(room, devices)
    seats: dict[_Need, list[_Seat]] = {}
    for need in needs:
        if need not in seats:
            found = _seats(room, need, page, near)
            if isinstance(found, str):
                return found
            seats[need] = found
    search = _Search(room, [seats[need] for need in needs], devices)
    if not search.seat(0):
        return (fit_devices.far(devices) if search.seated else
                f"its {len(needs)} cells do not fit on separate host cells")
    return _Found(tuple(search.chosen), search.devices, page)


def _cells_of_interest(room: FreeResources, devices: Sequence[fit_devices.Match]) -> frozenset[int | None]:
    """Return the preferred cells: cells with matching devices if the guest requests devices, otherwise cells without
    devices."""
    if devices:
        return frozenset(one.sample.cell for match in devices for one in match.devices)
    return frozenset(cell.cell.id for cell in room.cells) - {one.cell for one in room.host.devices}


def _seats(room: FreeResources, need: _Need, page: int | None, near: frozenset[int | None]) -> list[_Seat] | str:
    """Return the cells that a guest cell fits, the best first; or the first unmet requirement, as text."""
    with_memory = [one for one in room.cells if _has_memory(one, need.memory_mb, page)]
    if not with_memory:
        return _no_memory(need.memory_mb, page, room)
    beside = "" if len(with_memory) == len(room.cells) else " with enough free memory"
    left = [one for one in with_memory if not need.floating or _has_shared(one, need.floating)]
    if not left:
        return f"no cell has {need.floating} free shared CPUs{beside}"
    found = [seat for one in left if (seat := _Seat(one, need)).has_processors()]
    if not found:
        return _no_cpus(left, need) + beside
    return sorted(found, key=lambda seat: _leftovers(seat, need, near))


def _has_shared(room: FreeCell, floating: int) -> bool:
    """Return whether the cell has enough shared CPUs. A guest's CPUs never share a host CPU, regardless of the
    ratio."""
    return room.shared >= floating and len(room.cell.shared) >= floating


def _has_memory(room: FreeCell, memory_mb: int, page: int | None) -> bool:
    """Return whether the cell has the memory in pages of this size (None: small pages)."""
    if page is None or page == room.small_kb:
        return room.memory_mb >= memory_mb and room.small_mb >= memory_mb
    return memory_mb * 1024 % page == 0 and room.pages.get(page, 0) >= memory_mb * 1024 // page


def _leftovers(seat: _Seat, need: _Need, near: frozenset[int | None]) -> tuple[bool, int, int, int]:
    room = seat.room
    processors = len(room.dedicated) if need.pins else room.shared
    return room.cell.id not in near, processors, room.memory_mb, room.cell.id


def _packed(cell: GuestCell, seat: _Seat, page: int | None) -> CellClaim:
    pins: dict[int, int] = {}
    siblings = []
    mine = iter(sorted(cell.pinned))
    pinned = seat.pinned()
    assert pinned is not None
    for group in pinned.groups:
        threads = tuple(next(mine) for _ in group)
        pins.update(zip(threads, group, strict=True))
        if len(threads) > 1:
            siblings.append(threads)
    return CellClaim(id=cell.id, host_cell=seat.room.cell.id, vcpus=cell.vcpus, memory_mb=cell.memory_mb,
                     page_kb=page, pins=pins, shared=seat.room.cell.shared if len(pins) < len(cell.vcpus) else (),
                     siblings=tuple(siblings), emulator=pinned.emulator, idle=pinned.idle)


class _Search:
    """Search that places one cell of the guest after another. A set of host cells that failed is not tried again: both
    the fit of the remaining cells and the distance of devices depend only on the set."""

    def __init__(self, room: FreeResources, seats: Sequence[Sequence[_Seat]],
                 wanted: Sequence[fit_devices.Match]) -> None:
        self._room, self._seats, self._wanted = room, seats, wanted
        self._dead: set[frozenset[int]] = set()
        self._left = STEPS
        self.chosen: list[_Seat] = []
        self.devices: tuple[DeviceClaim, ...] = ()
        self.seated = False  # all cells could be placed, at least without devices

    def seat(self, at: int) -> bool:
        taken = frozenset(one.room.cell.id for one in self.chosen)
        if at == len(self._seats):
            return self._with_devices(taken)
        if taken in self._dead:
            return False
        for one in self._by_distance(self._seats[at]) if at else self._seats[at]:
            self._left -= 1
            if self._left < 0:
                return False
            if one.room.cell.id in taken:
                continue
            self.chosen.append(one)
            if self.seat(at + 1):
                return True
            self.chosen.pop()
        self._dead.add(taken)
        return False

    def _with_devices(self, cells: frozenset[int]) -> bool:
        self.seated = True
        if not self._wanted:
            return True
        found = fit_devices.choose(self._room, self._wanted, cells) if cells not in self._dead else None
        self._dead.add(cells)
        self.devices = found or ()
        return found is not None

    def _by_distance(self, seats: Sequence[_Seat]) -> list[_Seat]:
        """Return the seats sorted by their distance from the chosen cells."""
        return sorted(seats, key=lambda seat: sum(one.room.cell.distances.get(seat.room.cell.id, 0)
                                                  for one in self.chosen))


# -- messages

def _no_memory(memory_mb: int, page: int | None, room: FreeResources) -> str:
    if page is None or any(page == one.small_kb for one in room.cells):
        return f"no cell has {memory_mb} MB of free memory"
    if not any(one.pages.get(page) for one in room.cells):
        return f"no free {page} KB pages"
    if memory_mb * 1024 % page:
        return f"{memory_mb} MB is not a multiple of {page} KB pages"
    return f"no cell has {memory_mb * 1024 // page} free {page} KB pages"


def _no_cpus(cells: Sequence[FreeCell], need: _Need) -> str:
    count = need.pins + need.emulator
    if any(len(one.dedicated) >= count for one in cells):
        what = "whole free cores" if need.policy == fit_cpus.ISOLATE else "free dedicated CPUs that share cores"
        return f"no cell has {count} {what}"
    return f"no cell has {count} free dedicated CPUs"


__all__ = ["UNKNOWN", "pack", "pack_into", "usage", "why_not"]
