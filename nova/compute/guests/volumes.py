"""Guests' disks on volumes: connected to this host before a guest is defined, disconnected when it is gone; and
attached, detached and extended while guests run."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nova import errors, failures
from nova.compute.orders.orders import Orders, Work
from nova.compute.orders.permission import BatchPermission
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder, VolumeOrder, VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver, Volumes

LOG = logging.getLogger(__name__)

UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})
MOST_ON = {"ide": 4}  # disks that a guest may have on a bus: two on each of its two channels


class GuestVolumes:
    """Volume operations for other parts of an order. A driver without volumes has nothing to disconnect.
    ``most_disks``: limit for each guest (``[compute]max_disk_devices_to_attach``); below 0: unlimited."""

    def __init__(self, driver: Driver, host: HostName, most_disks: int = -1) -> None:
        self._driver, self.host, self._most_disks = driver, host, most_disks

    def able(self) -> Volumes:
        """Return the driver's volumes. Raises host.NoVolumes if this driver has none."""
        if self._driver.volumes is None:
            raise errors.host.NoVolumes(host=self.host)
        return self._driver.volumes

    def check(self, order: BuildOrder) -> None:
        """Check that this host can provide the guest's volumes. Raises host.NoVolumes if the guest needs volumes and
        this host has none; guest.TooManyDisks if the total with local disks and config drive exceeds the limit."""
        if order.volumes:
            self.able()
        bus = order.image.properties.get("hw_disk_bus", "") if order.image else ""
        limits = [most for most in (self._most_disks, MOST_ON.get(bus, -1)) if most >= 0]
        count = len(order.disks) + len(order.volumes) + order.config_drive
        if limits and count > min(limits):
            raise errors.guest.TooManyDisks(uuid=order.server_uuid, count=count, most=min(limits))

    def connect(self, order: BuildOrder) -> None:
        """Connect all volumes that the order names; connected ones stay. Raises HostRefused; a volume that failed is
        not connected."""
        if order.volumes:
            self.able().connect(order.server_uuid, order.volumes)

    def drop_others(self, order: BuildOrder) -> None:
        """Disconnect volumes that the order no longer names. The guest is gone, and about to be redefined."""
        self.disconnect(order.server_uuid, frozenset(one.device.volume_id for one in order.volumes))

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        """Disconnect the guest's volumes, except those in ``keep``. Safe if there are none."""
        if self._driver.volumes is not None:
            self._driver.volumes.disconnect(server_uuid, keep)

    def running(self) -> set[str]:
        """Return the running guests, if this host has volumes."""
        if self._driver.volumes is None:
            return set()
        return {guest.server_uuid for guest in self._driver.guests() if guest.power_state in UP}

    def given_up(self, server_uuid: str) -> frozenset[str]:
        """Return the volumes that the guest released late (see :class:`nova.virt.interface.Volumes`)."""
        return self._driver.volumes.given_up(server_uuid) if self._driver.volumes is not None else frozenset()


class VolumeOrders:
    """Handlers of the orders about one volume of a guest. Each raises host.NoVolumes; host.OrderNotGranted,
    host.OrderStopped if a newer order has the server; host.OrderCannotAsk if no conductor answers."""

    def __init__(self, volumes: GuestVolumes, orders: Orders, conductor: ConductorHostRPC,
                 before_detach: Callable[[str, str], None] = lambda _server_uuid, _volume_id: None) -> None:
        """Set up the handlers. ``before_detach`` is called with a guest's UUID and the volume that will be detached."""
        self._volumes, self._orders, self._conductor = volumes, orders, conductor
        self._before_detach = before_detach
        self._watched: set[str] = set()  # guests that kept a volume, and may release it any time
        self._looked = False  # at the guests of the process before this one

    def attach(self, order: VolumeOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Attach a volume; after a failure, it is detached and disconnected again. Raises HostRefused,
        guest.TooManyDisks."""
        self._volumes.check(order.build)
        return self._granted(order, work, permission).attach_volume(order)

    def detach(self, order: VolumeOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Detach a volume. Raises Conflict if the guest did not release the volume in time and still has it."""
        volumes = self._granted(order, work, permission)
        self._before_detach(order.server_uuid, order.disk.device.volume_id)
        with failures.on_failure(lambda: self._watched.add(order.server_uuid), on=errors.Conflict):
            return volumes.detach_volume(order, lambda: work.stopped_error() is not None)

    def extend(self, order: VolumeOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Extend a volume. Raises HostRefused; the guest then sees the old size."""
        return self._granted(order, work, permission).extend_volume(order)

    def swap(self, order: VolumeOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Swap a volume for another. Raises HostRefused, Conflict; the guest then has its old volume."""
        return self._granted(order, work, permission).swap_volume(order, lambda: work.stopped_error() is not None)

    def unswap(self, order: VolumeOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Stop the swap of a volume. Raises guest.HasSuccessor."""
        return self._granted(order, work, permission).unswap_volume(order)

    def snapshot(self, order: VolumeSnapshotOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Snapshot a volume. Raises HostRefused, Conflict; the guest then writes to its old file."""
        return self._granted(order, work, permission).snapshot_volume(order)

    def merge(self, order: VolumeSnapshotOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Merge a volume snapshot. Raises HostRefused, Conflict; the file is then still in use."""
        volumes = self._granted(order, work, permission)
        return volumes.merge_volume_snapshot(order, lambda: work.stopped_error() is not None)

    def tell_of_given_up(self) -> int:
        """Report volumes that guests released after their detach failed, so that the conductor completes the detach.
        The first call checks all guests, as a guest may have released a volume before this process began. Return how
        many guests are still watched; a guest that is off has the volumes of its definition."""
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
        with failures.best_effort(LOG, "could not complete the detach of a volume that the guest released late: %s",
                extra={"server": server_uuid}):
            if gone := self._given_up(server_uuid):
                self._conductor.volumes_given_up(self._volumes.host, server_uuid, tuple(sorted(gone)))

    def _granted(self, order: VolumeOrder | VolumeSnapshotOrder, work: Work, permission: BatchPermission) -> Volumes:
        volumes = self._volumes.able()
        permission.pass_(order.server_uuid)
        work.check()
        return volumes
