"""What a guest may learn of itself, from the order that builds it."""

from __future__ import annotations

from nova.model.guest_devices import dedicated_cpus
from nova.model.guests import GuestFacts
from nova.model.orders import BuildOrder


def facts_of(order: BuildOrder) -> GuestFacts:
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
        admin_password=order.admin_password, dedicated_cpus=dedicated_cpus(order.packing))
