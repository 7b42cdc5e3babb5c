"""LUKS volumes that QEMU decrypts: their passphrases are libvirt secrets, held only in memory.

A secret has its volume's id as its uuid, the same on each host. It is private: libvirt passes it to QEMU and never
shows it. It is created before the guest is defined, and removed with the last use of the volume here. A restart of
libvirtd loses it: the order that then starts a guest contains the passphrase.
"""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET

from nova import errors, failures
from nova.privileged import guest_files
from nova.privileged.guest_files import LUKS_HEADER, LUKS_MAGIC
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.xml.build import add, text

SECTOR = 512
#: Data offset of a header that cannot be read here: LUKS 1 has no larger one.
USUAL_OFFSET = 2 << 20


def unlock(record: VolumeRecord, passphrase: str, hypervisor: LibvirtHypervisor) -> None:
    """Create the secret. Raises host.VolumeKey if ``passphrase`` is empty and the secret does not exist."""
    if not record.encrypted:
        return
    if passphrase:
        hypervisor.keep_secret(record.volume_id, secret_xml(record.volume_id), passphrase.encode())
    elif not hypervisor.has_secret(record.volume_id):
        raise errors.host.VolumeKey(volume=record.volume_id)


def lock(record: VolumeRecord, hypervisor: LibvirtHypervisor) -> None:
    """Remove the secret; does nothing if there is none."""
    if record.encrypted:
        hypervisor.drop_secret(record.volume_id)


def secret_xml(volume_id: str) -> str:
    """Return libvirt's XML of the secret (https://libvirt.org/formatsecret.html)."""
    secret = ET.Element("secret", ephemeral="yes", private="yes")
    text(secret, "uuid", volume_id)
    text(add(secret, "usage", type_="volume"), "volume", volume_id)
    return ET.tostring(secret, encoding="unicode")


def header_bytes(record: VolumeRecord) -> int:
    """Return the size of the LUKS header that precedes the data. (It does not count in qcow2.)

    Raises host.VolumeData if the file or device cannot be read, or has no such header."""
    if not record.encrypted or record.format != "raw":
        return 0
    if record.store not in ("file", "block"):
        return USUAL_OFFSET
    with failures.translated(OSError, lambda error: errors.host.VolumeData(volume=record.volume_id,
            reason=f"{record.path}: {error.strerror}")):
        is_file = record.store == "file"
        found = guest_files.head(record.path, LUKS_HEADER) if is_file else guest_files.luks_header(record.path)
    if len(found) < LUKS_HEADER or not found.startswith(LUKS_MAGIC) or found[6:8] != b"\0\1":
        raise errors.host.VolumeData(volume=record.volume_id, reason=f"{record.path} has no LUKS 1 header")
    return SECTOR * int(struct.unpack(">I", found[104:108])[0])
