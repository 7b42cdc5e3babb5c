"""What the kinds of volumes share: what is read of a connection, whatever is behind it, and what is said of bad
ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from nova import errors
from nova.model.base import Json
from nova.model.volumes import LUKS, VolumeConnection, VolumeDisk
from nova.privileged.brick import Brick
from nova.privileged.mounts import Mounts
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.settings.bricks import BrickSettings

#: What a volume type's qos_specs may limit: elements of libvirt's iotune.
THROTTLES = frozenset({"size_iops_sec", *(f"{way}_{what}_sec{most}" for way in ("total", "read", "write")
                                          for what in ("bytes", "iops") for most in ("", "_max"))})


class VolumeTools(NamedTuple):
    """What touches the host. ``ceph_conf``: Ceph's configuration file; empty: Ceph's own choice."""

    hypervisor: LibvirtHypervisor
    mounts: Mounts
    ceph_conf: str = ""
    brick: Brick | None = None  # None: os-brick is not installed
    brick_settings: BrickSettings = BrickSettings()


class ConnectionData:
    """The words of a volume's back end, read with care: they may be of another release, or another driver."""

    def __init__(self, volume_id: str, connection: VolumeConnection) -> None:
        self.volume_id, self._data = volume_id, connection.data
        self.shared_targets, self.service_uuid = connection.shared_targets, connection.service_uuid

    @property
    def words(self) -> Mapping[str, Json]:
        """All of them, secrets too."""
        return self._data

    def wrong(self, reason: str) -> errors.HostRefused:
        """The error to raise. ``reason`` has no word of the connection that may be a secret."""
        return errors.host.VolumeData(volume=self.volume_id, reason=reason)

    def text(self, name: str, default: str | None = None) -> str:
        """host.VolumeData: it is not there, or empty, and there is no default."""
        value = self._data.get(name)
        if value in (None, "") and default is not None:
            return default
        if not isinstance(value, str) or not value or "\n" in value or "\0" in value:
            raise self.wrong(f"its connection has no usable {name}")
        return value

    def flag(self, name: str) -> bool:
        """False when it is not there."""
        return self._data.get(name) is True

    def texts(self, name: str) -> tuple[str, ...]:
        """A list; numbers in it become text. () when it is not there."""
        value = self._data.get(name)
        return tuple(str(one) for one in value) if isinstance(value, list | tuple) else ()

    def number(self, name: str) -> int | None:
        """None when it is not there, or no whole number above 0."""
        return _number(self._data.get(name))

    def throttle(self) -> tuple[tuple[str, int], ...]:
        """Limits that QEMU keeps, of those that its volume type has; the others are the back end's own."""
        given = self._data.get("qos_specs")
        found = {name: _number(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
        return tuple((name, value) for name, value in sorted(found.items()) if name in THROTTLES and value is not None)


class Use(NamedTuple):
    """Of what is let go. ``others``: another guest here uses what this one's connection shares with it. ``force``: its
    guest is gone, and what was not written yet is lost rather than that the volume stays."""

    others: bool
    force: bool = False


class VolumeKind(Protocol):
    """One kind of volume: a module of this package."""

    def record(self, plain: VolumeRecord, data: ConnectionData, settings: LibvirtSettings) -> VolumeRecord:
        """``plain`` with how it is reached; no secret is in it. host.VolumeData."""

    def connect(self, record: VolumeRecord, tools: VolumeTools, data: ConnectionData | None) -> VolumeRecord:
        """Have all there is on this host before a guest uses it; the record, with what is known only then. ``data``
        has the secrets, where an order brought them. HostRefused. Repeated: the same."""

    def disconnect(self, record: VolumeRecord, use: Use, tools: VolumeTools) -> None:
        """Leave nothing of it, but for what is used by others. HostRefused: it may still be there. Safe when there is
        nothing."""


def plain(disk: VolumeDisk, connection: VolumeConnection) -> tuple[VolumeRecord, ConnectionData]:
    """What of a connection is the same for all kinds. host.VolumeData."""
    data = ConnectionData(disk.device.volume_id, connection)
    if (disk.device.encrypted or data.flag("encrypted")) and not connection.encryption:
        raise data.wrong("it is encrypted, and the order does not say how: its conductor is of an older release")
    return VolumeRecord(
        volume_id=disk.device.volume_id, kind=connection.kind, readonly=data.text("access_mode", "rw") == "ro",
        discard=data.flag("discard"), throttle=data.throttle(),
        encrypted=connection.encryption == LUKS,
        blocks=(data.number("logical_block_size"), data.number("physical_block_size"))), data


def _number(value: Json) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None
