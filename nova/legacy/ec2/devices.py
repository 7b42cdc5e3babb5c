"""Translation of EC2 block device mappings to the compute API's ``block_device_mapping_v2``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nova.legacy.ec2.faults import unsupported
from nova.legacy.ec2.request import Ec2Request
from nova.model.base import JsonValue
from nova.model.block_device.block_device_entries import bare
from nova.model.block_device.block_devices import BLOCK_DEVICES, root_name
from nova.model.block_device.requested_devices import DeviceTerms, RequestedDevices, devices_of
from nova.model.image.images import Image

#: Root device names that clients use by default.
USUAL_ROOTS = frozenset({"sda1", "sda", "xvda", "vda"})


class EbsDevice(msgspec.Struct, frozen=True, kw_only=True):
    snapshot_id: str | None = None
    volume_size: int | None = None
    delete_on_termination: bool | None = None
    volume_type: str | None = None
    no_device: bool | None = None
    encrypted: bool | None = None
    iops: int | None = None
    throughput: int | None = None


class BlockDeviceMapping(msgspec.Struct, frozen=True, kw_only=True):
    device_name: str | None = None
    virtual_name: str | None = None
    no_device: str | None = None  # AWS tools send an empty string, old clients send "true"
    ebs: EbsDevice | None = None


def asked(req: Ec2Request, mapping: Sequence[BlockDeviceMapping], image: Image, servers: int) -> RequestedDevices:
    """Return the block devices of a request for ``servers`` servers of the image.

    Raises InvalidSnapshot.NotFound, InvalidVolume.NotFound, InvalidBlockDeviceMapping, UnsupportedOperation.
    """
    if not mapping:
        return RequestedDevices()
    roots = USUAL_ROOTS | {root_name(image.properties)}
    found = [entry(req, one, bare(one.device_name) in roots, image) for one in mapping]
    if not any(one.get("boot_index") == 0 for one in found):
        found.insert(0, {"source_type": "image", "destination_type": "local", "uuid": image.id, "boot_index": 0})
    return devices_of((), found, DeviceTerms(image.id, servers, multiattach=False,
                                             most_local=req.options.max_local_block_devices))


def entry(req: Ec2Request, one: BlockDeviceMapping, is_root: bool = False, image: Image | None = None
          ) -> dict[str, JsonValue]:
    """Translate one mapping. SnapshotId may also be a volume's id; the volume itself is then used."""
    named: dict[str, JsonValue] = {} if is_root else {"device_name": one.device_name}
    ebs = one.ebs or EbsDevice()
    if (one.no_device is not None and one.no_device.lower() != "false") or ebs.no_device:
        return {"device_name": one.device_name, "no_device": True}
    if one.virtual_name:
        return named | {"source_type": "blank", "destination_type": "local", "volume_size": ebs.volume_size,
                        **({"guest_format": "swap"} if one.virtual_name == "swap" else {})}
    for name in ("encrypted", "iops", "throughput"):
        if getattr(ebs, name):
            raise unsupported(f"BlockDeviceMapping.Ebs.{name.capitalize()}: the volume type defines this. Specify a "
                              "VolumeType.")
    found = named | {"destination_type": "volume", "volume_size": ebs.volume_size, "volume_type": ebs.volume_type,
                     "delete_on_termination": ebs.delete_on_termination is not False,
                     "boot_index": 0 if is_root else None}
    if ebs.snapshot_id:
        kind = "volume" if ebs.snapshot_id.startswith("vol-") else "snapshot"
        return found | {"source_type": kind,
                        "uuid": req.one_meant("vol" if kind == "volume" else "snap", ebs.snapshot_id)}
    if not is_root or image is None:
        return found | {"source_type": "blank"}
    if image.properties.get(BLOCK_DEVICES):
        raise unsupported(f"BlockDeviceMapping of {one.device_name}: the image's root device already is a snapshot. "
                          "Specify the SnapshotId that DescribeImages shows, with the values to override.")
    return found | {"source_type": "image", "uuid": image.id}
