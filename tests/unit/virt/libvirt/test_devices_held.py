"""What the driver does not move while a guest runs is what the conductor refuses beforehand, and no more."""

from __future__ import annotations

import pytest

from nova.model.network import port_requests
from nova.model.numa.topology import DeviceClaim, TopologyClaim
from nova.model.server.action_restrictions import BuiltWith, restriction
from nova.virt.libvirt.moves.live import devices_held
from tests.unit.virt.libvirt.orders import order
from tests.unit.virt.libvirt.test_vifs import CASES, PCI


@pytest.mark.parametrize("name", CASES)
def test_devices_held_for_a_port_then_the_driver_refuses_a_live_migration_where_the_table_does(name: str) -> None:
    one = CASES[name][0]
    kind = port_requests.KINDS.get(one.vnic_type)  # of the device that a claim gives for such a port
    held = (DeviceClaim(address=PCI, request=0, id=one.id, kind=kind),) if kind else ()
    refused = restriction("live-migration", BuiltWith(interfaces=(one,)))
    assert bool(devices_held(order(interfaces=(one,), packing=TopologyClaim(devices=held)))) is bool(refused)


@pytest.mark.parametrize("live_migratable", [False, True])
def test_devices_held_for_a_flavor_then_the_driver_refuses_a_live_migration_as_the_table_does(
        live_migratable: bool) -> None:
    device = DeviceClaim(address=PCI, request=0, alias="gpu", live_migratable=live_migratable)
    assert devices_held(order(packing=TopologyClaim(devices=(device,)))) == (PCI,)
    assert restriction("live-migration", BuiltWith(extra_specs={"pci_passthrough:alias": "gpu:1"}))
    assert devices_held(order()) == () and restriction("live-migration", BuiltWith()) is None
