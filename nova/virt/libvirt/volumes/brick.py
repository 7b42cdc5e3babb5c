"""Volumes that are devices of this host, which os-brick connects: iSCSI, Fibre Channel, NVMe-oF and others.

Several guests of a host that have one volume share its device, which goes with the last of them. A device that is not
the one that it was, or that is another volume's, is never given to a guest: what is behind a number of a back end may
have changed unnoticed (CVE-2023-2088).
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
    """``protocol``: os-brick's name of it; ``store``: what QEMU opens; ``tries``: the setting that says how often a
    device is looked for; ``interface``: it uses [libvirt]iscsi_iface."""

    protocol: str
    store: str = "block"
    tries: str = "scan_tries"
    interface: bool = False


#: By a connection's ``driver_volume_type``.
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
    """The device's path is known when it is connected."""
    device = DeviceRecord(words=without_secrets(data.words), shared_targets=data.shared_targets,
                          service_uuid=data.service_uuid)
    return msgspec.structs.replace(plain, store=KINDS[plain.kind].store, device=device)


def connect(record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
    """host.NoBrick, host.Brick; host.VolumeIdentity: it is not the device that it was."""
    before = record.device or DeviceRecord()
    brick, device = _of(tools, record), _device(record, tools.brick_settings)
    if data is not None:
        device = msgspec.structs.replace(device, words=data.words)
    found = brick.connect(device)
    path = found.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        raise errors.host.Brick(task="connect", reason="it names no path of the device")
    after = msgspec.structs.replace(before, found=found)
    if before.identity and after.identity != before.identity:
        raise errors.host.VolumeIdentity(volume=record.volume_id, path=path, found=after.identity or "no identity",
                                         expected=before.identity)
    return msgspec.structs.replace(record, path=path, device=after)


def disconnect(record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
    """host.Brick: it could not be written out, or may still be there."""
    if not use.others:
        _of(tools, record).disconnect(_device(record, tools.brick_settings), use.force)


def extend(record: VolumeRecord, tools: VolumeTools) -> None:
    """Let the host see how large it is. Nothing for a volume that is no device of os-brick's. host.Brick."""
    if record.kind in KINDS:
        _of(tools, record).extend(_device(record, tools.brick_settings))


def check_alone(record: VolumeRecord, others: Mapping[str, VolumeRecord]) -> None:
    """``others``: of the other volumes that are connected here. host.VolumeIdentity: it is one of them."""
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
