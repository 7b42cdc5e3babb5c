"""Files and block devices of this host, or of storage that operators mounted."""

from __future__ import annotations

import os
import stat

import msgspec

from nova import errors
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes.common import ConnectionData, Use, VolumeTools


def record(plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
    """Return the record, with store file unless the path is a block device."""
    path = data.text("device_path")
    if not path.startswith("/") or ".." in path.split("/"):
        raise data.wrong("its device_path is not an absolute path")
    block = os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode)
    return msgspec.structs.replace(plain, store="block" if block else "file", path=path)


def connect(record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
    """Check the path. Raises host.VolumeData if there is no such file or device."""
    if not os.path.exists(record.path):
        raise errors.host.VolumeData(volume=record.volume_id, reason=f"{record.path} is not on this host")
    return record


def disconnect(record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
    """Do nothing: nova did not create the file or device."""
