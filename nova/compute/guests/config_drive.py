"""A guest's config drive: written before its first start, and anew whenever it is defined for another one.

Where the guest's devices are is known when it is defined, and not before: a drive that tells of devices is written,
the guest is defined with it, and then it is written once more, with the places.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import errors
from nova.model.guest.guest_devices import dedicated_cpus, has_devices
from nova.model.guest.guest_tree import TreeOptions, VendorData, config_drive_files
from nova.model.guest.guests import DevicePlace, GuestFacts
from nova.model.guest.orders import BuildOrder
from nova.model.guest.vendor_source import VendorSource
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)


class ConfigDrives:
    def __init__(self, driver: Driver, tree: TreeOptions, vendor: VendorSource) -> None:
        self._driver, self._tree, self._vendor = driver, tree, vendor

    def write(self, order: BuildOrder) -> None:
        """For a guest that has one. Unavailable: a vendordata service failed that must not; HostRefused."""
        files = self.files(order)
        if files is not None:
            self._driver.disks.write_config_drive(order, files)

    def write_places(self, order: BuildOrder) -> None:
        """Once the guest can be defined: tell it where its devices are, too. It is defined after that, if it has such;
        repeated, it is the same."""
        if self._driver.device_places is None or not self.needs_places(order):
            return
        self._driver.lifecycle.define(order)
        places = self._driver.device_places.device_places(order.server_uuid)
        files = self.files(order, places)
        if places and files is not None:
            self._driver.disks.write_config_drive(order, files)

    def needs_places(self, order: BuildOrder) -> bool:
        """Whether the guest has a drive that tells of devices, and this driver knows where the guest sees them."""
        return order.config_drive and self._driver.device_places is not None and has_devices(order.interfaces)

    def renew(self, order: BuildOrder) -> None:
        """With what is true now, while the guest is off. What fails leaves the old one: a guest that starts with old
        news is better than one that doesn't."""
        try:
            self.write(order)
            self.write_places(order)
        except errors.NovaError as error:
            LOG.warning("the config drive of %s could not be made anew, and is as it was: %s", order.instance_name,
                        error.message, extra={"server": order.server_uuid})

    def files(self, order: BuildOrder, places: Mapping[str, DevicePlace] | None = None) -> Mapping[str, bytes] | None:
        """Its contents; None for a guest that has none."""
        if not order.config_drive:
            return None
        facts = msgspec.structs.replace(facts_of(order), places=places or {})
        vendor = VendorData(static=self._vendor.static(), dynamic=self._vendor.dynamic(facts))
        return config_drive_files(facts, self._tree, vendor)


def facts_of(order: BuildOrder) -> GuestFacts:
    """What the metadata of a guest says, as far as its order knows. Sizes of swap disks in MiB, all together."""
    return GuestFacts(
        uuid=order.server_uuid, id=order.id, name=order.name, hostname=order.hostname, project_id=order.project_id,
        user_id=order.user_id, reservation_id=order.reservation_id, launch_index=order.launch_index,
        availability_zone=order.availability_zone, metadata=order.metadata, key_name=order.key_name,
        public_key=order.public_key, key_type=order.key_type, user_data=order.user_data,
        flavor_name=order.flavor.name, image_id=order.image.id if order.image else "",
        kernel_id=order.kernel.id if order.kernel else None, ramdisk_id=order.ramdisk.id if order.ramdisk else None,
        interfaces=order.interfaces, security_groups=order.security_groups, files=order.files,
        ephemeral_count=sum(disk.kind == "ephemeral" for disk in order.disks),
        swap_mb=sum(disk.size_mb for disk in order.disks if disk.kind == "swap"),
        admin_password=order.admin_password, dedicated_cpus=dedicated_cpus(order.packing),
        ec2_numbers=order.ec2_numbers)
