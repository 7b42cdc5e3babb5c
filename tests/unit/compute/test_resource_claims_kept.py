"""What guests hold of this host's cells and devices: never two of them the same, whatever was lost on the way."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from nova.model.guest.orders import GuestOnSource, MoveOrder, RebuildOrder
from nova.model.numa.topology import CellClaim, DeviceClaim, TopologyClaim
from nova.model.server.states import PowerState
from tests.fakes.compute import World, beside, build_order, fence, guest_order, wait_until

TOPOLOGY = "2 cells x 4 cpus x 4096 MB, 64 x 2048 KB pages, 2 devices"  # pinned: 2, 3 and 6, 7


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    made = World(tmp_path)
    made.fake = {"topology": TOPOLOGY}
    made.driver = made.new_driver()
    made.service = made.new_service()
    yield made.start()
    made.close()


def packing(*cpus: int, cell: int = 0, device: str = "", **changes) -> TopologyClaim:
    held = CellClaim(**{"id": 0, "host_cell": cell, "vcpus": tuple(range(len(cpus))), "memory_mb": 512,
                        "pins": dict(enumerate(cpus)), **changes})
    devices = (DeviceClaim(address=device, request=0),) if device else ()
    return TopologyClaim(cells=(held,) if cpus else (), devices=devices)


def order_of(*cpus: int, number: int = 1, epoch: int = 1, device: str = "", **changes):
    return build_order(number=number, epoch=epoch, packing=packing(*cpus, device=device, **changes))


def anew(order, epoch: int, *cpus: int):
    """The same guest, in a newer operation, with another place."""
    return msgspec.structs.replace(order, fence=fence(epoch), packing=packing(*cpus) if cpus else order.packing)


def test_build_when_its_place_is_free_then_the_guest_holds_it(world):
    order = order_of(2, device="0000:01:00.0")
    (outcome,) = world.build(order)
    assert outcome.ok and world.driver.packed.packings() == {order.server_uuid: order.packing}


@pytest.mark.parametrize(("second", "why"), [
    (order_of(3, 2, number=2), "CPU 2 is used by another guest"),
    (order_of(1, number=2), "CPU 1 of cell 0 is not dedicated"),
    (order_of(3, number=2, device="0000:01:00.0"), "0000:01:00.0 is used by another guest"),
    (order_of(3, number=2, page_kb=2048), "64 free 2048 KB pages"),
    (order_of(6, number=2, cell=9), "unknown NUMA cell 9")])
def test_build_when_its_place_is_taken_or_absent_then_the_host_refuses_and_nothing_is_made(world, second, why):
    first = order_of(2, device="0000:01:00.0")
    world.build(first)
    (outcome,) = world.build(second)
    assert (outcome.error_kind, outcome.error_code) == ("host_refused", "host.place_taken")
    assert why in outcome.error_message and world.driver.hypervisor.inspect(second.server_uuid) is None
    assert world.driver.lifecycle.power_state(first.server_uuid) == PowerState.RUNNING


def test_build_when_two_of_one_batch_want_one_processor_then_one_gets_it(world):
    outcomes = world.build(*(order_of(2, number=number) for number in range(1, 6)))
    assert [one.ok for one in outcomes].count(True) == 1 and len(world.driver.packed.packings()) == 1


def test_build_when_the_other_is_still_being_built_then_its_place_is_taken_already(world):
    held = world.driver.knobs.block("create_disks")
    first, results = beside(world.build, order_of(2))
    wait_until(lambda: world.driver.calls)
    (outcome,) = world.build(order_of(2, number=2))
    assert outcome.error_code == "host.place_taken"
    held.release()
    first.join(5)
    assert results[0][0].ok


@pytest.mark.parametrize("call", ["create_disks", "plug", "start_new"])
def test_build_when_it_fails_then_its_place_is_free_again(world, call):
    world.driver.knobs.fail_next(call)
    assert not world.build(order_of(2))[0].ok
    assert world.build(order_of(2, number=2))[0].ok


def test_build_when_the_daemon_starts_again_then_places_are_known(world):
    first = order_of(2)
    world.build(first)
    world.restart()
    assert world.build(order_of(2, number=2))[0].error_code == "host.place_taken"
    assert world.build(first)[0].ok  # its own place is no hindrance


def test_destroy_when_the_guest_held_something_then_it_is_free(world):
    order = order_of(2)
    world.build(order)
    world.one("destroy_guests", guest_order(order, 2))
    assert world.build(order_of(2, number=2))[0].ok


def test_plain_guest_when_all_is_held_then_it_is_built_all_the_same(world):
    world.build(order_of(2, 3), order_of(6, 7, number=2, cell=1))
    assert world.build(build_order(number=3))[0].ok


# --- orders to guests that are there

@pytest.mark.parametrize("call", ["start_guests", "reboot_guests"])
def test_order_when_it_brings_another_place_then_the_guest_has_that(world, call):
    order = order_of(2)
    world.build(order)
    world.one("stop_guests", guest_order(order, 2))
    changed = anew(order, 3, 3)
    outcome = world.one(call, guest_order(order, 3, build=changed, reboot="hard"))
    assert outcome.ok and world.driver.packed.packings()[order.server_uuid] == packing(3)
    assert world.build(order_of(2, number=2))[0].ok


@pytest.mark.parametrize("call", ["start_guests", "reboot_guests"])
def test_order_when_it_brings_none_then_the_guest_keeps_its_own(world, call):
    order = order_of(2)
    world.build(order)
    world.one("stop_guests", guest_order(order, 2))
    plain = msgspec.structs.replace(order, packing=None)
    assert world.one(call, guest_order(order, 3, build=plain, reboot="hard")).ok
    assert world.driver.packed.packings() == {order.server_uuid: packing(2)}


def test_hard_reboot_when_its_place_is_another_guests_then_it_is_refused_before_it_is_stopped(world):
    order, other = order_of(2), order_of(3, number=2)
    world.build(order, other)
    outcome = world.one("reboot_guests", guest_order(order, 2, build=anew(order, 2, 3), reboot="hard"))
    assert outcome.error_code == "host.place_taken"
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


@pytest.mark.parametrize(("call", "fields", "ok"), [
    ("reboot_guests", {"reboot": "soft"}, True), ("reboot_guests", {"reboot": "hard"}, False),
    ("unpause_guests", {}, True)])
def test_order_when_the_operator_took_its_processor_away_then_only_a_new_start_is_refused(world, call, fields, ok):
    order = order_of(2)
    world.build(order)
    if call == "unpause_guests":
        world.one("pause_guests", guest_order(order, 2))
    world.fake["topology"] = TOPOLOGY + ", 1 dedicated"
    world.restart()
    outcome = world.one(call, guest_order(order, 3, build=order, **fields))
    assert outcome.ok is ok and (ok or outcome.error_code == "host.place_taken")
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_rebuild_when_it_brings_no_place_any_more_then_the_old_one_is_free(world):
    order = order_of(2)
    world.build(order)
    plain = msgspec.structs.replace(order, packing=None, fence=fence(2))
    assert world.one("rebuild_guests", RebuildOrder(server_uuid=order.server_uuid, fence=fence(2), build=plain)).ok
    assert world.driver.packed.packings() == {} and world.build(order_of(2, number=2))[0].ok


# --- moves

def test_resize_within_the_host_then_both_places_are_held_until_it_is_confirmed(world):
    order = order_of(2)
    world.build(order)
    uuid = order.server_uuid
    assert world.one("leave_guests", guest_order(order, 2)).ok
    move = MoveOrder(server_uuid=uuid, fence=fence(2), build=anew(order, 2, 3))
    assert world.one("fetch_guests", move).ok and world.one("finish_guests", move).ok
    assert world.driver.packed.packings() == {uuid: packing(3)}
    assert world.driver.packed.packings(source_copies=True) == {uuid: packing(2)}
    for cpu in (2, 3):
        assert world.build(order_of(cpu, number=2))[0].error_code == "host.place_taken"
    world.restart()
    assert world.build(order_of(2, number=3))[0].error_code == "host.place_taken"
    assert world.one("forget_guests", guest_order(order, 3)).ok
    assert world.build(order_of(2, number=4))[0].ok


def test_resize_within_the_host_when_it_is_reverted_then_the_old_place_is_held(world):
    order = order_of(2)
    world.build(order)
    world.one("leave_guests", guest_order(order, 2))
    move = MoveOrder(server_uuid=order.server_uuid, fence=fence(2), build=anew(order, 2, 3))
    world.one("fetch_guests", move)
    back = MoveOrder(server_uuid=order.server_uuid, fence=fence(3), build=anew(order, 3, 2))
    assert world.one("return_guests", back).ok
    assert world.driver.packed.packings() == {order.server_uuid: packing(2)}
    assert world.driver.packed.packings(source_copies=True) == {}


def test_resize_to_the_place_that_is_put_aside_then_it_is_refused(world):
    """Until it is confirmed the guest may go back there."""
    order = order_of(2)
    world.build(order)
    world.one("leave_guests", guest_order(order, 2))
    outcome = world.one("fetch_guests", MoveOrder(server_uuid=order.server_uuid, fence=fence(2), build=anew(order, 2)))
    assert outcome.error_code == "host.place_taken"


@pytest.mark.parametrize("call", ["fetch_guests", "prepare_arrivals"])
def test_move_when_its_place_is_taken_then_the_destination_refuses_and_makes_nothing(world, call):
    world.build(order_of(2))
    coming = order_of(2, number=2)
    source = GuestOnSource(facts={"guest": "{}"}, cpu="fake")
    outcome = world.one(call, MoveOrder(server_uuid=coming.server_uuid, fence=fence(1), build=coming, source=source))
    assert outcome.error_code == "host.place_taken" and world.driver.hypervisor.inspect(coming.server_uuid) is None


def test_inventory_when_the_host_has_a_topology_then_it_is_told(world):
    (node,) = world.conductor.inventories[0].nodes
    assert [cell.dedicated for cell in node.topology.cells] == [(2, 3), (6, 7)]
    assert (node.topology.cpu_ratio, node.inventories[0].resource_class) == (4.0, "PCPU")
