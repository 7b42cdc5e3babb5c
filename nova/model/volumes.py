"""What the volume service keeps, as far as we read it, and a server's disks that lie on its volumes.

Source: the public reference of the Block Storage API v3; of block devices, the Compute API reference (Create Server).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import Json, Time, Value
from nova.model.flavor.flavors import Flavor

#: Statuses of volumes (and of snapshots, as far as they have them).
AVAILABLE, RESERVED, ATTACHING, IN_USE, DETACHING = "available", "reserved", "attaching", "in-use", "detaching"
ATTACHED = "attached"  # of an attachment that is complete
CREATING, DOWNLOADING, ERROR, DELETING = "creating", "downloading", "error", "deleting"

#: What a device is made of (``source_type``), and where it lies (``destination_type``).
VOLUME, IMAGE, SNAPSHOT, BLANK = "volume", "image", "snapshot", "blank"
LOCAL = "local"


class VolumeUse(Value):
    """An attachment as a volume shows it."""

    server_id: str
    attachment_id: str = ""
    device: str = ""
    host: str = ""


class Volume(Value):
    """A volume. ``size_gb`` is what it is sold as. ``image_metadata``: of the image that it was made of, all text.

    ``shared_targets`` None: other volumes of its back end are reached through the same target, if any is shared at all.
    """

    id: str
    status: str = AVAILABLE
    name: str = ""
    description: str | None = None
    size_gb: int = 0
    availability_zone: str = ""
    created_at: Time | None = None
    volume_type: str = ""
    snapshot_id: str | None = None
    bootable: bool = False
    multiattach: bool = False
    encrypted: bool = False
    migration_status: str | None = None
    metadata: Mapping[str, str] = {}
    image_metadata: Mapping[str, str] = {}
    attachments: tuple[VolumeUse, ...] = ()
    shared_targets: bool | None = False
    service_uuid: str | None = None


class NewVolume(Value):
    """A volume to make: empty, or of an image, or of a snapshot."""

    size_gb: int
    name: str = ""
    description: str | None = None
    snapshot_id: str | None = None
    image_id: str | None = None
    volume_type: str | None = None
    availability_zone: str | None = None
    metadata: Mapping[str, str] = {}


class VolumeSnapshot(Value):
    """A snapshot of a volume. ``progress``: such as ``90%``."""

    id: str
    volume_id: str
    status: str = AVAILABLE
    progress: str = ""
    size_gb: int = 0
    name: str = ""
    description: str | None = None
    created_at: Time | None = None
    project_id: str = ""
    metadata: Mapping[str, str] = {}


class NewVolumeSnapshot(Value):
    """``force``: of a volume that is in use, too."""

    volume_id: str
    name: str = ""
    description: str | None = None
    force: bool = False
    metadata: Mapping[str, str] = {}


class VolumeMetadataChange(Value):
    """Metadata of a volume or a snapshot (``kind``: VOLUME, SNAPSHOT): ``items`` are written, ``delete`` names keys to
    take out."""

    kind: str
    id: str
    items: Mapping[str, str] = {}
    delete: tuple[str, ...] = ()


def snapshot_name(image_id: str) -> str:
    """Of the snapshots that are made for an image of a stopped server: whoever has to find them knows the image."""
    return f"snapshot for image {image_id}"


class VolumeQuery(Value):
    """A page of a project's volumes or snapshots, by the old proxies' parameters."""

    limit: int | None = None
    offset: int = 0


#: What a host says of itself, so that a back end lets it in: the words of os-brick.
Connector = Mapping[str, Json]

#: How an encrypted volume is read: QEMU does it, by the volume's passphrase; or its back end does, and nobody else.
LUKS, BACK_END = "luks", "back-end"


class VolumeConnection(Value):
    """How one host reaches one volume. It may hold secrets: it goes to that host by order, and is never kept, logged or
    shown. ``kind``: such as ``rbd``, ``nfs``, ``iscsi``; ``data``: the back end's own words.

    ``encryption``: LUKS or BACK_END; empty: it is not encrypted, or the conductor knows of no such volumes.
    ``passphrase``: of LUKS; empty: nobody could get it now, and the host may have it still. ``service_uuid``: of the
    service that has the volume, if hosts must take turns with its targets (``shared_targets``, as the volume has it).
    """

    kind: str
    data: Mapping[str, Json] = {}
    encryption: str = ""
    passphrase: str = ""
    shared_targets: bool | None = False
    service_uuid: str = ""

    def __repr__(self) -> str:
        return f"VolumeConnection(kind={self.kind!r}, data=***)"


class VolumeAttachment(Value):
    """What the volume service keeps of a volume's use by a server. ``connection`` None: no host has asked for it."""

    id: str
    volume_id: str
    server_id: str = ""
    status: str = ""
    connection: VolumeConnection | None = None


class VolumeEncryption(msgspec.Struct, frozen=True, kw_only=True):
    """How a volume is encrypted. ``key_id``: of the key manager; the key itself is asked of it by the host's order."""

    key_id: str
    provider: str = ""
    cipher: str | None = None
    key_size: int | None = None
    control_location: str = "front-end"


class VolumeLimits(Value):
    """Of a project's snapshots; None: no limit."""

    snapshots_used: int = 0
    snapshots_most: int | None = None


class BlockDevice(Value):
    """A disk of a server that lies on a volume. ``id`` is the device's own (``bdm_uuid``); empty in a request.

    ``source`` is what its volume is made of, and ``source_id`` names that; ``volume_id`` is empty until there is one.
    ``boot_index`` 0: the server boots from it; None: it is not booted from. ``attachment_id``: the volume service's;
    empty: none is made yet, or it is given back. ``next_attachment_id``: of a move's destination, while it lasts.
    ``made``: we made the volume for this server. ``device_name``: where the guest is believed to see it.
    ``multiattach``: its volume may have several servers; in a request: its version knows that volumes may.
    """

    id: str = ""
    source: str = VOLUME
    source_id: str = ""
    volume_id: str = ""
    attachment_id: str = ""
    next_attachment_id: str = ""
    size_gb: int | None = None
    volume_type: str | None = None
    boot_index: int | None = None
    device_name: str | None = None
    device_type: str | None = None
    bus: str | None = None
    tag: str | None = None
    delete_on_termination: bool = False
    multiattach: bool = False
    encrypted: bool = False
    made: bool = False


class VolumeDisk(Value):
    """A volume as an order has it: the device, and how this host reaches it. ``connection`` None: it does so already,
    or does not need to."""

    device: BlockDevice
    connection: VolumeConnection | None = None


class AttachVolume(Value):
    """A volume to attach to a server. ``device``: where the user would like to see it, which is no promise.
    ``multiattach``: the request's version knows volumes of several servers."""

    volume_id: str
    device: str | None = None
    tag: str | None = None
    delete_on_termination: bool = False
    multiattach: bool = False


class NewAssistedSnapshot(Value):
    """A snapshot that a host makes of a volume that is a file: writes go on in ``new_file``, beside the present one.
    ``snapshot_id``: the volume service's. ``id``: the caller's word for it."""

    volume_id: str
    snapshot_id: str
    new_file: str
    id: str | None = None


class OldAssistedSnapshot(Value):
    """Such a snapshot that a host is to merge: ``file_to_merge`` into ``merge_target_file``; None: into the file that
    is written to. ``file_to_merge`` None: that one is to have no base."""

    volume_id: str
    snapshot_id: str
    file_to_merge: str | None = None
    merge_target_file: str | None = None


LOST_AT_CINDER, UNKNOWN_HERE = "lost", "unknown"  # an attachment that the volume service, or the record, has not


class AttachmentDifference(Value):
    """An attachment that only one of both knows (``kind``)."""

    server_uuid: str
    volume_id: str
    attachment_id: str
    kind: str


class VolumeCounts(Value):
    """What a guest did with one of its volumes since the guest was started: requests, and bytes."""

    server_uuid: str
    volume_id: str
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0


class ComparedAttachments(Value):
    """Of so many servers. ``whole``: there are no others with volumes."""

    servers: int
    whole: bool = True
    differences: tuple[AttachmentDifference, ...] = ()


def root_of(devices: tuple[BlockDevice, ...]) -> BlockDevice | None:
    """The volume that a server boots from; None: it boots from a disk of its host."""
    return next((one for one in devices if one.boot_index == 0), None)


def local(flavor: Flavor, devices: tuple[BlockDevice, ...] | None) -> Flavor:
    """What a server takes of its host's disks: no root disk, where it boots from a volume."""
    if root_of(devices or ()) is None:
        return flavor
    return msgspec.structs.replace(flavor, root_gb=0)


def as_large_as_root(flavor: Flavor, devices: tuple[BlockDevice, ...]) -> Flavor:
    """The flavor as an image must fit it: the volume that the server boots from is its root disk."""
    root = root_of(devices)
    return flavor if root is None else msgspec.structs.replace(flavor, root_gb=root.size_gb or 0)
