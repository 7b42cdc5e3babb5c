"""Cases of drivers whose guests hold processors, cells and devices of their host."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.model.numa.topology import CellClaim, DeviceClaim, TopologyClaim
from nova.model.server.states import PowerState
from tests.contract.driver_life_cases import built, need
from tests.contract.driver_move_cases import gone, move_order, off_and_left, prepared

RUNNING = PowerState.RUNNING


def holding(order: BuildOrder, cpu: int = 0, **changes: Any) -> BuildOrder:
    """The guest pinned to a processor that every host has."""
    cell = CellClaim(id=0, host_cell=0, vcpus=(0,), memory_mb=order.flavor.memory_mb, pins={0: cpu})
    return msgspec.structs.replace(order, packing=TopologyClaim(**{"cells": (cell,), **changes}))


class PackingCases:
    @pytest.fixture
    def held(self, rig, order):
        need(rig.driver, "packed")
        made = holding(order)
        yield made
        gone(rig, made)

    def test_guest_holds_what_its_order_says_until_its_last_disk_is_gone(self, rig, held):
        rig.driver.disks.create_disks(held, rig.images)
        assert rig.driver.packed.packings() == {held.server_uuid: held.packing}
        rig.driver.interfaces.plug(held)
        assert rig.driver.lifecycle.start_new(held) == RUNNING
        assert rig.driver.packed.packing(held.server_uuid) == held.packing
        rig.driver.lifecycle.destroy(held.server_uuid)
        assert rig.driver.packed.packings() == {held.server_uuid: held.packing}
        gone(rig, held)
        assert rig.driver.packed.packings() == {} and rig.driver.packed.packing(held.server_uuid) is None

    def test_guest_that_holds_nothing_is_not_told_of(self, rig, order):
        built(rig, order)
        assert need(rig.driver, "packed").packed.packings() == {}

    def test_guest_that_is_defined_anew_holds_what_the_new_order_says(self, rig, held):
        built(rig, held)
        rig.driver.lifecycle.destroy(held.server_uuid)
        other = holding(held, 1)
        assert rig.driver.lifecycle.start_new(other) == RUNNING
        assert rig.driver.packed.packings() == {held.server_uuid: other.packing}

    def test_guest_that_is_put_aside_goes_on_holding_what_it_held(self, rig, held):
        driver = need(rig.driver, "cold_moves")
        built(rig, held)
        off_and_left(rig, held)
        assert driver.packed.packings() == {}
        assert driver.packed.packings(source_copies=True) == {held.server_uuid: held.packing}
        moved = holding(held, 1)
        driver.cold_moves.fetch(move_order(moved), rig.images)
        assert driver.packed.packings() == {held.server_uuid: moved.packing}
        assert driver.cold_moves.restore_source(held.server_uuid)
        assert driver.packed.packings() == {held.server_uuid: held.packing}
        assert driver.packed.packings(source_copies=True) == {}

    def test_guest_that_goes_while_it_runs_holds_its_place_there_from_before_it_comes(self, rig, held):
        other = getattr(rig, "other", None) or pytest.skip("the rig has one host")
        built(rig, held)
        there = holding(held, 1)
        live_order = prepared(rig, there, other)
        assert other.driver.packed.packings() == {held.server_uuid: there.packing}
        rig.driver.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: False)
        assert other.driver.live_moves.finish_arrival(move_order(there)) == RUNNING
        assert other.driver.packed.packings() == {held.server_uuid: there.packing}
        gone(rig, held)
        assert rig.driver.packed.packings() == {}

    def test_guest_with_devices_does_not_go_while_it_runs(self, rig, order):
        if not getattr(rig, "other", None):
            pytest.skip("the rig has one host")
        device = DeviceClaim(address="0000:01:00.0", request=0)
        held = holding(order, cells=(), devices=(device,))
        try:
            built(rig, held)
        except errors.HostRefused as error:
            pytest.skip(f"this host has no such device ({error})")
        with pytest.raises(errors.Conflict) as caught:
            rig.driver.live_moves.describe(held.server_uuid)
        assert caught.value.code == "move.devices"
