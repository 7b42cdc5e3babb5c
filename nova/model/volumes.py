"""The subset of the volume service's data that nova reads, and a server's disks on volumes.

Source: the public reference of the Block Storage API v3; for block devices, the Compute API reference (Create Server).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import Json, Time, Value
from nova.model.flavor.flavors import Flavor

#: Statuses of volumes; some also apply to snapshots.
AVAILABLE, RESERVED, ATTACHING, IN_USE, DETACHING = "available", "reserved", "attaching", "in-use", "detaching"
ATTACHED = "attached"  # status of a complete attachment
CREATING, DOWNLOADING, ERROR, DELETING = "creating", "downloading", "error", "deleting"

#: Sources (``source_type``) and destinations (``destination_type``) of a device.
VOLUME, IMAGE, SNAPSHOT, BLANK = "volume", "image", "snapshot", "blank"
LOCAL = "local"


class VolumeUse(Value):
    """An attachment in a volume's representation."""

    server_id: str
    attachment_id: str = ""
    device: str = ""
    host: str = ""


class Volume(Value):
    """A volume. ``size_gb`` is its nominal size. ``image_metadata``: of the image that it was created from, all text.

    ``shared_targets`` None: volumes of its back end share a target, if any target is shared at all.
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
    """A volume to create: empty, from an image, or from a snapshot."""

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
    """A snapshot to create. ``force``: even if the volume is in use."""

    volume_id: str
    name: str = ""
    description: str | None = None
    force: bool = False
    metadata: Mapping[str, str] = {}


class VolumeMetadataChange(Value):
    """Change of metadata of a volume or a snapshot (``kind``: VOLUME, SNAPSHOT): ``items`` are written, ``delete``
    names keys to remove."""

    kind: str
    id: str
    items: Mapping[str, str] = {}
    delete: tuple[str, ...] = ()


def snapshot_name(image_id: str) -> str:
    """Return the name of snapshots for an image of a stopped server. They can be found by the image's id."""
    return f"snapshot for image {image_id}"


class VolumeQuery(Value):
    """A page of a project's volumes or snapshots, with the parameters of the old proxies."""

    limit: int | None = None
    offset: int = 0


#: A host's connector properties for a volume back end, in the format of os-brick.
Connector = Mapping[str, object]

#: Decryption of encrypted volumes: by QEMU with the volume's passphrase, or by the back end.
LUKS, BACK_END = "luks", "back-end"


class VolumeConnection(Value):
    """Connection of one host to one volume. It may contain secrets: it is sent to that host with an order, but never
    stored, logged or shown. ``kind``: such as ``rbd``, ``nfs``, ``iscsi``; ``data``: in the back end's format.

    ``encryption``: LUKS or BACK_END; empty: not encrypted, or sent by a conductor without support for encryption.
    ``passphrase``: for LUKS; empty: not available now, though the host may still have it. ``service_uuid``: of the
    volume's service, if hosts must lock its targets (``shared_targets``, as in the volume).
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
    """The volume service's record of a volume's use by a server. ``connection`` None: no host has requested it."""

    id: str
    volume_id: str
    server_id: str = ""
    status: str = ""
    connection: VolumeConnection | None = None


class VolumeEncryption(msgspec.Struct, frozen=True, kw_only=True):
    """Encryption of a volume. ``key_id``: of the key manager; the key itself is fetched for the host's order."""

    key_id: str
    provider: str = ""
    cipher: str | None = None
    key_size: int | None = None
    control_location: str = "front-end"


class VolumeLimits(Value):
    """Limits of a project's snapshots; None: unlimited."""

    snapshots_used: int = 0
    snapshots_most: int | None = None


class BlockDevice(Value):
    """A disk of a server on a volume. ``id`` is the device's own (``bdm_uuid``); empty in a request.

    ``source`` is the kind of the volume's source, and ``source_id`` its id; ``volume_id`` is empty until the volume
    exists. ``boot_index`` 0: the server boots from it; None: not bootable. ``attachment_id``: of the volume service;
    empty: not yet created, or deleted. ``next_attachment_id``: of a migration's destination, during the migration.
    ``made``: nova created the volume for this server. ``device_name``: its expected name in the guest. ``multiattach``:
    its volume may have several servers; in a request: the microversion supports that.
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
    """A volume in an order: the device, and the host's connection to it. ``connection`` None: already connected, or not
    needed."""

    device: BlockDevice
    connection: VolumeConnection | None = None


class AttachVolume(Value):
    """A volume to attach to a server. ``device``: the requested device name, which is not guaranteed. ``multiattach``:
    the request's version supports volumes with several servers."""

    volume_id: str
    device: str | None = None
    tag: str | None = None
    delete_on_termination: bool = False
    multiattach: bool = False


class NewAssistedSnapshot(Value):
    """A snapshot that a host creates of a file-backed volume: further writes go to ``new_file``, in the directory of
    the present file. ``snapshot_id``: the volume service's. ``id``: set by the caller."""

    volume_id: str
    snapshot_id: str
    new_file: str
    id: str | None = None


class OldAssistedSnapshot(Value):
    """Such a snapshot that a host must merge: ``file_to_merge`` into ``merge_target_file``, or into the active file if
    that is None. ``file_to_merge`` None: the active file gets no backing file."""

    volume_id: str
    snapshot_id: str
    file_to_merge: str | None = None
    merge_target_file: str | None = None


LOST_AT_CINDER, UNKNOWN_HERE = "lost", "unknown"  # an attachment missing at the volume service, or in the record


class AttachmentDifference(Value):
    """An attachment that is known only to nova or only to the volume service (``kind``)."""

    server_uuid: str
    volume_id: str
    attachment_id: str
    kind: str


class VolumeCounts(Value):
    """I/O of a guest on one of its volumes since the guest's start: requests, and bytes."""

    server_uuid: str
    volume_id: str
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0


class ComparedAttachments(Value):
    """Comparison of the attachments of ``servers`` servers. ``whole``: all servers with volumes were compared."""

    servers: int
    whole: bool = True
    differences: tuple[AttachmentDifference, ...] = ()


def root_of(devices: tuple[BlockDevice, ...]) -> BlockDevice | None:
    """Return the volume that a server boots from; None if it boots from a local disk."""
    return next((one for one in devices if one.boot_index == 0), None)


def local(flavor: Flavor, devices: tuple[BlockDevice, ...] | None) -> Flavor:
    """Return the flavor with the local disks that a server needs: without a root disk if it boots from a volume."""
    if root_of(devices or ()) is None:
        return flavor
    return msgspec.structs.replace(flavor, root_gb=0)


def as_large_as_root(flavor: Flavor, devices: tuple[BlockDevice, ...]) -> Flavor:
    """Return the flavor for an image's size check: the size of a boot volume is that of the root disk."""
    root = root_of(devices)
    return flavor if root is None else msgspec.structs.replace(flavor, root_gb=root.size_gb or 0)
