"""Code shared by all kinds of volumes: fields of the connection data, and checks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from nova import errors
from nova.model.volumes import LUKS, VolumeConnection, VolumeDisk
from nova.privileged.brick import Brick
from nova.privileged.mounts import Mounts
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.settings.bricks import BrickSettings

#: Limits that a volume type's qos_specs may set: elements of libvirt's iotune.
THROTTLES = frozenset({"size_iops_sec", *(f"{way}_{what}_sec{most}" for way in ("total", "read", "write")
                                          for what in ("bytes", "iops") for most in ("", "_max"))})


class VolumeTools(NamedTuple):
    """Tools that change the host. ``ceph_conf``: Ceph's configuration file; empty: Ceph's default."""

    hypervisor: LibvirtHypervisor
    mounts: Mounts
    ceph_conf: str = ""
    brick: Brick | None = None  # None: os-brick is not installed
    brick_settings: BrickSettings = BrickSettings()


class ConnectionData:
    """Checked access to a volume back end's connection data, which may come from another release or driver."""

    def __init__(self, volume_id: str, connection: VolumeConnection) -> None:
        self.volume_id, self._data = volume_id, connection.data
        self.shared_targets, self.service_uuid = connection.shared_targets, connection.service_uuid

    @property
    def words(self) -> Mapping[str, object]:
        """Return all connection data, including secrets."""
        return self._data

    def wrong(self, reason: str) -> errors.HostRefused:
        """Return the error to raise. ``reason`` must not contain connection data, which may be secret."""
        return errors.host.VolumeData(volume=self.volume_id, reason=reason)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises host.VolumeData if it is invalid, or missing or empty without a default."""
        value = self._data.get(name)
        if value in (None, "") and default is not None:
            return default
        if not isinstance(value, str) or not value or "\n" in value or "\0" in value:
            raise self.wrong(f"its connection has no usable {name}")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if it is missing."""
        return self._data.get(name) is True

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list, its numbers as text; () if it is missing."""
        value = self._data.get(name)
        return tuple(str(one) for one in value) if isinstance(value, list | tuple) else ()

    def number(self, name: str) -> int | None:
        """Return a positive integer; None if it is missing or invalid."""
        return _number(self._data.get(name))

    def throttle(self) -> tuple[tuple[str, int], ...]:
        """Return the limits of the volume type that QEMU enforces; the back end enforces the others."""
        given = self._data.get("qos_specs")
        found = {name: _number(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
        return tuple((name, value) for name, value in sorted(found.items()) if name in THROTTLES and value is not None)


class Use(NamedTuple):
    """The use of a volume that is disconnected. ``others``: another guest here uses what this connection shares with
    it. ``force``: its guest is gone, so disconnect even if unwritten data is lost."""

    others: bool
    force: bool = False


class VolumeKind(Protocol):
    """A kind of volume: a module of this package."""

    def record(self, plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
        """Return ``plain`` with the connection data, without secrets. Raises host.VolumeData."""

    def connect(self, record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
        """Connect the volume on this host before a guest uses it; return the record, with data known only then.
        ``data`` has the secrets, if the order had them. Raises HostRefused. Safe to repeat."""

    def disconnect(self, record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
        """Disconnect the volume, except the part that others use. Safe if it is not connected. Raises HostRefused if it
        may still be there."""


def plain(disk: VolumeDisk, connection: VolumeConnection) -> tuple[VolumeRecord, ConnectionData]:
    """Return the part of a connection that all kinds share. Raises host.VolumeData."""
    data = ConnectionData(disk.device.volume_id, connection)
    if (disk.device.encrypted or data.flag("encrypted")) and not connection.encryption:
        raise data.wrong("it is encrypted, but the order has no encryption data: its conductor is of an older release")
    return VolumeRecord(
        volume_id=disk.device.volume_id, kind=connection.kind, readonly=data.text("access_mode", "rw") == "ro",
        discard=data.flag("discard"), throttle=data.throttle(),
        encrypted=connection.encryption == LUKS,
        blocks=(data.number("logical_block_size"), data.number("physical_block_size"))), data


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None
