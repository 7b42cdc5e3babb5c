"""Cases of drivers that know where a guest sees its devices.

A part of :class:`tests.contract.driver_conformance.DriverConformance`.
"""

from __future__ import annotations

import re

import pytest

from nova import errors
from tests.contract.driver_life_cases import need

PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class PlaceCases:
    def test_places_are_known_when_the_guest_is_defined_and_stay_when_it_starts(self, rig, order):
        """A config drive is written between the two."""
        driver = need(rig.driver, "device_places")
        driver.disks.create_disks(order, rig.images)
        driver.interfaces.plug(order)
        driver.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
        driver.lifecycle.define(order)
        places = driver.device_places.device_places(order.server_uuid)
        driver.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b'{"devices": []}'})
        driver.lifecycle.start_new(order)
        card, = order.interfaces
        assert places[card.mac].bus == "pci" and PCI.fullmatch(places[card.mac].address)
        assert driver.device_places.device_places(order.server_uuid) == places

    def test_places_of_no_guest_are_not_found(self, rig, order):
        with pytest.raises(errors.NotFound):
            need(rig.driver, "device_places").device_places.device_places(order.server_uuid)
