"""Guests' disks on volumes: connected to this host before a guest is defined, let go when it is gone; plugged into
guests, taken out of them and extended while they live."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nova import errors
from nova.compute.orders.orders import Orders, Work
from nova.compute.orders.permission import BatchGate
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder, VolumeOrder, VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver, Volumes

LOG = logging.getLogger(__name__)

UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})
MOST_ON = {"ide": 4}  # disks that a guest may have on a bus: two on each of its two channels


class GuestVolumes:
    """What other parts of an order do with the volumes of its guest. A driver without volumes has nothing to let go.
    ``most_disks``: of one guest (``[compute]max_disk_devices_to_attach``); below 0: any number."""

    def __init__(self, driver: Driver, host: HostName, most_disks: int = -1) -> None:
        self._driver, self.host, self._most_disks = driver, host, most_disks

    def able(self) -> Volumes:
        """host.NoVolumes: this driver has none."""
        if self._driver.volumes is None:
            raise errors.host.NoVolumes(host=self.host)
        return self._driver.volumes

    def check(self, order: BuildOrder) -> None:
        """host.NoVolumes: the guest needs what this host has not. guest.TooManyDisks: with its local disks and its
        config drive it would have more than it may."""
        if order.volumes:
            self.able()
        bus = order.image.properties.get("hw_disk_bus", "") if order.image else ""
        limits = [most for most in (self._most_disks, MOST_ON.get(bus, -1)) if most >= 0]
        count = len(order.disks) + len(order.volumes) + order.config_drive
        if limits and count > min(limits):
            raise errors.guest.TooManyDisks(uuid=order.server_uuid, count=count, most=min(limits))

    def connect(self, order: BuildOrder) -> None:
        """All that the order names; nothing where they are. HostRefused: what failed is not connected."""
        if order.volumes:
            self.able().connect(order.server_uuid, order.volumes)

    def drop_others(self, order: BuildOrder) -> None:
        """The guest is gone, to be made anew: what the order does not name any more is let go."""
        self.disconnect(order.server_uuid, frozenset(one.device.volume_id for one in order.volumes))

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        """Let go of the guest's volumes, but of those to ``keep``. Safe when there are none."""
        if self._driver.volumes is not None:
            self._driver.volumes.disconnect(server_uuid, keep)

    def running(self) -> set[str]:
        """Guests that run, where this host has volumes."""
        if self._driver.volumes is None:
            return set()
        return {guest.server_uuid for guest in self._driver.guests() if guest.power_state in UP}

    def given_up(self, server_uuid: str) -> frozenset[str]:
        """See :class:`nova.virt.interface.Volumes`."""
        return self._driver.volumes.given_up(server_uuid) if self._driver.volumes is not None else frozenset()


class VolumeOrders:
    """Carries out the orders about one volume of a guest. Each: host.NoVolumes; host.OrderNotGranted,
    host.OrderStopped: a newer order has the server; host.OrderCannotAsk: no conductor answers."""

    def __init__(self, volumes: GuestVolumes, orders: Orders, conductor: ConductorHostRPC,
                 before_detach: Callable[[str, str], None] = lambda _server_uuid, _volume_id: None) -> None:
        """``before_detach``: told of a guest's uuid and the volume that it is to give up."""
        self._volumes, self._orders, self._conductor = volumes, orders, conductor
        self._before_detach = before_detach
        self._watched: set[str] = set()  # guests that kept a volume, and may give it up any time
        self._looked = False  # for those of the process before this one

    def attach(self, order: VolumeOrder, work: Work, gate: BatchGate) -> PowerState:
        """HostRefused: what failed is taken out and disconnected again. guest.TooManyDisks."""
        self._volumes.check(order.build)
        return self._granted(order, work, gate).attach_volume(order)

    def detach(self, order: VolumeOrder, work: Work, gate: BatchGate) -> PowerState:
        """Conflict: the guest did not give the volume up in time, and has it still."""
        volumes = self._granted(order, work, gate)
        self._before_detach(order.server_uuid, order.disk.device.volume_id)
        try:
            return volumes.detach_volume(order, lambda: work.stopped_error() is not None)
        except errors.Conflict:
            self._watched.add(order.server_uuid)
            raise

    def extend(self, order: VolumeOrder, work: Work, gate: BatchGate) -> PowerState:
        """HostRefused: the guest sees the old size."""
        return self._granted(order, work, gate).extend_volume(order)

    def swap(self, order: VolumeOrder, work: Work, gate: BatchGate) -> PowerState:
        """HostRefused, Conflict: the guest has the volume that it had."""
        return self._granted(order, work, gate).swap_volume(order, lambda: work.stopped_error() is not None)

    def unswap(self, order: VolumeOrder, work: Work, gate: BatchGate) -> PowerState:
        """guest.HasSuccessor."""
        return self._granted(order, work, gate).unswap_volume(order)

    def snapshot(self, order: VolumeSnapshotOrder, work: Work, gate: BatchGate) -> PowerState:
        """HostRefused, Conflict: the guest writes to the file that it had."""
        return self._granted(order, work, gate).snapshot_volume(order)

    def merge(self, order: VolumeSnapshotOrder, work: Work, gate: BatchGate) -> PowerState:
        """HostRefused, Conflict: the file is still in use."""
        return self._granted(order, work, gate).merge_volume_snapshot(order, lambda: work.stopped_error() is not None)

    def tell_of_given_up(self) -> int:
        """Guests that kept a volume, so that its detach failed, may give it up later: the conductor is told, and ends
        the detach. At first all guests are looked at, as such a guest may have done it before this process began. How
        many are watched still; one that is off has what it is defined with."""
        if self._looked and not self._watched:
            return 0
        running = self._volumes.running()
        if not self._looked:
            self._watched |= {one for one in running if self._given_up(one)}
            self._looked = True
        self._watched &= running
        for server_uuid in [*self._watched]:
            self._tell(server_uuid)
        return len(self._watched)

    def _given_up(self, server_uuid: str) -> frozenset[str]:
        with self._orders.alone(server_uuid):
            return self._volumes.given_up(server_uuid)

    def _tell(self, server_uuid: str) -> None:
        try:
            if gone := self._given_up(server_uuid):
                self._conductor.volumes_given_up(self._volumes.host, server_uuid, tuple(sorted(gone)))
        except errors.NovaError as error:
            LOG.warning("the detach of a volume that the guest gave up late cannot be ended yet: %s", error,
                        extra={"server": server_uuid})

    def _granted(self, order: VolumeOrder | VolumeSnapshotOrder, work: Work, gate: BatchGate) -> Volumes:
        volumes = self._volumes.able()
        gate.pass_(order.server_uuid)
        work.check()
        return volumes
