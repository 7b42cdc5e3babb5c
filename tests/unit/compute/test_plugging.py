"""Orders to plug interfaces into guests that live, and to take them out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nova import errors
from nova.compute.guests.build import BuildTools
from nova.compute.guests.build_markers import BuildMarkers
from nova.compute.guests.interfaces import Plugging
from nova.model.guest.orders import BuildOrder, InterfaceOrder
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState
from nova.virt.interface import Driver
from tests.fakes.compute import beside, build_order, fence, guest_order

EXTRA = Interface(id="extra-port", mac="fa:16:3e:00:00:02", network_id="net2", label="second")


def plug(order: BuildOrder, epoch: int, plugged: bool = True) -> InterfaceOrder:
    rest = tuple(one for one in order.interfaces if one.id != EXTRA.id)
    return InterfaceOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=fence(epoch),
                          interface=EXTRA,
                          build=msgspec.structs.replace(order, interfaces=(*rest, EXTRA) if plugged else rest))


def macs(world: Any, order: BuildOrder) -> list[str]:
    return list(world.driver.hypervisor.inspect(order.server_uuid).macs)


def test_attach_and_detach_when_they_are_repeated_then_the_guest_has_it_once_or_not(world):
    order = build_order()
    world.build(order)
    for _ in range(2):
        assert world.one("attach_interfaces", plug(order, 2)).power_state == PowerState.RUNNING
        assert macs(world, order) == [order.interfaces[0].mac, EXTRA.mac]
    assert world.driver.calls.count(("attach_interface", order.server_uuid)) == 1  # the second one was joined
    assert world.one("attach_interfaces", plug(order, 3)).ok  # a runner that took the operation over
    assert macs(world, order) == [order.interfaces[0].mac, EXTRA.mac]
    for epoch in (4, 5):
        assert world.one("detach_interfaces", plug(order, epoch, False)).ok
        assert macs(world, order) == [order.interfaces[0].mac]


def test_attach_when_its_epoch_is_old_then_it_is_refused(world):
    order = build_order(epoch=5)
    world.build(order)
    assert not world.one("attach_interfaces", plug(order, 4)).ok and len(macs(world, order)) == 1


def test_attach_when_the_conductor_does_not_grant_it_then_nothing_is_plugged(world):
    order = build_order()
    world.build(order)
    world.conductor.overtaken.add(order.server_uuid)
    assert not world.one("attach_interfaces", plug(order, 2)).ok and len(macs(world, order)) == 1


def test_attach_when_the_driver_fails_then_the_outcome_says_why(world):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next("attach_interface", "host_refused")
    outcome = world.one("attach_interfaces", plug(order, 2))
    assert (outcome.ok, outcome.error_kind) == (False, "host_refused")


def test_detach_when_the_guest_keeps_it_then_the_outcome_is_a_conflict_and_it_has_it(world):
    order = build_order()
    world.build(order)
    world.one("attach_interfaces", plug(order, 2))
    world.driver.knobs.fail_next("release_interface", "conflict")
    outcome = world.one("detach_interfaces", plug(order, 3, False))
    assert (outcome.ok, outcome.error_kind) == (False, "conflict") and len(macs(world, order)) == 2


def test_detach_when_the_attach_of_the_same_operation_is_in_progress_then_it_comes_after_it(world):
    order = build_order()
    world.build(order)
    block = world.driver.knobs.block("attach_interface", when="after")
    attaching, attached = beside(world.one, "attach_interfaces", plug(order, 2))
    assert block.reached.wait(5)
    detaching, detached = beside(world.one, "detach_interfaces", plug(order, 2, False))
    block.release()
    attaching.join(5)
    detaching.join(5)
    assert attached[0].ok and detached[0].ok and len(macs(world, order)) == 1


def test_attach_when_the_process_is_killed_in_it_then_its_repetition_ends_it(world):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next("attach_interface", "crash", when="after")
    assert not world.one("attach_interfaces", plug(order, 2)).ok
    world.restart()
    assert world.one("attach_interfaces", plug(order, 2)).ok and len(macs(world, order)) == 2
    assert world.one("destroy_guests", guest_order(order, 3)).ok and world.leftovers() == []


def test_attach_when_the_driver_cannot_then_it_is_not_supported():
    class Plain(Driver):
        pass
    markers: BuildMarkers = None  # type: ignore[assignment]
    with pytest.raises(errors.NotSupported):
        Plugging(BuildTools(Plain(), None, markers, markers, markers)).attach(plug(build_order(), 1), None, None)  # type: ignore
