"""The fake driver that keeps its guests in files passes what every driver passes, as the next process sees it too."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova.conf import fake as fake_options
from nova.model.orders import BuildOrder
from nova.virt.fake import FakeDriver
from tests.contract.driver_conformance import DriverConformance, build
from tests.fakes.compute import options


class FilesRig:
    images, bridge, patience_s = None, "br100", 1.0

    def __init__(self, state_path: Path) -> None:
        self.state_path = state_path
        self.driver = self.next_process()

    def next_process(self) -> FakeDriver:
        driver = FakeDriver(options(fake_options, nodes=3), "here", self.state_path)
        driver.connect()
        return driver

    def left_over(self, order: BuildOrder) -> list[str]:
        files = [str(path) for path in (self.state_path / "fake").rglob(f"*{order.server_uuid}*")]
        found = self.driver.inspect(order.server_uuid)
        return files + ([] if found is None else [str(found)])


class TestFakeDriverInFiles(DriverConformance):
    @pytest.fixture
    def rig(self, tmp_path):
        rig = FilesRig(tmp_path)
        yield rig
        rig.driver.close()

    def test_guests_are_the_same_to_the_next_process(self, rig, order):
        build(rig, order)
        before = rig.driver.guests()
        rig.driver = rig.next_process()
        assert rig.driver.guests() == before
        assert build(rig, order) == before[0].power_state
