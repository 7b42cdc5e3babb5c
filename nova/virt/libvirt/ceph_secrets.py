"""Ceph's keys as libvirt's secrets: QEMU opens images of a pool with them.

A secret that is not there is made of the keyring that Ceph's own tools read on this host. libvirt keeps it for its own
user alone, and shows it to nobody.
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
    """Have libvirt's secret with the key of Ceph's ``user`` (without "client."). ``conf``: Ceph's configuration file;
    keyrings are beside it, or in /etc/ceph. host.CephSecret: there is neither the secret nor a keyring."""
    if hypervisor.has_secret(secret_uuid):
        return
    key = next(filter(None, (_key_in(path, user) for path in keyrings(user, conf))), None)
    if key is None:
        raise errors.host.CephSecret(secret=secret_uuid, user=user)
    hypervisor.keep_secret(secret_uuid, secret_xml(user, secret_uuid), key)


def keyrings(user: str, conf: str = "") -> tuple[Path, ...]:
    """Where the user's keyring may be, the likeliest first."""
    folders = dict.fromkeys([*([Path(conf).parent] if conf else []), CEPH])
    return tuple(folder / f"ceph.client.{user}.keyring" for folder in folders)


def secret_xml(user: str, secret_uuid: str) -> str:
    """Its value is never shown again. (usage: what operators see of it in ``virsh secret-list``)."""
    secret = ET.Element("secret", ephemeral="no", private="yes")
    text(secret, "uuid", secret_uuid)
    text(add(secret, "usage", type_="ceph"), "name", f"client.{user} {secret_uuid}")
    return ET.tostring(secret, encoding="unicode")


def _key_in(path: Path, user: str) -> bytes | None:
    """None: there is no such file, or no usable key of that user in it."""
    section = ""
    with contextlib.suppress(OSError, UnicodeDecodeError, binascii.Error):
        for line in path.read_text().splitlines():
            name, equals, value = (part.strip() for part in line.partition("="))
            if line.startswith("["):
                section = line.strip(" []\t")
            elif equals and name == "key" and section == f"client.{user}":
                return base64.b64decode(value, validate=True)
    return None
