"""Images of a Ceph pool, which QEMU opens directly, with a libvirt secret."""

from __future__ import annotations

import msgspec

from nova.virt.libvirt.ceph_secrets import ensure_secret
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes.common import ConnectionData, Use, VolumeTools


def record(plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
    """Return the record with Cinder's user and secret, or those of [libvirt]rbd_user if Cinder sent none."""
    hosts, ports = data.texts("hosts"), data.texts("ports")
    if len(hosts) != len(ports):
        raise data.wrong("its connection has different numbers of ports and monitors")
    name = data.text("name")
    if name.count("/") != 1:
        raise data.wrong("its connection does not name pool/image")
    user, secret = (settings.rbd_user, settings.rbd_secret) if settings.rbd_secret else ("", "")
    if data.flag("auth_enabled"):
        user, secret = data.text("auth_username", settings.rbd_user), data.text("secret_uuid", secret)
        if not user or not secret:
            raise data.wrong("it has no user or no secret (Cinder's rbd_secret_uuid), "
                             "and [libvirt]rbd_user and rbd_secret_uuid are not set")
    return msgspec.structs.replace(plain, store="rbd", path=name, user=user, secret=secret,
                                   hosts=tuple((host.strip("[]"), port)
                                               for host, port in zip(hosts, ports, strict=True)))


def connect(record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
    """Ensure the secret. Raises host.CephSecret if libvirt has no such secret and this host has no keyring for it."""
    if record.user:
        ensure_secret(tools.hypervisor, record.user, record.secret, tools.ceph_conf)
    return record


def disconnect(record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
    """Do nothing: QEMU has closed the image."""
