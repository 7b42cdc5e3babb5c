"""A driver on a fake hypervisor with real files; modules with fixtures of these names have their own."""

from __future__ import annotations

import pytest

from nova.virt.libvirt.vifs import bridge
from tests.contract.driver_conformance import build, make_order
from tests.unit.virt.libvirt.test_libvirt_driver import FakeLinks, Rig


@pytest.fixture
def links(monkeypatch):
    fake = FakeLinks()  # netlink needs root and changes the machine
    monkeypatch.setattr(bridge, "links", fake)
    return fake


@pytest.fixture
def rig(tmp_path, links):
    made = Rig(tmp_path, links)
    made.driver.connect()
    yield made
    made.close()


@pytest.fixture
def raw_rig(tmp_path, links):
    made = Rig(tmp_path, links, cow=False)
    made.driver.connect()
    yield made
    made.close()


@pytest.fixture
def order(rig):
    made = make_order(rig.bridge)
    build(rig, made)
    return made
