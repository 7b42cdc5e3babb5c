"""A server's complete row as a value, used by workflows and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nova.model.base import Time
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import Disk
from nova.model.image.images import Image
from nova.model.network.networks import Interface, PortDemand, RequestedNetwork
from nova.model.server.servers import Fault, ServerMemo
from nova.model.volumes import BlockDevice


class ServerRow(msgspec.Struct, frozen=True, array_like=True):
    """A row whose fields are the columns of that name in ``nova.db.models.cell``; None: unknown or never set."""

    id: int
    uuid: str
    deleted: int
    project_id: str
    user_id: str
    name: str
    description: str | None
    hostname: str | None
    created_at: Time
    updated_at: Time | None
    launched_at: Time | None
    terminated_at: Time | None
    deleted_at: Time | None
    archived_at: Time | None
    epoch: int
    console_epoch: int
    vm_state: str
    task_state: str | None
    power_state: int
    progress: int
    fault: Fault | None
    host: str | None
    node: str | None
    host_id: str | None
    availability_zone: str | None
    pinned_availability_zone: str | None
    flavor: Flavor
    flavorid: str
    image: Image | None
    image_id: str
    kernel_id: str
    ramdisk_id: str
    disks: tuple[Disk, ...] | None
    requested_networks: tuple[RequestedNetwork, ...] | None
    interfaces: tuple[Interface, ...] | None
    port_demands: tuple[PortDemand, ...] | None
    volumes: tuple[BlockDevice, ...] | None
    security_groups: tuple[str, ...] | None
    root_device_name: str | None
    config_drive: bool
    disk_config: str
    key_name: str | None
    public_key: str | None
    key_type: str
    user_data: str | None
    files: Mapping[str, str] | None
    guest_password: str | None
    reservation_id: str
    launch_index: int
    scheduler_hints: Mapping[str, Any] | None
    trusted_certs: tuple[str, ...] | None
    access_ip_v4: str | None
    access_ip_v6: str | None
    locked_by: str | None
    locked_reason: str | None
    memo: ServerMemo | None
    instance_name: str | None

