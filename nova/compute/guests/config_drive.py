"""Config drives of guests: written before the first start, and again when the guest is redefined for another start.

The addresses of a guest's devices are known only after it is defined. So a drive that lists devices is written, the
guest is defined with it, and the drive is written again with the addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import failures
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
        """Write the config drive, if the guest has one. Raises Unavailable if a required vendordata service failed;
        HostRefused."""
        files = self.files(order)
        if files is not None:
            self._driver.disks.write_config_drive(order, files)

    def write_places(self, order: BuildOrder) -> None:
        """Add device addresses to the drive once the guest can be defined. This defines the guest, if it has such
        devices. Idempotent."""
        if self._driver.device_places is None or not self.needs_places(order):
            return
        self._driver.lifecycle.define(order)
        places = self._driver.device_places.device_places(order.server_uuid)
        files = self.files(order, places)
        if places and files is not None:
            self._driver.disks.write_config_drive(order, files)

    def needs_places(self, order: BuildOrder) -> bool:
        """True if the guest has a drive that lists devices, and this driver knows their addresses in the guest."""
        return order.config_drive and self._driver.device_places is not None and has_devices(order.interfaces)

    def renew(self, order: BuildOrder) -> None:
        """Rewrite the drive with current data, while the guest is off. A failure keeps the old drive: a guest with
        outdated data is better than a guest that does not start."""
        with failures.best_effort(LOG, "the config drive of %s could not be rewritten; keeping the old one: %s",
                order.instance_name, extra={"server": order.server_uuid}):
            self.write(order)
            self.write_places(order)

    def files(self, order: BuildOrder, places: Mapping[str, DevicePlace] | None = None) -> Mapping[str, bytes] | None:
        """Return the contents of the drive; None for a guest without one."""
        if not order.config_drive:
            return None
        facts = msgspec.structs.replace(facts_of(order), places=places or {})
        vendor = VendorData(static=self._vendor.static(), dynamic=self._vendor.dynamic(facts))
        return config_drive_files(facts, self._tree, vendor)


def facts_of(order: BuildOrder) -> GuestFacts:
    """Return the metadata of a guest, as far as its order contains it. The sizes of swap disks are summed, in MiB."""
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
