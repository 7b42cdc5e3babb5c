"""Volumes that QEMU decrypts by itself (LUKS): their passphrases are secrets of libvirt's, in memory alone.

A secret has its volume's id as its uuid, on each host the same. It is private: libvirt hands it to QEMU, and shows it
to nobody. It is there before a guest is defined, and goes when the last guest here lets go of the volume. When libvirtd
is started anew it is lost: who starts a guest then brings the passphrase.
"""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET

from nova import errors
from nova.privileged import guest_files
from nova.privileged.guest_files import LUKS_HEADER, LUKS_MAGIC
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.xml.build import add, text

SECTOR = 512
#: Where the data begins in a header that cannot be read here: LUKS 1 has it no further on.
USUAL_OFFSET = 2 << 20


def unlock(record: VolumeRecord, passphrase: str, hypervisor: LibvirtHypervisor) -> None:
    """Have the secret. ``passphrase`` empty: it must be there already. host.VolumeKey: it is not."""
    if not record.encrypted:
        return
    if passphrase:
        hypervisor.keep_secret(record.volume_id, secret_xml(record.volume_id), passphrase.encode())
    elif not hypervisor.has_secret(record.volume_id):
        raise errors.host.VolumeKey(volume=record.volume_id)


def lock(record: VolumeRecord, hypervisor: LibvirtHypervisor) -> None:
    """The secret is gone. Nothing when there is none."""
    if record.encrypted:
        hypervisor.drop_secret(record.volume_id)


def secret_xml(volume_id: str) -> str:
    """What libvirt is told of the secret (https://libvirt.org/formatsecret.html)."""
    secret = ET.Element("secret", ephemeral="yes", private="yes")
    text(secret, "uuid", volume_id)
    text(add(secret, "usage", type_="volume"), "volume", volume_id)
    return ET.tostring(secret, encoding="unicode")


def header_bytes(record: VolumeRecord) -> int:
    """How much of the volume is no guest's: what LUKS has before the data. (In qcow2 it does not count.)

    host.VolumeData: the file or device cannot be read, or has no such header."""
    if not record.encrypted or record.format != "raw":
        return 0
    if record.store not in ("file", "block"):
        return USUAL_OFFSET
    try:
        is_file = record.store == "file"
        found = guest_files.head(record.path, LUKS_HEADER) if is_file else guest_files.luks_header(record.path)
    except OSError as error:
        raise errors.host.VolumeData(volume=record.volume_id, reason=f"{record.path}: {error.strerror}") from error
    if len(found) < LUKS_HEADER or not found.startswith(LUKS_MAGIC) or found[6:8] != b"\0\1":
        raise errors.host.VolumeData(volume=record.volume_id, reason=f"{record.path} has no header of LUKS 1")
    return SECTOR * int(struct.unpack(">I", found[104:108])[0])
