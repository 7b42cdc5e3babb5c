"""Volumes that os-brick attaches as devices of this host: iSCSI, Fibre Channel, NVMe-oF and others.

Guests of a host that share a volume share its device, which is removed with the last of them. A device whose identity
has changed, or that belongs to another volume, is never given to a guest: the data behind a back end's LUN may have
changed unnoticed (CVE-2023-2088).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nova import errors
from nova.privileged.brick import Brick, BrickDevice
from nova.privileged.brick_process import without_secrets
from nova.virt.libvirt.disks.records import DeviceRecord, VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.settings.bricks import BrickSettings
from nova.virt.libvirt.volumes.common import ConnectionData, Use, VolumeTools


class DeviceKind(NamedTuple):
    """A kind of device. ``protocol``: os-brick's name of it; ``store``: the type that QEMU opens; ``tries``: the
    setting with the number of scans for a device; ``interface``: it uses [libvirt]iscsi_iface."""

    protocol: str
    store: str = "block"
    tries: str = "scan_tries"
    interface: bool = False


#: Kinds by a connection's ``driver_volume_type``.
KINDS: Mapping[str, DeviceKind] = {
    "iscsi": DeviceKind("ISCSI", interface=True),
    "iser": DeviceKind("ISER", tries="iser_tries"),
    "fibre_channel": DeviceKind("FIBRE_CHANNEL"),
    "nvmeof": DeviceKind("NVMEOF", tries="nvme_tries"),
    "lightos": DeviceKind("LIGHTOS", tries="nvme_tries"),
    "scaleio": DeviceKind("SCALEIO"),
    "storpool": DeviceKind("STORPOOL"),
    "gpfs": DeviceKind("GPFS", store="file"),
}


def record(plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
    """Return the record, without the device's path, which is known only after the connect."""
    device = DeviceRecord(words=without_secrets(data.words), shared_targets=data.shared_targets,
                          service_uuid=data.service_uuid)
    return msgspec.structs.replace(plain, store=KINDS[plain.kind].store, device=device)


def connect(record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
    """Connect the device. Raises host.NoBrick, host.Brick; host.VolumeIdentity if it is not the same device as
    before."""
    before = record.device or DeviceRecord()
    brick, device = _of(tools, record), _device(record, tools.brick_settings)
    if data is not None:
        device = msgspec.structs.replace(device, words=data.words)
    found = brick.connect(device)
    path = found.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        raise errors.host.Brick(task="connect", reason="it returned no device path")
    after = msgspec.structs.replace(before, found=found)
    if before.identity and after.identity != before.identity:
        raise errors.host.VolumeIdentity(volume=record.volume_id, path=path, found=after.identity or "no identity",
                                         expected=before.identity)
    return msgspec.structs.replace(record, path=path, device=after)


def disconnect(record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
    """Disconnect the device if no other guest uses it. Raises host.Brick if it was not flushed, or may still be
    there."""
    if not use.others:
        _of(tools, record).disconnect(_device(record, tools.brick_settings), use.force)


def extend(record: VolumeRecord, tools: VolumeTools) -> None:
    """Rescan the device's size; does nothing for a volume that os-brick did not connect. Raises host.Brick."""
    if record.kind in KINDS:
        _of(tools, record).extend(_device(record, tools.brick_settings))


def check_alone(record: VolumeRecord, others: Mapping[str, VolumeRecord]) -> None:
    """Raise host.VolumeIdentity if the device is one of ``others``, the other volumes that are connected here."""
    mine = record.device
    for volume_id, other in others.items():
        theirs = other.device
        if mine is None or theirs is None or not mine.found or not theirs.found:
            continue
        if other.path == record.path or (mine.identity and mine.identity == theirs.identity):
            raise errors.host.VolumeIdentity(volume=record.volume_id, path=record.path, found=f"volume {volume_id}",
                                             expected="a device of its own")


def _of(tools: VolumeTools, record: VolumeRecord) -> Brick:
    if tools.brick is None:
        raise errors.host.NoBrick(volume=record.volume_id, kind=record.kind)
    return tools.brick


def _device(record: VolumeRecord, settings: BrickSettings) -> BrickDevice:
    kind, known = KINDS[record.kind], record.device or DeviceRecord()
    return BrickDevice(protocol=kind.protocol, words=known.words, tries=getattr(settings, kind.tries),
                  transport=settings.iscsi_iface if kind.interface else "", shared_targets=known.shared_targets,
                  service_uuid=known.service_uuid, found=known.found)
