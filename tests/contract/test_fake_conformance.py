"""The fake driver that keeps its guests in files passes what every driver passes, as the next process sees it too."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova import errors
from nova.conf import fake as fake_options
from nova.devel.fake import FakeDriver
from nova.model.guest.consoles import PROTOCOLS
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState
from tests.contract.driver_conformance import DriverConformance, build
from tests.contract.driver_move_cases import move_order, off_and_left, prepared
from tests.fakes.compute import options

pytestmark = pytest.mark.one_in(2)  # one of two runs has each


class FilesRig:
    images, bridge, timeout_s = None, "br100", 1.0
    consoles = tuple(kind for kind, protocol in PROTOCOLS.items() if protocol != "rdp")

    def __init__(self, state_path: Path, other: FilesRig | None = None) -> None:
        self.state_path, self.other = state_path, other
        self.made: list[FakeDriver] = []
        self.driver = self.next_process()

    def mark(self, order: BuildOrder, text: str) -> None:
        self.driver.hypervisor.write_mark(order.server_uuid, text)

    def marked(self, order: BuildOrder) -> str:
        return self.next_process().hypervisor.inspect(order.server_uuid).marks["root"]

    def next_process(self) -> FakeDriver:
        driver = FakeDriver(options(fake_options, nodes=3), "here", self.state_path)
        driver.connect()
        self.made.append(driver)
        return driver

    def close(self) -> None:
        for driver in self.made:
            driver.close()

    def left_over(self, order: BuildOrder) -> list[str]:
        files = [str(path) for path in (self.state_path / "fake").rglob(f"*{order.server_uuid}*")]
        found = self.driver.hypervisor.inspect(order.server_uuid)
        return files + ([] if found is None else [str(found)])


class TestFakeDriverInFiles(DriverConformance):
    @pytest.fixture
    def rig(self, tmp_path):
        rig = FilesRig(tmp_path / "here", FilesRig(tmp_path / "there"))
        yield rig
        rig.close()
        rig.other.close()

    def test_guests_are_the_same_to_the_next_process(self, rig, order):
        build(rig, order)
        before = rig.driver.guests()
        rig.driver = rig.next_process()
        assert rig.driver.guests() == before
        assert build(rig, order) == before[0].power_state

    def test_guest_put_aside_is_there_for_the_next_process(self, rig, order):
        build(rig, order)
        off_and_left(rig, order)
        rig.driver = rig.next_process()
        assert rig.driver.cold_moves.kept_sources() == {order.server_uuid} and rig.driver.guests() == ()
        assert rig.driver.cold_moves.restore_source(order.server_uuid) is True

    def test_guest_that_arrived_while_the_process_was_down_is_found_by_the_next(self, rig, order):
        build(rig, order)
        live_order = prepared(rig, order, rig.other)
        rig.driver.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: False)
        rig.other.driver = rig.other.next_process()
        assert rig.other.driver.live_moves.finish_arrival(move_order(order)) == PowerState.RUNNING
        assert rig.next_process().lifecycle.power_state(order.server_uuid) is None

    def test_guest_whose_source_is_killed_at_the_handover_runs_on_one_host(self, rig, order):
        build(rig, order)
        live_order = prepared(rig, order, rig.other)
        for when, here in (("before", PowerState.RUNNING), ("after", None)):
            rig.driver.knobs.fail_next("hand_over", when=when)
            with pytest.raises(errors.Bug):
                rig.driver.live_moves.migrate(live_order, lambda percent, amounts: None, lambda: False)
            rig.driver = rig.next_process()
            assert rig.driver.lifecycle.power_state(order.server_uuid) == here
        assert rig.other.driver.live_moves.finish_arrival(move_order(order)) == PowerState.RUNNING
