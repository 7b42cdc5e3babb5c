"""Cases of drivers whose guests change hosts. A rig that has ``other`` (one of a second host) runs those of two hosts.

Optional: ``rig.mark(order, text)`` writes into the guest's root disk, ``rig.marked(order)`` reads that.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import BuildOrder, Fence, LiveOrder, MoveOrder
from nova.model.server.states import PowerState
from tests.contract.driver_life_cases import built, need

RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN
LARGER = Flavor(flavorid="2", name="m1.small", memory_mb=128, vcpus=2, root_gb=2, ephemeral_gb=1, swap_mb=8)


def grown(order: BuildOrder) -> BuildOrder:
    return msgspec.structs.replace(
        order, flavor=LARGER,
        disks=tuple(msgspec.structs.replace(disk, size_gb=2) if disk.kind == "root" else disk for disk in order.disks))


def move_order(order: BuildOrder, source: Any = None, **fields: Any) -> MoveOrder:
    return MoveOrder(server_uuid=order.server_uuid, fence=Fence(operation_id=2, epoch=4), build=order, source=source,
                     **fields)


def gone(rig: Any, order: BuildOrder) -> None:
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.interfaces.unplug(order.server_uuid, order)
    rig.driver.disks.remove_disks(order.server_uuid)
    if rig.driver.cold_moves is not None:
        rig.driver.cold_moves.forget(order.server_uuid)


def off_and_left(rig: Any, order: BuildOrder) -> Any:
    """Stop the guest and put it aside; what is offered."""
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.interfaces.unplug(order.server_uuid, order)
    return rig.driver.cold_moves.leave(order.server_uuid)


def write(rig: Any, order: BuildOrder, text: str = "precious") -> None:
    if hasattr(rig, "mark"):
        rig.mark(order, text)


def check(rig: Any, order: BuildOrder, text: str = "precious") -> None:
    if hasattr(rig, "marked"):
        assert rig.marked(order) == text


class ColdCases:
    @pytest.fixture
    def cold(self, rig, order):
        driver = need(rig.driver, "cold_moves")
        built(rig, order)
        driver.lifecycle.shut_down(order.server_uuid, 0)
        write(rig, order)
        yield driver
        driver.cold_moves.forget(order.server_uuid)

    def test_guest_that_left_is_none_of_the_guests_and_leaves_again_the_same(self, rig, order, cold):
        offered = off_and_left(rig, order)
        assert cold.cold_moves.kept_sources() == {order.server_uuid}
        assert order.server_uuid not in {guest.server_uuid for guest in cold.guests()}
        assert cold.lifecycle.power_state(order.server_uuid) is None
        assert {disk.kind for disk in offered.disks} >= {"root", "ephemeral", "swap"}
        assert cold.cold_moves.leave(order.server_uuid).disks == offered.disks

    def test_leave_of_nothing_is_not_found(self, rig):
        with pytest.raises(errors.NotFound):
            need(rig.driver, "cold_moves").cold_moves.leave(str(uuid.uuid4()))

    def test_guest_taken_back_is_as_it_was(self, rig, order, cold):
        off_and_left(rig, order)
        assert cold.cold_moves.restore_source(order.server_uuid) is True
        assert cold.cold_moves.restore_source(order.server_uuid) is False
        check(rig, order)
        cold.interfaces.plug(order)
        assert cold.lifecycle.start_new(order) == RUNNING and cold.cold_moves.kept_sources() == frozenset()

    def test_take_back_and_forget_of_nothing_are_harmless(self, rig, order, cold):
        assert cold.cold_moves.restore_source(order.server_uuid) is False
        cold.cold_moves.forget(order.server_uuid)
        assert cold.lifecycle.start(order.server_uuid) == RUNNING

    def test_forgotten_guest_leaves_nothing(self, rig, order, cold):
        off_and_left(rig, order)
        cold.cold_moves.forget(order.server_uuid)
        cold.cold_moves.forget(order.server_uuid)
        cold.disks.remove_disks(order.server_uuid)
        assert cold.cold_moves.kept_sources() == frozenset() and rig.left_over(order) == []

    def test_resize_on_the_same_host_keeps_the_data_beside_what_was_put_aside(self, rig, order, cold):
        off_and_left(rig, order)
        larger = grown(order)
        cold.cold_moves.fetch(move_order(larger), rig.images)
        cold.cold_moves.fetch(move_order(larger), rig.images)
        check(rig, order)
        cold.interfaces.plug(larger)
        assert cold.lifecycle.start_new(larger) == RUNNING and cold.cold_moves.kept_sources() == {order.server_uuid}
        cold.cold_moves.forget(order.server_uuid)
        assert cold.lifecycle.power_state(order.server_uuid) == RUNNING
        assert cold.cold_moves.kept_sources() == frozenset()

    def test_resize_on_the_same_host_taken_back_is_the_old_guest(self, rig, order, cold):
        off_and_left(rig, order)
        larger = grown(order)
        cold.cold_moves.fetch(move_order(larger), rig.images)
        write(rig, order, "changed")
        cold.interfaces.plug(larger)
        cold.lifecycle.start_new(larger)
        cold.lifecycle.destroy(order.server_uuid)
        cold.interfaces.unplug(order.server_uuid, larger)
        assert cold.cold_moves.restore_source(order.server_uuid) is True
        check(rig, order)
        cold.interfaces.plug(order)
        assert cold.lifecycle.start_new(order) == RUNNING

    def test_fetch_to_a_smaller_root_disk_is_refused_and_what_was_put_aside_stays(self, rig, order, cold):
        larger = grown(order)
        off_and_left(rig, order)
        cold.cold_moves.fetch(move_order(larger), rig.images)
        cold.cold_moves.forget(order.server_uuid)
        cold.lifecycle.define(larger)
        cold.cold_moves.leave(order.server_uuid)
        with pytest.raises(errors.HostRefused):
            cold.cold_moves.fetch(move_order(order), rig.images)
        assert cold.cold_moves.kept_sources() == {order.server_uuid}


class TwoHostCases:
    @pytest.fixture
    def other(self, rig, order):
        other = getattr(rig, "other", None)
        if other is None:
            pytest.skip("there is one host only")
        yield other
        gone(other, order)
        gone(rig, order)

    def test_guest_moves_to_another_host_and_back(self, rig, order, other):
        here, there = need(rig.driver, "cold_moves"), other.driver
        built(rig, order)
        here.lifecycle.shut_down(order.server_uuid, 0)
        write(rig, order)
        offered = off_and_left(rig, order)
        there.cold_moves.fetch(move_order(grown(order), offered), other.images)
        check(other, order)
        there.interfaces.plug(order)
        assert there.lifecycle.start_new(grown(order)) == RUNNING
        gone(other, order)
        assert other.left_over(order) == []
        here.cold_moves.restore_source(order.server_uuid)
        check(rig, order)

    def test_guest_that_moved_away_is_forgotten_and_leaves_nothing(self, rig, order, other):
        here, there = need(rig.driver, "cold_moves"), other.driver
        built(rig, order)
        offered = off_and_left(rig, order)
        there.cold_moves.fetch(move_order(order, offered), other.images)
        there.interfaces.plug(order)
        there.lifecycle.start_new(order)
        here.cold_moves.forget(order.server_uuid)
        here.disks.remove_disks(order.server_uuid)
        assert rig.left_over(order) == [] and there.lifecycle.power_state(order.server_uuid) == RUNNING


def prepared(rig: Any, order: BuildOrder, other: Any) -> LiveOrder:
    source = rig.driver.live_moves.describe(order.server_uuid)
    arrival = other.driver.live_moves.prepare_arrival(move_order(order, source), other.images)
    return LiveOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, arrival=arrival, build=order,
                     fence=Fence(operation_id=2, epoch=4))


class LiveCases:
    @pytest.fixture
    def live(self, rig, order, other):
        need(rig.driver, "live_moves")
        built(rig, order)
        return rig.driver

    def test_guest_runs_on_exactly_one_host_after_a_live_migration(self, rig, order, other, live):
        heard: list[int] = []
        live_order = prepared(rig, order, other)
        assert live.lifecycle.power_state(order.server_uuid) == RUNNING
        live.live_moves.migrate(live_order, lambda percent, amounts: heard.append(percent), lambda: False)
        assert live.lifecycle.power_state(order.server_uuid) is None
        assert [other.driver.live_moves.finish_arrival(move_order(order)) for _ in range(2)] == [RUNNING, RUNNING]
        assert heard == sorted(heard) and all(0 <= percent <= 100 for percent in heard)
        gone(rig, order)
        assert rig.left_over(order) == [] and other.driver.lifecycle.power_state(order.server_uuid) == RUNNING

    def test_migration_of_a_guest_that_is_gone_returns(self, rig, order, other, live):
        live_order = prepared(rig, order, other)
        live.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: False)
        live.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: False)
        assert other.driver.live_moves.finish_arrival(move_order(order)) == RUNNING

    def test_migration_that_is_told_to_stop_leaves_the_guest_where_it_was(self, rig, order, other, live):
        live_order = prepared(rig, order, other)
        with pytest.raises(errors.NovaError):
            live.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: True)
        assert live.lifecycle.power_state(order.server_uuid) == RUNNING
        with pytest.raises(errors.NotFound):
            other.driver.live_moves.finish_arrival(move_order(order))
        gone(other, order)
        assert other.left_over(order) == []

    def test_migration_to_a_host_that_gave_up_leaves_the_guest_where_it_was(self, rig, order, other, live):
        live_order = prepared(rig, order, other)
        gone(other, order)
        try:
            live.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: False)
        except errors.NovaError:
            assert live.lifecycle.power_state(order.server_uuid) == RUNNING
        else:
            # A hypervisor that frees space automatically.
            assert other.driver.live_moves.finish_arrival(move_order(order)) == RUNNING

    def test_describe_of_a_guest_that_is_off_is_a_conflict_and_of_none_not_found(self, rig, order, other, live):
        live.lifecycle.shut_down(order.server_uuid, 0)
        with pytest.raises(errors.Conflict):
            live.live_moves.describe(order.server_uuid)
        with pytest.raises(errors.NotFound):
            live.live_moves.describe(str(uuid.uuid4()))

    def test_land_of_a_guest_that_never_came_is_not_found(self, rig, order, other, live):
        with pytest.raises(errors.NotFound):
            other.driver.live_moves.finish_arrival(move_order(order))

    @pytest.mark.parametrize("call", ["abort", "force"])
    def test_abort_and_force_without_a_migration_are_conflicts(self, rig, order, other, live, call):
        with pytest.raises(errors.Conflict):
            getattr(live.live_moves, call)(order.server_uuid)


class MoveCases(ColdCases, TwoHostCases, LiveCases):
    pass
