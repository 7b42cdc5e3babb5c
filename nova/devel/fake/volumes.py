"""Volumes of fake guests: connecting, attaching and detaching.

A rule for ``release_volume`` (``conflict``) simulates a guest that does not release its volume: it is called when a
real guest would be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nova import errors
from nova.devel.fake.hypervisor import OFF, FakeHypervisor, Part, knobbed
from nova.devel.fake.store import FakeGuest, Store
from nova.model.guest.orders import VolumeOrder, VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.model.volumes import Connector, VolumeCounts, VolumeDisk

KINDS = frozenset({"fake", "rbd", "nfs", "local", "iscsi"})


class FakeVolumes(Part):
    def connector(self) -> Connector:
        """Return the connector without fields of a real back end."""
        return {"platform": "x86_64", "os_type": "linux", "ip": "127.0.0.1", "host": self._hypervisor.host,
                "multipath": False}

    @knobbed
    def connect(self, server_uuid: str, volumes: Sequence[VolumeDisk]) -> None:
        with self._hypervisor.changed(server_uuid) as guest:
            guest.connected = {**guest.connected, **{one.device.volume_id: _kind(guest, one) for one in volumes}}

    @knobbed
    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        for store in (self._hypervisor.store, self._hypervisor.source_copies):
            _let_go(store, server_uuid, keep)

    @knobbed
    def attach_volume(self, order: VolumeOrder) -> PowerState:
        device = order.disk.device
        with self._hypervisor.changed(order.build) as guest:
            guest.connected = {**guest.connected, device.volume_id: _kind(guest, order.disk)}
            guest.volumes = {**guest.volumes, device.volume_id: device.size_gb or 0}
            return _state(guest)

    @knobbed
    def detach_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        found, volume_id = self._hypervisor.store.find(order.server_uuid), order.disk.device.volume_id
        if found is not None and volume_id in found.volumes and volume_id not in found.given_up and \
                found.power_state not in OFF:
            self.release_volume(order)
        with self._hypervisor.changed(order.build) as guest:
            guest.volumes = {one: size for one, size in guest.volumes.items() if one != volume_id}
            guest.given_up = tuple(one for one in guest.given_up if one != volume_id)
            guest.connected = {one: kind for one, kind in guest.connected.items() if one != volume_id}
            return _state(guest)

    @knobbed
    def given_up(self, server_uuid: str) -> frozenset[str]:
        """Return the volumes that a test marked as released late, if the guest runs."""
        found = self._hypervisor.store.find(server_uuid)
        return frozenset(found.given_up) if found is not None and found.power_state not in OFF else frozenset()

    @knobbed
    def volume_counts(self, server_uuid: str) -> tuple[VolumeCounts, ...]:
        """Return counters as if the guest had read one sector of each volume."""
        found = self._hypervisor.store.find(server_uuid)
        volumes = sorted(found.volumes) if found is not None and found.power_state not in OFF else ()
        return tuple(VolumeCounts(server_uuid=server_uuid, volume_id=one, reads=1, read_bytes=512) for one in volumes)

    @knobbed
    def swap_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        successor, volume_id = _successor(order), order.disk.device.volume_id
        with self._hypervisor.changed(order.build) as guest:
            if guest.power_state in OFF:
                raise errors.guest.NotRunning(uuid=order.server_uuid)
            guest.connected = {**guest.connected, volume_id: _kind(guest, successor)}
            guest.replaced = {**guest.replaced, volume_id: successor.device.volume_id}
            return _state(guest)

    @knobbed
    def unswap_volume(self, order: VolumeOrder) -> PowerState:
        found = self._hypervisor.store.find(order.server_uuid)
        if found is None:
            return PowerState.NOSTATE
        if found.replaced.get(order.disk.device.volume_id) == _successor(order).device.volume_id:
            raise errors.guest.HasSuccessor(uuid=order.server_uuid, volume=order.disk.device.volume_id)
        return _state(found)

    @knobbed
    def snapshot_volume(self, order: VolumeSnapshotOrder) -> PowerState:
        volume_id = order.device.volume_id
        with self._hypervisor.changed(order.build) as guest:
            files = guest.files.get(volume_id, ())
            if order.new_file not in files:
                guest.files = {**guest.files, volume_id: (order.new_file, *files)}
            return _state(guest)

    @knobbed
    def merge_volume_snapshot(self, order: VolumeSnapshotOrder, stopped: Callable[[], bool]) -> PowerState:
        volume_id = order.device.volume_id
        with self._hypervisor.changed(order.build) as guest:
            files = guest.files.get(volume_id, ())
            if order.merge_target_file is not None and guest.power_state in OFF:
                raise errors.guest.NotRunning(uuid=order.server_uuid)
            left = files[:1] if order.merge_target_file is None else tuple(
                one for one in files if one != order.file_to_merge)
            guest.files = {**guest.files, volume_id: left}
            return _state(guest)

    @knobbed
    def extend_volume(self, order: VolumeOrder) -> PowerState:
        device = order.disk.device
        with self._hypervisor.changed(order.build) as guest:
            if device.volume_id in guest.volumes:
                guest.volumes = {**guest.volumes, device.volume_id: device.size_gb or 0}
            return _state(guest)

    @knobbed
    def release_volume(self, order: VolumeOrder) -> None:
        """Ask the guest to release the volume; it always does, unless the knobs say otherwise."""


def _successor(order: VolumeOrder) -> VolumeDisk:
    """Return the order's successor. Raises host.VolumeNotConnected if it has none."""
    if order.successor is None:
        raise errors.host.VolumeNotConnected(volume=order.disk.device.volume_id, uuid=order.server_uuid)
    return order.successor


def _kind(guest: FakeGuest, disk: VolumeDisk) -> str:
    """Return the volume's kind of connection: the order's, or that of the previous connection. Raises host.VolumeKind
    or host.VolumeNotConnected."""
    if disk.connection is None:
        FakeHypervisor.check_connected(guest, disk)
        return guest.connected[disk.device.volume_id]
    if disk.connection.kind not in KINDS:
        raise errors.host.VolumeKind(volume=disk.device.volume_id, kind=disk.connection.kind,
                                     known=", ".join(sorted(KINDS)))
    return disk.connection.kind


def _let_go(store: Store, server_uuid: str, keep: frozenset[str]) -> None:
    with store.lock:
        guest = store.find(server_uuid)
        if guest is not None:
            guest.connected = {volume: kind for volume, kind in guest.connected.items() if volume in keep}
            store.keep(guest)


def _state(guest: FakeGuest) -> PowerState:
    return PowerState(guest.power_state) if guest.defined else PowerState.NOSTATE
