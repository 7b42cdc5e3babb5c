"""Images of a Ceph pool: QEMU reaches them by itself, and needs one of libvirt's secrets for that."""

from __future__ import annotations

import msgspec

from nova.virt.libvirt.ceph_secrets import ensure_secret
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes.common import ConnectionData, Use, VolumeTools


def record(plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
    """The user and the secret are Cinder's word; where it has none, those of [libvirt]rbd_user."""
    hosts, ports = data.texts("hosts"), data.texts("ports")
    if len(hosts) != len(ports):
        raise data.wrong("its connection does not name as many ports as monitors")
    name = data.text("name")
    if name.count("/") != 1:
        raise data.wrong("its connection does not name pool/image")
    user, secret = (settings.rbd_user, settings.rbd_secret) if settings.rbd_secret else ("", "")
    if data.flag("auth_enabled"):
        user, secret = data.text("auth_username", settings.rbd_user), data.text("secret_uuid", secret)
        if not user or not secret:
            raise data.wrong("it says neither as whom it is reached nor by which secret (Cinder's rbd_secret_uuid), "
                             "and [libvirt]rbd_user and rbd_secret_uuid are not set")
    return msgspec.structs.replace(plain, store="rbd", path=name, user=user, secret=secret,
                                   hosts=tuple((host.strip("[]"), port)
                                               for host, port in zip(hosts, ports, strict=True)))


def connect(record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
    """host.CephSecret: libvirt has no such secret, and this host no keyring to make it of."""
    if record.user:
        ensure_secret(tools.hypervisor, record.user, record.secret, tools.ceph_conf)
    return record


def disconnect(record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
    """Nothing: QEMU has let go of it."""
