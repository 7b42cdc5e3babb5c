"""The fake driver passes what every driver passes."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova.devel.fake import FakeDriver
from nova.model.guest.consoles import PROTOCOLS
from nova.model.guest.orders import BuildOrder
from tests.contract.driver_conformance import DriverConformance


class FakeRig:
    images, bridge, timeout_s = None, "br100", 1.0
    consoles = tuple(kind for kind, protocol in PROTOCOLS.items() if protocol != "rdp")

    def __init__(self, driver: FakeDriver, other: FakeRig | None = None) -> None:
        self.driver, self.other = driver, other

    def mark(self, order: BuildOrder, text: str) -> None:
        self.driver.hypervisor.write_mark(order.server_uuid, text)

    def marked(self, order: BuildOrder) -> str:
        return self.driver.hypervisor.inspect(order.server_uuid).marks["root"]

    def left_over(self, order: BuildOrder) -> list[str]:
        found = self.driver.hypervisor.inspect(order.server_uuid)
        return [] if found is None else [str(found)]


class TestFakeDriver(DriverConformance):
    @pytest.fixture
    def rig(self):
        conf = nova_conf.register(cfg.ConfigOpts())
        conf([], project="nova")
        drivers = [FakeDriver(conf.fake, host) for host in ("here", "there")]
        for driver in drivers:
            driver.connect()
        yield FakeRig(drivers[0], FakeRig(drivers[1]))
        for driver in drivers:
            driver.close()
