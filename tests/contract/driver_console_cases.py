"""Cases of drivers that serve their guests' screens and serial ports (``interface.RemoteConsoles``).

Part of :class:`tests.contract.driver_conformance.DriverConformance`. ``rig.consoles``, where a rig has it: the types
that its guests have; else screens over VNC alone.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from nova import errors
from nova.model.guest.consoles import ConsoleType
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState
from nova.virt.interface import ConsoleEndpoint
from tests.contract.driver_life_cases import built, need
from tests.contract.driver_move_cases import move_order, prepared

T = ConsoleType


def types_of(rig: Any) -> tuple[ConsoleType, ...]:
    need(rig.driver, "remote_consoles")
    return getattr(rig, "consoles", (T.NOVNC,))


def places(rig: Any, order: BuildOrder) -> dict[ConsoleType, ConsoleEndpoint]:
    found = {kind: rig.driver.remote_consoles.console_of(order.server_uuid, kind) for kind in types_of(rig)}
    assert all(place.port or place.tls_port or place.socket_path for place in found.values())
    return found


def spots(found: dict[ConsoleType, ConsoleEndpoint]) -> set[Any]:
    """Whatever may be connected to."""
    return {spot for place in found.values() for spot in (place.port, place.tls_port, place.socket_path)
            if spot is not None}


class ConsoleCases:
    @pytest.fixture
    def second(self, rig):
        from tests.contract.driver_conformance import make_order, unbuild
        made = make_order(rig.bridge)
        yield made
        unbuild(rig, made)

    def test_console_of_a_guest_that_runs_is_the_same_each_time_and_no_other_guests(self, rig, order, second):
        types_of(rig)
        built(rig, order)
        built(rig, second)
        first = places(rig, order)
        assert places(rig, order) == first
        assert spots(first).isdisjoint(spots(places(rig, second)))

    def test_console_of_a_paused_guest_is_there(self, rig, order):
        driver = need(rig.driver, "pausing")
        found = (built(rig, order), places(rig, order))[1]
        driver.pausing.pause(order.server_uuid)
        assert places(rig, order) == found

    def test_console_of_a_guest_that_is_off_is_a_conflict_until_it_runs_again(self, rig, order):
        kinds = types_of(rig)
        built(rig, order)
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
        for kind in kinds:
            with pytest.raises(errors.Conflict):
                rig.driver.remote_consoles.console_of(order.server_uuid, kind)
        rig.driver.lifecycle.start_new(order)
        assert set(places(rig, order)) == set(kinds)

    def test_console_of_a_guest_that_was_destroyed_and_made_anew_is_found(self, rig, order):
        built(rig, order)
        kinds = types_of(rig)
        rig.driver.lifecycle.destroy(order.server_uuid)
        with pytest.raises(errors.NotFound):
            rig.driver.remote_consoles.console_of(order.server_uuid, kinds[0])
        assert rig.driver.lifecycle.start_new(order) == PowerState.RUNNING
        assert places(rig, order)

    def test_console_of_no_guest_is_not_found(self, rig):
        for kind in types_of(rig):
            with pytest.raises(errors.NotFound):
                rig.driver.remote_consoles.console_of(str(uuid.uuid4()), kind)

    def test_console_of_a_type_that_no_hypervisor_has_is_not_supported(self, rig, order):
        types_of(rig)
        built(rig, order)
        for kind in (T.RDP_HTML5, T.UNKNOWN):
            with pytest.raises(errors.NotSupported):
                rig.driver.remote_consoles.console_of(order.server_uuid, kind)

    def test_console_of_a_guest_that_was_suspended_is_found_when_it_goes_on(self, rig, order):
        driver = need(rig.driver, "suspending")
        built(rig, order)
        kinds = types_of(rig)
        driver.suspending.suspend(order.server_uuid)
        with pytest.raises(errors.Conflict):
            driver.remote_consoles.console_of(order.server_uuid, kinds[0])
        driver.suspending.resume(order)
        assert places(rig, order)

    def test_console_of_a_guest_that_moved_while_it_ran_is_its_destinations(self, rig, order):
        other = getattr(rig, "other", None)
        if other is None or rig.driver.live_moves is None:
            pytest.skip("there is one host only")
        built(rig, order)
        kinds = types_of(rig)
        rig.driver.live_moves.migrate(prepared(rig, order, other), lambda percent, amounts: None, lambda: False)
        try:
            other.driver.live_moves.finish_arrival(move_order(order))
            with pytest.raises(errors.NotFound):
                rig.driver.remote_consoles.console_of(order.server_uuid, kinds[0])
            assert set(places(other, order)) == set(kinds)
        finally:
            other.driver.lifecycle.destroy(order.server_uuid)
            other.driver.interfaces.unplug(order.server_uuid, order)
            other.driver.disks.remove_disks(order.server_uuid)
