"""Packing by example: which cells, processors, pages and devices a guest gets, and what it is told otherwise."""

from __future__ import annotations

import time

import pytest

from nova.model.numa.fit import UNKNOWN, pack, usage
from nova.model.numa.topology import HostCell, HostTopology, PciSpec, TopologyClaim, Wanted
from tests.unit.model.topologies import PF, VF, cell, guest, large_host, nics, request

TWO = HostTopology(cells=(cell(0, range(8), (0, 1), 2, pages={2048: 256}, socket=0),
                          cell(1, range(8, 16), (8, 9), 2, 8192, {2048: 512, 1048576: 1}, socket=0)))


def packed(host: HostTopology, wanted: Wanted, *there: TopologyClaim) -> TopologyClaim:
    found = pack(host, there, wanted)
    assert isinstance(found, TopologyClaim), found
    return found


def pins(packing: TopologyClaim) -> list[int]:
    return [cpu for one in packing.cells for cpu in one.pins.values()]


# -- processors

def test_pack_when_pinned_then_threads_of_a_core_are_taken_together():
    found = packed(TWO, guest((4, 4, 512)))
    assert found.cells[0].pins == {0: 2, 1: 3, 2: 4, 3: 5}
    assert found.cells[0].siblings == ((0, 1), (2, 3)) and found.cells[0].shared == ()


def test_pack_when_one_thread_is_wanted_then_a_core_in_parts_is_preferred():
    first = packed(TWO, guest((3, 3, 512)))
    assert pins(first) == [2, 3, 4]
    assert pins(packed(TWO, guest((1, 1, 512)), first)) == [5]
    assert pins(packed(TWO, guest((2, 2, 512)), first)) == [6, 7]


@pytest.mark.parametrize(("policy", "expected"), [
    ("prefer", [2, 3, 4]), ("require", [2, 3, 4]), ("isolate", [2, 4, 6])])
def test_pack_by_thread_policy(policy, expected):
    assert pins(packed(TWO, guest((3, 3, 512), thread_policy=policy))) == expected


def test_pack_when_isolated_then_nobody_gets_the_other_threads():
    first = packed(TWO, guest((2, 2, 512), thread_policy="isolate"))
    assert pins(first) == [2, 4] and first.cells[0].idle == (3, 5) and first.cells[0].siblings == ()
    assert pins(packed(TWO, guest((2, 2, 512)), first)) == [6, 7]
    assert pack(TWO, [first], guest((4, 4, 512), thread_policy="isolate")) == "no cell has 4 whole free cores"


def test_pack_when_a_core_is_half_the_floating_ones_then_it_is_not_for_an_isolated_guest():
    host = HostTopology(cells=(cell(0, range(4), (0,), 2),))
    assert pins(packed(host, guest((1, 1, 64), thread_policy="isolate"))) == [2]
    assert pack(host, (), guest((2, 2, 64), thread_policy="isolate")) == "no cell has 2 whole free cores"


def test_pack_when_threads_are_required_and_there_are_none_then_it_is_told():
    host = HostTopology(cells=(cell(0, range(8)),))
    refusal = pack(host, (), guest((2, 2, 64), thread_policy="require"))
    assert refusal == "no cell has 2 free dedicated CPUs that share cores"
    assert pins(packed(host, guest((2, 2, 64), thread_policy="isolate"))) == [0, 1]


def test_pack_when_threads_are_required_then_no_more_than_one_is_alone():
    host = HostTopology(cells=(cell(0, range(6), threads=2),))
    there = [packed(host, guest((1, 1, 64), thread_policy="prefer"))]
    there.append(packed(host, guest((4, 4, 64), thread_policy="require"), *there))
    assert pins(there[0]) == [0] and pins(there[1]) == [2, 3, 4, 5]
    assert pins(packed(host, guest((1, 1, 64), thread_policy="require"), *there)) == [1]
    halves = HostTopology(cells=(HostCell(id=0, dedicated=(0, 2), siblings=((0, 1), (2, 3)), memory_mb=64),))
    assert isinstance(pack(halves, (), guest((2, 2, 64))), TopologyClaim)
    refusal = pack(halves, (), guest((2, 2, 64), thread_policy="require"))
    assert refusal == "no cell has 2 free dedicated CPUs that share cores"


def test_pack_when_the_emulator_is_isolated_then_it_has_a_processor_more():
    found = packed(TWO, guest((2, 2, 512), (2, 2, 512), emulator="isolate"))
    assert [one.emulator for one in found.cells] == [(4,), ()] and found.emulator == "isolate"
    assert pack(TWO, (), guest((6, 6, 512), emulator="isolate")) == "no cell has 7 free dedicated CPUs"
    assert [one.emulator for one in packed(TWO, guest((6, 6, 512), emulator="share")).cells] == [()]


def test_pack_when_mixed_then_some_float_in_the_same_cell():
    found = packed(TWO, guest((3, 1, 512)))
    assert found.cells[0].pins == {2: 2} and found.cells[0].shared == (0, 1)


def test_pack_when_floating_then_the_ratio_bounds_all_and_the_processors_one():
    host = HostTopology(cells=(cell(0, range(4), (0, 1)),), cpu_ratio=1.5)
    assert pack(host, (), guest((3, 0, 64))) == "no cell has 3 free shared CPUs"
    first = packed(host, guest((2, 0, 64)))
    assert first.cells[0].pins == {} and first.cells[0].shared == (0, 1)
    assert pack(host, [first], guest((2, 0, 64))) == "no cell has 2 free shared CPUs"
    assert usage(host, [first]).cells[0].shared == 1


# -- cells

def test_pack_when_it_has_cells_then_each_is_on_a_cell_of_its_own():
    assert [one.host_cell for one in packed(TWO, guest((2, 2, 512), (2, 2, 512))).cells] == [0, 1]
    assert pack(TWO, (), guest((1, 0, 64), (1, 0, 64), (1, 0, 64))) == "fewer than 3 NUMA cells"
    assert [one.host_cell for one in packed(TWO, guest((1, 1, 5000), (1, 1, 2000))).cells] == [1, 0]


def test_pack_when_only_some_order_fits_then_it_is_found():
    host = HostTopology(cells=(cell(0, range(4)), cell(1, range(4, 12))))
    assert [one.host_cell for one in packed(host, guest((2, 2, 64), (6, 6, 64))).cells] == [0, 1]
    assert [one.host_cell for one in packed(host, guest((6, 6, 64), (2, 2, 64))).cells] == [1, 0]
    assert pack(host, (), guest((6, 6, 64), (6, 6, 64))) == "its 2 cells do not fit on separate host cells"


def test_pack_takes_the_cell_that_is_left_least():
    first = packed(TWO, guest((2, 2, 64)))
    assert packed(TWO, guest((2, 2, 64)), first).cells[0].host_cell == first.cells[0].host_cell
    assert packed(TWO, guest((6, 6, 64)), first).cells[0].host_cell == 1


def test_pack_when_a_guest_has_several_cells_then_near_ones_are_taken():
    host = large_host()
    first = packed(host, guest((40, 40, 1024), thread_policy="prefer"))
    found = packed(host, guest((20, 20, 1024), (20, 20, 1024)), first)
    assert [one.host_cell for one in first.cells] == [0]
    assert [one.host_cell for one in found.cells] == [1, 2]  # 0 is too full for the other
    assert [one.host_cell for one in packed(host, guest((9, 9, 64), (8, 8, 64)), found).cells] == [1, 0]
    assert [one.host_cell for one in packed(host, guest((20, 20, 64), (20, 20, 64)), first, found).cells] == [1, 2]
    assert [one.host_cell for one in packed(host, guest((40, 40, 64), (40, 40, 64)), first).cells] == [1, 2]


# -- memory

@pytest.mark.parametrize(("page", "expected"), [
    ("", None), ("small", 4), ("large", 1048576), ("any", 1048576), ("2048", 2048), ("1048576", 1048576), ("4", 4)])
def test_pack_by_page_size(page, expected):
    assert packed(TWO, guest((1, 0, 1024), page=page)).cells[0].page_kb == expected


@pytest.mark.parametrize(("page", "memory_mb", "why"), [
    ("1048576", 2048, "no cell has 2 free 1048576 KB pages"),
    ("1048576", 512, "512 MB is not a multiple of 1048576 KB"),
    ("2048", 2048, "no cell has 1024 free 2048 KB pages"), ("4096", 512, "no free 4096 KB pages"),
    ("large", 2048, "no cell has 2 free 1048576 KB pages"), ("", 8192, "no cell has 8192 MB of free memory"),
    ("small", 7000, "no cell has 7000 MB of free memory")])
def test_pack_when_the_memory_is_not_there_then_it_is_told(page, memory_mb, why):
    found = pack(TWO, (), guest((1, 0, memory_mb), page=page))
    assert isinstance(found, str) and found.startswith(why)


def test_pack_when_any_then_pages_that_divide_it_are_found():
    assert packed(TWO, guest((1, 0, 512), page="large")).cells[0].page_kb == 2048
    assert packed(TWO, guest((1, 0, 513), page="any")).cells[0].page_kb == 4
    assert pack(HostTopology(cells=(cell(),)), (), guest((1, 0, 512), page="large")) == "no large pages"


def test_pack_when_memory_may_be_promised_twice_then_small_pages_only():
    cells = (cell(memory_mb=1024, pages={2048: 128}, shared=(0, 1)),)
    host = HostTopology(cells=cells, memory_ratio=2.0, cpu_ratio=9.0)
    first = packed(host, guest((1, 0, 768)))
    assert isinstance(pack(host, [first], guest((1, 0, 768))), TopologyClaim)
    assert pack(host, (), guest((1, 0, 769))) == "no cell has 769 MB of free memory"
    huge = packed(host, guest((1, 0, 256), page="2048"))
    assert isinstance(pack(host, [huge], guest((1, 0, 2), page="2048")), str)


def test_pack_when_pages_are_kept_back_then_they_are_nobodys():
    pages = TWO.cells[1].pages[2]
    kept = HostTopology(cells=(cell(0), cell(1, range(8, 16)).__class__(
        id=1, dedicated=(8,), memory_mb=4096, pages=(pages.__class__(size_kb=1048576, total=2, reserved=1),)),))
    first = packed(kept, guest((1, 1, 1024), page="large"))
    assert pack(kept, [first], guest((1, 1, 1024), page="large")) == "no free 1048576 KB pages"


# -- devices

NIC = HostTopology(cells=(*TWO.cells,), devices=(*nics(0, 2, "81"), *nics(1, 2, "82")))


def test_pack_when_it_wants_devices_only_then_cells_do_not_matter():
    found = packed(NIC, Wanted(devices=(request(3, VF, numa_policy="required"),)))
    assert [one.address for one in found.devices] == ["0000:81:02.0", "0000:81:02.1", "0000:82:02.0"]
    assert {one.request for one in found.devices} == {0} and found.devices[0].parent == "0000:81:00.0"
    assert found.devices[0].alias == "nic" and found.cells == ()


def test_pack_when_a_physical_function_is_given_then_its_virtual_ones_are_not_and_the_reverse():
    whole = packed(NIC, Wanted(devices=(request(1, PF),)))
    assert [one.address for one in whole.devices] == ["0000:81:00.0"]
    assert pack(NIC, [whole], Wanted(devices=(request(3, VF),))) == "fewer than 3 free PCI devices of alias nic"
    part = packed(NIC, Wanted(devices=(request(1, VF),)), whole)
    assert [one.address for one in part.devices] == ["0000:82:02.0"]
    assert pack(NIC, [whole, part], Wanted(devices=(request(1, PF),))) == "fewer than 1 free PCI devices of alias nic"
    both = packed(NIC, Wanted(devices=(request(2, VF), request(1, PF))))
    assert {one.parent or one.address for one in both.devices if one.request == 0}.isdisjoint(
        one.address for one in both.devices if one.request == 1)
    assert pack(NIC, (), Wanted(devices=(request(3, VF), request(1, PF)))) == (
        "its PCI devices are not available together")


def test_pack_when_virtual_functions_are_taken_then_of_one_that_is_given_in_parts():
    first = packed(NIC, Wanted(devices=(request(1, VF),)))
    second = packed(NIC, Wanted(devices=(request(1, VF),)), first)
    assert second.devices[0].parent == first.devices[0].parent


def near(policy: str, cell: int | None) -> TopologyClaim | str:
    host = HostTopology(cells=(TWO.cells[0], cell_with_socket(1, 0), cell_with_socket(2, 1)), devices=nics(cell, 2))
    full = packed(host, guest((6, 6, 64)))
    assert full.cells[0].host_cell != cell
    return pack(host, (), guest((7, 7, 64), devices=(request(1, VF, numa_policy=policy),)))


def cell_with_socket(at: int, socket: int):
    return cell(at, range(at * 8, at * 8 + 8), (), socket=socket)


FAR = "no free PCI devices of alias nic near its cells"


@pytest.mark.parametrize(("policy", "cell", "fits"), [
    ("required", 0, False), ("legacy", 0, False), ("preferred", 0, True), ("socket", 0, True),
    ("required", None, False), ("legacy", None, True), ("preferred", None, True), ("socket", None, False),
    ("required", 2, True), ("legacy", 2, True), ("preferred", 2, True), ("socket", 2, True)])
def test_pack_by_numa_policy_of_devices(policy, cell, fits):
    found = near(policy, cell)
    assert isinstance(found, TopologyClaim) if fits else found == FAR
    if fits and cell == 2:
        assert found.cells[0].host_cell == 2
    if fits and cell == 0 and policy == "socket":
        assert found.cells[0].host_cell == 1


def test_pack_when_no_devices_are_wanted_then_cells_without_are_preferred():
    host = HostTopology(cells=TWO.cells, devices=nics(0))
    assert packed(host, guest((2, 2, 64))).cells[0].host_cell == 1
    assert packed(host, guest((2, 2, 64), devices=(request(1, VF),))).cells[0].host_cell == 0


@pytest.mark.parametrize(("spec", "fits"), [
    (PciSpec(vendor_id="8086"), True), (PciSpec(vendor_id="10de"), False),
    (PciSpec(resource_class="CUSTOM_NIC"), True), (PciSpec(resource_class="CUSTOM_GPU"), False),
    (PciSpec(traits=("CUSTOM_FAST",)), True), (PciSpec(traits=("CUSTOM_FAST", "HW_NIC_SRIOV")), True),
    (PciSpec(traits=("CUSTOM_SLOW",)), False), (PciSpec(tags={"physical_network": "p1"}), True),
    (PciSpec(tags={"physical_network": "p2"}), False), (PciSpec(live_migratable=True), True),
    (PciSpec(live_migratable=False), False)])
def test_pack_by_what_a_device_must_be(spec, fits):
    tags = {"resource_class": "nic", "traits": "fast, HW_NIC_SRIOV", "physical_network": "p1"}
    host = HostTopology(cells=TWO.cells, devices=nics(0, tags=tags, live_migratable=True))
    found = pack(host, (), Wanted(devices=(request(1, spec),)))
    assert isinstance(found, TopologyClaim) is fits
    if fits:
        assert found.devices[0].kind == "type-VF" and found.devices[0].live_migratable


def test_pack_when_a_device_has_no_class_of_its_own_then_it_has_one_by_its_numbers():
    wanted = Wanted(devices=(request(1, PciSpec(resource_class="CUSTOM_PCI_8086_154C")),))
    assert isinstance(pack(NIC, (), wanted), TopologyClaim)


# -- all of it

def test_pack_when_nothing_is_known_or_wanted():
    assert pack(None, (), guest((1, 0, 64))) == UNKNOWN
    assert pack(None, (), Wanted()) == TopologyClaim() == pack(TWO, (), Wanted())
    assert pack(HostTopology(), (), guest((1, 0, 64))) == "no NUMA cells"


def test_pack_keeps_what_the_host_must_know():
    found = packed(TWO, guest((2, 2, 64), numa=False, realtime=(1,), locked=True, emulator="share"))
    assert (found.numa, found.realtime, found.locked, found.emulator) == (False, (1,), True, "share")


def test_pack_when_the_host_became_smaller_than_its_guests_then_nothing_fits_there():
    there = packed(TWO, guest((6, 6, 2000)))
    assert packed(TWO, guest((6, 6, 2000)), there).cells[0].host_cell == 1
    smaller = HostTopology(cells=(cell(0, range(2), memory_mb=1024),))
    assert usage(smaller, [there]).cells[0].memory_mb == -976
    assert pack(smaller, [there], guest((1, 1, 64))) == "no cell has 64 MB of free memory"


def test_pack_on_a_large_host_takes_about_a_millisecond():
    """Bounded widely, for busy machines: the best of many runs is told."""
    host = large_host()
    there: list[TopologyClaim] = []
    for _ in range(16):
        there.append(packed(host, guest((8, 8, 2048), page="2048", thread_policy="require"), *there))
    wanted = guest((4, 4, 1024), (4, 4, 1024), page="1048576", emulator="isolate")
    best = min(_seconds(host, there, wanted) for _ in range(20))
    assert best < 0.01, f"{best * 1000:.2f} ms"


def _seconds(host: HostTopology, there: list[TopologyClaim], wanted: Wanted) -> float:
    begun = time.perf_counter()
    assert isinstance(pack(host, there, wanted), TopologyClaim)
    return time.perf_counter() - begun


def test_pack_when_requests_pull_at_the_same_functions_in_more_ways_than_can_be_tried_then_it_soon_gives_up():
    devices = tuple(one for at in range(16) for one in nics(functions=8, bus=f"{at:02x}"))
    wanted = Wanted(devices=(request(8, PF), request(65, VF)))
    began = time.process_time()
    assert pack(HostTopology(devices=devices), (), wanted) == "its PCI devices are not available together"
    assert time.process_time() - began < 5
    assert isinstance(pack(HostTopology(devices=devices), (), Wanted(
        devices=(request(8, PF), request(64, VF)))), TopologyClaim)


def test_pack_when_cells_of_a_giant_host_can_be_seated_in_more_ways_than_can_be_tried_then_it_soon_gives_up():
    host = HostTopology(cells=tuple(cell(at, range(at * 4, at * 4 + 4), tuple(range(at * 4, at * 4 + 4)), 1,
                                         8192 if at < 5 else 1024) for at in range(24)))
    small, large = [(1, 0, 512)] * 6, [(1, 0, 4096)] * 6
    began = time.process_time()
    assert pack(host, (), guest(*small, *large)) == "its 12 cells do not fit on separate host cells"
    assert time.process_time() - began < 5
    assert isinstance(pack(host, (), guest(*large[:5], *small)), TopologyClaim)
