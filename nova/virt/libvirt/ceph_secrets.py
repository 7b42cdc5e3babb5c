"""Ceph keys as libvirt secrets, with which QEMU opens images of a pool.

A missing secret is created from the keyring that Ceph's own tools read on this host. libvirt keeps it for its own user
only, and never shows its value.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import xml.etree.ElementTree as ET
from pathlib import Path

from nova import errors
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.xml.build import add, text

CEPH = Path("/etc/ceph")


def ensure_secret(hypervisor: LibvirtHypervisor, user: str, secret_uuid: str, conf: str = "") -> None:
    """Create the libvirt secret with the key of Ceph's ``user`` (without "client.") if it does not exist.

    ``conf``: Ceph's configuration file; keyrings are in the same directory, or in /etc/ceph. Raises host.CephSecret if
    there is neither the secret nor a keyring."""
    if hypervisor.has_secret(secret_uuid):
        return
    key = next(filter(None, (_key_in(path, user) for path in keyrings(user, conf))), None)
    if key is None:
        raise errors.host.CephSecret(secret=secret_uuid, user=user)
    hypervisor.keep_secret(secret_uuid, secret_xml(user, secret_uuid), key)


def keyrings(user: str, conf: str = "") -> tuple[Path, ...]:
    """Return the possible paths of the user's keyring, the most likely first."""
    folders = dict.fromkeys([*([Path(conf).parent] if conf else []), CEPH])
    return tuple(folder / f"ceph.client.{user}.keyring" for folder in folders)


def secret_xml(user: str, secret_uuid: str) -> str:
    """Return the XML of a private secret, whose value libvirt never shows. ``virsh secret-list`` shows its usage."""
    secret = ET.Element("secret", ephemeral="no", private="yes")
    text(secret, "uuid", secret_uuid)
    text(add(secret, "usage", type_="ceph"), "name", f"client.{user} {secret_uuid}")
    return ET.tostring(secret, encoding="unicode")


def _key_in(path: Path, user: str) -> bytes | None:
    """Return the user's key; None if there is no such file, or no usable key of that user in it."""
    section = ""
    with contextlib.suppress(OSError, UnicodeDecodeError, binascii.Error):
        for line in path.read_text().splitlines():
            name, equals, value = (part.strip() for part in line.partition("="))
            if line.startswith("["):
                section = line.strip(" []\t")
            elif equals and name == "key" and section == f"client.{user}":
                return base64.b64decode(value, validate=True)
    return None
