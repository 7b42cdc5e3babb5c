"""Which devices a guest is told of, and what of them, by version."""

from __future__ import annotations

import msgspec
import pytest

from nova.model.guest.guest_devices import dedicated_cpus, devices, has_devices
from nova.model.guest.guests import DevicePlace
from nova.model.network.networks import Interface
from nova.model.numa.topology import CellClaim, TopologyClaim

PLAIN = Interface(id="v", mac="FA:16:3E:00:00:01", network_id="n", label="l", details={"vlan": "7"})
TAGGED = msgspec.structs.replace(PLAIN, tag="front")
ON_VLAN = msgspec.structs.replace(PLAIN, vnic_type="direct")
TRUSTED = msgspec.structs.replace(PLAIN, vnic_type="direct", details={}, profile={"trusted": "true"})
PLACES = {"fa:16:3e:00:00:01": DevicePlace(bus="pci", address="0000:00:03.0")}
COMMON = {"type": "nic", "bus": "pci", "address": "0000:00:03.0", "mac": "FA:16:3E:00:00:01"}


@pytest.mark.parametrize(("card", "version", "expected"), [
    (PLAIN, "latest", None),
    (TAGGED, "2016-06-30", {"tags": ["front"]}),
    (TAGGED, "2017-02-22", {"tags": ["front"]}),
    (TAGGED, "2018-08-27", {"tags": ["front"], "vf_trusted": False}),
    (ON_VLAN, "2016-06-30", {"tags": []}),
    (ON_VLAN, "2017-02-22", {"tags": [], "vlan": 7}),
    (ON_VLAN, "latest", {"tags": [], "vlan": 7, "vf_trusted": False}),
    (TRUSTED, "2017-02-22", None),
    (TRUSTED, "2018-08-27", {"tags": [], "vf_trusted": True}),
])
def test_card_when_it_is_told_of_then_with_the_fields_of_the_version(card, version, expected):
    assert devices([card], PLACES, version) == ([] if expected is None else [COMMON | expected])
    assert has_devices([card]) == (card is not PLAIN)


def test_card_when_its_place_is_not_known_then_none():
    assert devices([TAGGED], {}, "latest")[0] | {"bus": "none", "address": "none"} == devices([TAGGED], {}, "latest")[0]


def test_dedicated_cpus_when_pinned_in_several_cells_then_all_in_order():
    cells = (CellClaim(id=1, host_cell=0, vcpus=(2, 3), memory_mb=1, pins={3: 9}),
             CellClaim(id=0, host_cell=1, vcpus=(0, 1), memory_mb=1, pins={1: 4, 0: 5}))
    assert dedicated_cpus(TopologyClaim(cells=cells)) == (0, 1, 3)
    assert dedicated_cpus(None) == dedicated_cpus(TopologyClaim()) == ()
