"""Whether a packing fits a host as it is now, by the same count as the rule that made it."""

from __future__ import annotations

import random

import pytest

from nova.model.numa.fit import pack
from nova.model.numa.fit_recheck import clash
from nova.model.numa.topology import (
    CellClaim,
    DeviceClaim,
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    Pages,
    PciDevice,
    PciRequest,
    PciSpec,
    TopologyClaim,
    Wanted,
)

HOST = HostTopology(cpu_ratio=2.0, cells=tuple(
    HostCell(id=number, shared=(8 * number, 8 * number + 1), dedicated=tuple(range(8 * number + 2, 8 * number + 8)),
             siblings=tuple((8 * number + at, 8 * number + at + 4) for at in range(4)), memory_mb=8192,
             pages=(Pages(size_kb=4, total=1048576), Pages(size_kb=2048, total=1024, reserved=24)))
    for number in (0, 1)), devices=(
        PciDevice(address="0000:81:00.0", vendor_id="8086", product_id="1563", kind="type-PF", cell=0),
        PciDevice(address="0000:81:10.0", vendor_id="8086", product_id="1565", kind="type-VF", parent="0000:81:00.0"),
        PciDevice(address="0000:81:10.2", vendor_id="8086", product_id="1565", kind="type-VF", parent="0000:81:00.0")))


def cell(**changes) -> CellClaim:
    return CellClaim(**{"id": 0, "host_cell": 0, "vcpus": (0, 1), "memory_mb": 512, "pins": {0: 2, 1: 6}, **changes})


def held(*cells: CellClaim, devices: tuple[str, ...] = ()) -> TopologyClaim:
    known = {one.address: one for one in HOST.devices}
    return TopologyClaim(cells=cells, devices=tuple(
        DeviceClaim(address=one, request=0, kind=known[one].kind if one in known else "type-PCI",
                    parent=known[one].parent if one in known else None) for one in devices))


FLOATING = cell(pins={}, shared=(0, 1))


@pytest.mark.parametrize(("others", "packing", "why"), [
    ([], held(cell()), None), ([held(cell(pins={0: 3, 1: 7}))], held(cell()), None),
    ([held(cell(pins={0: 7, 1: 6}))], held(cell()), "CPU 6 is used by another guest"),
    ([held(cell(pins={0: 3}, emulator=(2,)))], held(cell()), "CPU 2 is used by another guest"),
    ([held(cell(pins={0: 3}, idle=(6,)))], held(cell()), "CPU 6 is used by another guest"),
    ([], held(cell(pins={0: 0, 1: 6})), "CPU 0 of cell 0 is not dedicated to guests"),
    ([], held(cell(pins={0: 10, 1: 6})), "CPU 10 of cell 0 is not dedicated"),
    ([], held(cell(host_cell=5)), "unknown NUMA cell 5"),
    ([], held(cell(pins={0: 2, 1: 2})), "CPU 2 is assigned twice"),
    ([], held(cell(pins={0: 2}, emulator=(2,))), "CPU 2 is assigned twice"),
    ([], held(cell(pins={0: 2}, shared=(3,))), "CPU 3 of cell 0 is not shared by guests"),
    ([], held(cell(page_kb=2048, memory_mb=2000)), None),
    ([], held(cell(page_kb=2048, memory_mb=2002)), "cell 0 has 1000 free 2048 KB pages, not 1001"),
    ([held(cell(page_kb=2048, memory_mb=1000, pins={}))], held(cell(page_kb=2048, memory_mb=1002)), "500 free"),
    ([], held(cell(page_kb=1048576, memory_mb=1024)), "0 free 1048576 KB pages"),
    ([], held(cell(memory_mb=4097)), "4096 MB of free memory"),
    ([held(FLOATING)], held(FLOATING), None), ([held(FLOATING)] * 2, held(FLOATING), "0 free shared CPUs, not 2"),
    ([], held(devices=("0000:81:10.0",)), None), ([], held(devices=("0000:99:00.0",)), "0000:99:00.0 is not available"),
    ([held(devices=("0000:81:10.0",))], held(devices=("0000:81:10.0",)), "used by another guest"),
    ([held(devices=("0000:81:10.0",))], held(devices=("0000:81:10.2",)), None),
    ([held(devices=("0000:81:10.0",))], held(devices=("0000:81:00.0",)), "used by another guest"),
    ([held(devices=("0000:81:00.0",))], held(devices=("0000:81:10.2",)), "used by another guest"),
    ([], held(devices=("0000:81:10.0", "0000:81:10.0")), "assigned twice"),
])
def test_clash_when_something_is_taken_or_absent_then_it_is_named(others, packing, why):
    found = clash(HOST, others, packing)
    assert found is None if why is None else why in found


def test_clash_when_only_its_own_is_asked_about_then_what_all_share_may_be_short():
    crowd = [held(FLOATING)] * 3
    assert clash(HOST, crowd, held(FLOATING), amounts=False) is None
    assert clash(HOST, crowd, held(cell(memory_mb=9999)), amounts=False) is None
    assert "another" in clash(HOST, [held(cell())], held(cell()), amounts=False)


def test_clash_when_the_host_tells_of_no_topology_then_what_holds_nothing_fits():
    assert clash(None, [], TopologyClaim()) is None and "are unknown" in clash(None, [], held(cell()))


@pytest.mark.parametrize("seed", range(40))
def test_clash_when_the_rule_packed_it_then_there_is_none_and_of_the_same_again_there_is(seed):
    chance, guests = random.Random(seed), []
    for _ in range(12):
        vcpus = tuple(range(chance.randint(1, 4)))
        pinned = vcpus if chance.random() < 0.6 else vcpus[:1] if chance.random() < 0.5 else ()
        guest = GuestTopology(
            cells=(GuestCell(id=0, vcpus=vcpus, pinned=pinned, memory_mb=chance.choice((256, 512, 1024))),),
            thread_policy=chance.choice(("prefer", "isolate", "require")) if pinned else "",
            emulator=chance.choice(("", "isolate")) if pinned else "",
            page=chance.choice(("", "small", "large", "2048")))
        devices = (PciRequest(count=1, specs=(PciSpec(product_id="1565"),)),) if chance.random() < 0.2 else ()
        made = pack(HOST, guests, Wanted(guest=guest, devices=devices))
        if isinstance(made, str):
            continue
        assert clash(HOST, guests, made) is None
        guests.append(made)
        if pinned or devices:
            assert clash(HOST, guests, made) is not None
    assert guests
