"""Files on NFS exports. An export is mounted once for all guests that use it, and unmounted with the last.

An export that is already mounted (by /etc/fstab, for example) is used and stays mounted. A mark file next to the mount
point, written before the mount, shows that this host's nova-compute mounted it; it is valid only until a reboot.
"""

from __future__ import annotations

import hashlib
import logging

import msgspec

from nova import errors
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes.common import ConnectionData, Use, VolumeTools

LOG = logging.getLogger(__name__)

FORMATS = ("raw", "qcow2")
LUKS = "luks"  # Cinder's name for a raw file with a LUKS header


def record(plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
    """Return the record. The mount point is named by the MD5 of the export, as other programs name it."""
    export, name, format_ = data.text("export"), data.text("name"), data.text("format", "raw")
    if export.startswith("-") or ":" not in export:
        raise data.wrong("its export is not of the form host:/path")
    if "/" in name or name in (".", ".."):
        raise data.wrong("its name is not that of a file in its export")
    if format_ == LUKS and plain.encrypted:
        format_ = "raw"
    if format_ not in FORMATS:
        raise data.wrong(f"its format is not {' or '.join(FORMATS)}")
    mount = settings.mount_base / hashlib.md5(export.encode(), usedforsecurity=False).hexdigest()
    options = ",".join(filter(None, (settings.mount_options, _words(data.text("options", "")))))
    return msgspec.structs.replace(plain, store="file", path=str(mount / name), format=format_, export=export,
                                   mount=str(mount), options=options)


def connect(record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
    """Mount the export. Raises host.VolumeMount."""
    if tools.mounts.has(record.mount):
        return record
    tools.mounts.prepare(record.mount)
    try:
        tools.mounts.mount(record.export, record.mount, "nfs", record.options)
    except errors.host.CommandFailed as error:
        if not tools.mounts.has(record.mount):
            tools.mounts.forget(record.mount)
        raise errors.host.VolumeMount(export=record.export, path=record.mount, reason=error.message) from error
    LOG.info("mounted %s on %s", record.export, record.mount)
    return record


def disconnect(record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
    """Unmount the export. If that fails, the mount, which is harmless, stays until the next last user goes."""
    ours = tools.mounts.is_ours(record.mount)
    if use.others or ours is None:
        return
    if tools.mounts.has(record.mount):
        if not ours:
            return tools.mounts.forget_mark(record.mount)  # mounted by another program since the host's reboot
        try:
            tools.mounts.unmount(record.mount)
        except errors.host.CommandFailed as error:
            LOG.warning("%s stays mounted on %s: %s", record.export, record.mount, error)
            return None
        LOG.info("unmounted %s from %s", record.export, record.mount)
    return tools.mounts.forget(record.mount)


def _words(options: str) -> str:
    """Strip the ``-o`` from Cinder's options, which are in command line form: ``-o vers=4``."""
    return options.removeprefix("-o").strip()
