"""Cold migration of fake guests. The source's offer contains the content of the disks."""

from __future__ import annotations

import msgspec

from nova import decoding, errors
from nova.devel.fake.hypervisor import Part, disk_name, knobbed
from nova.devel.fake.store import FakeGuest
from nova.model.guest.orders import DiskOnSource, GuestOnSource, MoveOrder
from nova.model.server.states import PowerState
from nova.virt.interface import LocalImages

GUEST = "guest"  # name of the fact that contains the record


class FakeColdMoves(Part):
    @knobbed
    def leave(self, server_uuid: str) -> GuestOnSource:
        with self._hypervisor.store.lock:
            found = self._hypervisor.store.find(server_uuid)
            source_copy = self._hypervisor.source_copies.find(server_uuid)
            if found is not None and found.power_state in (PowerState.RUNNING, PowerState.PAUSED):
                raise errors.guest.WrongPower(uuid=server_uuid, state=PowerState(found.power_state).name)
            if found is not None and (found.disks or found.volumes) and source_copy is None:
                source_copy = copy_of(found)
                source_copy.source_copy = True
                source_copy.defined, source_copy.power_state, source_copy.saved = False, PowerState.NOSTATE, False
                source_copy.taps = source_copy.macs = []
                self._hypervisor.source_copies.keep(source_copy)
                with self._hypervisor.changed(server_uuid) as guest:
                    guest.drop_disks()
                    guest.defined, guest.power_state, guest.vcpus, guest.memory_mb = False, PowerState.NOSTATE, 0, 0
                    guest.packing, guest.volumes, guest.connected = None, {}, {}
        if source_copy is None:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return offer(self._hypervisor.host, source_copy)

    @knobbed
    def fetch(self, order: MoveOrder, images: LocalImages | None) -> None:
        if order.source is None:
            found = self._hypervisor.source_copies.find(order.server_uuid)
        else:
            text = order.source.facts.get(GUEST)
            found = decoding.from_json(text, FakeGuest) if text else None
        if found is None:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="all")
        sizes = {disk_name(disk): disk.size_gb for disk in order.build.disks} or dict(found.sizes)
        for disk, size in sizes.items():
            if size < found.sizes.get(disk, 0):
                raise errors.guest.DiskWouldShrink(disk=disk, uuid=order.server_uuid, old=found.sizes[disk], new=size)
        config = ["config"] if "config" in found.disks else []
        with self._hypervisor.changed(order.build) as guest:
            guest.disks, guest.sizes, guest.disk_gb = [*sizes, *config], sizes, sum(sizes.values())
            guest.marks = {disk: mark for disk, mark in found.marks.items() if disk in guest.disks}
            guest.packing = order.build.packing
            guest.config_drive, guest.passwords, guest.boots = found.config_drive, found.passwords, found.boots

    @knobbed
    def restore_source(self, server_uuid: str) -> bool:
        with self._hypervisor.store.lock:
            source_copy = self._hypervisor.source_copies.find(server_uuid)
            if source_copy is None:
                return False
            guest = copy_of(source_copy)
            guest.source_copy = False
            self._hypervisor.store.keep(guest)
            self._drop_source_copy(server_uuid)
            return True

    @knobbed
    def forget(self, server_uuid: str) -> None:
        self._drop_source_copy(server_uuid)

    def kept_sources(self) -> frozenset[str]:
        return frozenset(guest.uuid for guest in self._hypervisor.source_copies.all())

    def _drop_source_copy(self, server_uuid: str) -> None:
        self._hypervisor.source_copies.keep(FakeGuest(uuid=server_uuid))


def copy_of(guest: FakeGuest) -> FakeGuest:
    """Return a deep copy of the record."""
    return decoding.from_json(msgspec.json.encode(guest), FakeGuest)


def offer(host: str, guest: FakeGuest) -> GuestOnSource:
    """Return the source's offer for a guest that leaves ``host``: its disks by name, with the whole record as a
    fact."""
    disks = tuple(DiskOnSource(kind=disk.rstrip("0123456789"), name=disk, format="raw",
                               size_bytes=guest.sizes.get(disk, 0) << 30) for disk in guest.disks)
    return GuestOnSource(host=host, cpu="fake", disks=disks, power_state=PowerState(guest.power_state),
                         facts={GUEST: msgspec.json.encode(guest).decode()})
