"""What holds of every packing, whatever the host and the guests before it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nova.model.numa.fit import pack, usage, why_not
from nova.model.numa.fit_free import FreeResources, pages_of
from nova.model.numa.fit_recheck import clash
from nova.model.numa.topology import GuestTopology, HostCell, HostTopology, PciDevice, PciRequest, TopologyClaim, Wanted
from tests.unit.model import topologies

MANY = settings(max_examples=60, deadline=None)
LISTS = st.lists(topologies.requirements(), min_size=1, max_size=8)


def filled(host: HostTopology, wanted: list[Wanted]) -> list[tuple[Wanted, TopologyClaim]]:
    """Each that fits beside those before it."""
    there: list[tuple[Wanted, TopologyClaim]] = []
    for one in wanted:
        packed = pack(host, [packing for _, packing in there], one)
        if isinstance(packed, TopologyClaim):
            there.append((one, packed))
    return there


def amounts(room: FreeResources) -> object:
    """What is free, to compare."""
    return ([(one.dedicated, one.shared, one.memory_mb, dict(one.pages)) for one in room.cells],
            [one.address for one in room.devices])


def held(packing: TopologyClaim) -> list[int]:
    return [cpu for cell in packing.cells for cpu in (*cell.pins.values(), *cell.emulator, *cell.idle)]


@MANY
@given(host=topologies.hosts(), wanted=LISTS)
def test_guests_of_one_host_never_share_what_is_given_once_and_free_is_the_total_less_theirs(host, wanted):
    there = [packing for _, packing in filled(host, wanted)]
    pins = [cpu for one in there for cpu in held(one)]
    dedicated = {cpu for cell in host.cells for cpu in cell.dedicated}
    assert len(pins) == len(set(pins)) and set(pins) <= dedicated
    devices = [device for one in there for device in one.devices]
    given_away = {device.address for device in devices}
    assert len(given_away) == len(devices) and given_away.isdisjoint({device.parent for device in devices})

    room = usage(host, there)
    assert {cpu for cell in room.cells for cpu in cell.dedicated} == dedicated - set(pins)
    parents = {device.parent for device in devices} - {None}
    assert {one.address for one in room.devices} == {
        one.address for one in host.devices if one.address not in given_away | parents and one.parent not in given_away}
    cells = [cell for one in there for cell in one.cells]
    for free in room.cells:
        mine = [cell for cell in cells if cell.host_cell == free.cell.id]
        floating = sum(len(cell.vcpus) - len(cell.pins) for cell in mine)
        assert 0 <= free.shared == int(len(free.cell.shared) * host.cpu_ratio) - floating
        small = sum(cell.memory_mb for cell in mine if cell.page_kb in (None, 4))
        [total] = [pages.total * pages.size_kb // 1024 for pages in free.cell.pages if pages.size_kb == 4]
        assert 0 <= free.memory_mb == int(total * host.memory_ratio) - small
        for pages in free.cell.pages[1:]:
            used = sum(pages_of(cell) for cell in mine if cell.page_kb == pages.size_kb)
            assert 0 <= free.pages[pages.size_kb] == pages.total - used


@MANY
@given(host=topologies.hosts(), wanted=LISTS)
def test_each_guest_gets_all_that_it_requires(host, wanted):
    cells = {cell.id: cell for cell in host.cells}
    kinds = {one.address: one for one in host.devices}
    for one_wanted, packing in filled(host, wanted):
        asked = one_wanted.guest.cells if one_wanted.guest else ()
        assert [(one.id, one.vcpus, one.memory_mb) for one in packing.cells] == [
            (one.id, one.vcpus, one.memory_mb) for one in asked]
        assert len({one.host_cell for one in packing.cells}) == len(asked)
        for wanted_cell, got in zip(asked, packing.cells, strict=True):
            assert sorted(got.pins) == sorted(wanted_cell.pinned)
            assert len(set(got.pins.values())) == len(got.pins)
            assert got.shared == (cells[got.host_cell].shared if len(got.pins) < len(got.vcpus) else ())
            assert len(got.vcpus) - len(got.pins) <= len(cells[got.host_cell].shared)
            if got.page_kb and got.page_kb > 4:
                assert got.memory_mb * 1024 % got.page_kb == 0
        emulators = sum(len(one.emulator) for one in packing.cells)
        assert emulators == bool(one_wanted.guest and one_wanted.guest.emulator == "isolate")
        counted = Counter(device.request for device in packing.devices)
        assert [counted[at] for at in range(len(one_wanted.devices))] == [one.count for one in one_wanted.devices]
        near = {one.host_cell for one in packing.cells}
        for device in packing.devices:
            policy = one_wanted.devices[device.request].numa_policy
            assert any(kinds[device.address].kind == spec.kind for spec in one_wanted.devices[device.request].specs)
            if near and policy in ("required", "legacy"):
                assert device.cell in near or (policy == "legacy" and device.cell is None)
            if near and policy == "socket":
                assert cells[device.cell].socket in {cells[one].socket for one in near}


@MANY
@given(host=topologies.hosts(), wanted=LISTS)
def test_thread_policies_hold(host, wanted):
    cores = {cpu: core for cell in host.cells for core in cell.siblings for cpu in core}
    there = filled(host, wanted)
    shared = {cpu for cell in host.cells for cpu in cell.shared}
    for one_wanted, packing in there:
        policy = one_wanted.guest.thread_policy if one_wanted.guest else ""
        others = shared.union(*(held(other) for _, other in there if other is not packing))
        for got in packing.cells:
            mine = Counter(cores.get(cpu, (cpu,)) for cpu in got.pins.values())
            assert {threads: len(threads) for threads in got.siblings} == {
                threads: mine[cores[got.pins[threads[0]]]] for threads in got.siblings}
            if policy == "isolate":
                assert set(mine.values()) <= {1}
                assert others.isdisjoint(cpu for core in mine for cpu in core)
            if policy == "require" and mine:
                assert all(len(core) > 1 for core in mine)
                assert sum(count == 1 for count in mine.values()) <= 1


@MANY
@given(host=topologies.hosts(), wanted=LISTS, data=st.data())
def test_a_guest_that_goes_gives_back_what_it_had_and_what_fitted_fits_beside_fewer(host, wanted, data):
    there = filled(host, wanted)
    packings = [packing for _, packing in there]
    shuffled = data.draw(st.permutations(packings))
    assert amounts(usage(host, packings)) == amounts(usage(host, shuffled))
    with_all = usage(host, packings)
    for one_wanted, packing in there:
        others = [other for other in packings if other is not packing]
        without = usage(host, others)
        back = {cpu for cell in without.cells for cpu in cell.dedicated} - {
            cpu for cell in with_all.cells for cpu in cell.dedicated}
        assert back == set(held(packing))
        assert {device.address for device in packing.devices} <= {
            one.address for one in without.devices} - {one.address for one in with_all.devices}
        assert amounts(usage(host, [*others, packing])) == amounts(with_all)
        assert clash(host, others, packing) is None
        assert isinstance(pack(host, others, one_wanted), TopologyClaim)  # its own place at least
        assert pack(host, others, one_wanted) == pack(host, list(reversed(others)), one_wanted)
        fewer = data.draw(st.lists(st.sampled_from(others), unique_by=id)) if others else []
        assert isinstance(pack(host, fewer, one_wanted), TopologyClaim)


@MANY
@given(host=topologies.hosts(), wanted=LISTS)
def test_what_fits_beside_others_fits_alone_and_what_does_not_is_told_why(host, wanted):
    there: list[TopologyClaim] = []
    for one_wanted in wanted:
        packed = pack(host, there, one_wanted)
        alone = pack(host, [], one_wanted)
        assert why_not(host, there, one_wanted) == (packed if isinstance(packed, str) else None)
        if isinstance(packed, TopologyClaim):
            assert isinstance(alone, TopologyClaim)
            there.append(packed)
        else:
            assert packed and len(packed) < 100


def fits_somehow(host: HostTopology, there: list[TopologyClaim], one_wanted: Wanted) -> bool:
    """By trying everything: each order of cells, each size of pages, each choice of devices."""
    cells = one_wanted.guest.cells if one_wanted.guest else ()
    pages = {"": [""], "small": ["4"], "large": ["1048576", "2048"], "any": ["1048576", "2048", "4"]}
    sizes = pages.get(one_wanted.guest.page, [one_wanted.guest.page]) if one_wanted.guest else [""]
    places = [places for places in permutations(host.cells, len(cells)) for size in sizes
              if all(_one_fits(host, there, one_wanted.guest, at, place, size) for at, place in enumerate(places))]
    if one_wanted.guest is None:
        return _devices_fit(host, there, one_wanted, None)
    return any(_devices_fit(host, there, one_wanted, set(near)) for near in {
        frozenset(place.id for place in one) for one in places})


def _one_fits(host: HostTopology, there: list[TopologyClaim], guest: GuestTopology, at: int, place: HostCell,
              size: str) -> bool:
    alone = replace(guest, cells=(guest.cells[at],), page=size, emulator=guest.emulator if at == 0 else "")
    return why_not(replace(host, cells=(place,), devices=()), there, Wanted(guest=alone)) is None


def _devices_fit(host: HostTopology, there: list[TopologyClaim], one_wanted: Wanted, near: set[int] | None) -> bool:
    free = usage(host, there).devices
    sockets = {one.id: one.socket for one in host.cells}

    def allowed(device: PciDevice, request: PciRequest) -> bool:
        if (device.kind, device.product_id) != (request.specs[0].kind, request.specs[0].product_id):
            return False
        return near is None or {
            "preferred": True, "required": device.cell in near, "legacy": device.cell is None or device.cell in near,
            "socket": device.cell is not None and sockets[device.cell] in {sockets[one] for one in near},
        }[request.numa_policy]
    choices = [combinations([one for one in free if allowed(one, request)],
                            request.count) for request in one_wanted.devices]
    for chosen in product(*choices):
        flat = [one for some in chosen for one in some]
        addresses = {one.address for one in flat}
        if len(addresses) == len(flat) and addresses.isdisjoint(one.parent for one in flat):
            return True
    return False


@settings(max_examples=60, deadline=None)
@given(host=topologies.hosts(), wanted=st.lists(topologies.requirements(), min_size=1, max_size=5))
def test_what_fits_somehow_is_found(host, wanted):
    there: list[TopologyClaim] = []
    for one_wanted in wanted:
        packed = pack(host, there, one_wanted)
        assert isinstance(packed, TopologyClaim) is fits_somehow(host, there, one_wanted), packed
        there += [packed] if isinstance(packed, TopologyClaim) else []
