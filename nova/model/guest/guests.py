"""Facts about a guest that the metadata service and the config drive give it."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value
from nova.model.network.networks import Interface


class DevicePlace(Value):
    """A device's place in the guest. ``address`` has the format of its bus (PCI: 0000:00:03.0)."""

    bus: str = "none"
    address: str = "none"


class ApiFacts(Value):
    """Facts of a guest in the api database. ``ec2_numbers``: numbers in EC2 ids, by the ids of the server and its
    images; ``dedicated_cpus``: the host's processors that are the guest's alone."""

    ec2_numbers: Mapping[str, int] = {}
    dedicated_cpus: tuple[int, ...] = ()


class GuestFacts(Value):
    """All facts that a guest may know about itself. ``user_data`` is base64 text."""

    uuid: str
    id: int
    name: str
    hostname: str
    project_id: str
    user_id: str = ""
    reservation_id: str = ""
    launch_index: int = 0
    availability_zone: str | None = None
    metadata: Mapping[str, str] = {}
    key_name: str | None = None
    public_key: str | None = None
    key_type: str = "ssh"
    user_data: str | None = None
    flavor_name: str = ""
    image_id: str = ""
    kernel_id: str | None = None
    ramdisk_id: str | None = None
    root_device_name: str | None = None
    interfaces: tuple[Interface, ...] = ()
    security_groups: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    password: str = ""  # encrypted, as the guest posted it
    ephemeral_count: int = 0
    swap_mb: int = 0
    admin_password: str | None = None
    dedicated_cpus: tuple[int, ...] = ()  # pinned CPUs of the guest
    places: Mapping[str, DevicePlace] = {}  # of its devices, by MAC address
    ec2_numbers: Mapping[str, int] = {}  # numbers in EC2 ids, of its own uuid and of its images' ids


class GuestQuery(Value):
    """Sender of a metadata request: identified by fixed address; or (behind a signing proxy) by uuid and project; or
    (behind a load balancer that signs its own id) by that id and fixed address."""

    address: str | None = None
    server_uuid: str | None = None
    project_id: str | None = None
    provider_id: str | None = None


class GuestPassword(Value):
    server_uuid: str
    password: str
