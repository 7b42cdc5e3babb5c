"""Snapshots: a guest's root disk kept as a file of the host, uploaded to the image service, or dropped."""

from __future__ import annotations

import logging
from typing import BinaryIO

from nova import concurrency, errors, failures
from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import Outcome, SnapshotOrder
from nova.model.image.rbd_locations import RbdLocation
from nova.model.server.states import PowerState
from nova.virt.interface import Snapshots

LOG = logging.getLogger(__name__)


class Stoppable:
    """A file whose reading stops when a newer order has the guest: an upload may take hours."""

    def __init__(self, file: BinaryIO, work: Work) -> None:
        self._file, self._work = file, work
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """Read from the file. Raises host.OrderStopped if a newer order has the guest."""
        self._work.check()
        return self._file.read(size)


class SnapshotsOfGuests:
    def __init__(self, tools: BuildTools) -> None:
        self._tools, self._driver = tools, tools.driver

    def take(self, order: SnapshotOrder, work: Work, permission: BatchPermission) -> Outcome:
        """Take a snapshot. Nothing of it remains after a failure, or if a newer order has the guest."""
        snapshots = self._able()
        work.check()
        # a destroy cleans up, too
        with failures.on_failure(lambda: snapshots.drop_snapshot(order.server_uuid, order.image_id), quiet=True):
            with concurrency.cancellable(work.check):
                snapshot = snapshots.take_snapshot(order)
            work.check()
        return Outcome(server_uuid=order.server_uuid, snapshot=snapshot, power_state=self._state(order.server_uuid))

    def upload(self, order: SnapshotOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Upload the snapshot. The file stays until the image has the data, so that a failed upload can be retried."""
        snapshots = self._able()
        if self._tools.store is None:
            raise errors.host.NoImageService(host=self._tools.host)
        direct = self._driver.direct_snapshots
        path = snapshots.snapshot_path(order.server_uuid, order.image_id)
        location = direct.location(order.image_id) if direct is not None and path is None else None
        if path is None and location is None:
            self._find_uploaded(order)
            return self._state(order.server_uuid)
        permission.pass_(order.server_uuid)  # an order that took the image away supersedes this one
        work.check()
        if direct is not None and location is not None:
            if self._taken(order, location):
                return self._state(order.server_uuid)
            path = direct.bring(order.server_uuid, order.image_id)
            work.check()
        assert path is not None
        with open(path, "rb") as file:
            sent = self._tools.store.upload(order.image_id, Stoppable(file, work))
        LOG.info("sent %d bytes of a snapshot as image %s", sent, order.image_id, extra={"server": order.server_uuid})
        snapshots.drop_snapshot(order.server_uuid, order.image_id, True)
        return self._state(order.server_uuid)

    def _taken(self, order: SnapshotOrder, location: RbdLocation) -> bool:
        """Return whether the image service accepts the snapshot at its Ceph location. False: it refused, and has none
        of it. Raises Unavailable if the result is unknown."""
        assert self._tools.store is not None
        try:
            self._tools.store.offer(order.image_id, location)
        except errors.Unavailable:
            raise
        except errors.NovaError as error:
            LOG.warning("the image service did not accept snapshot %s in Ceph; uploading it: %s", order.image_id,
                        error.message, extra={"server": order.server_uuid})
            return False
        LOG.info("the image service has registered image %s at %s", order.image_id, location.url,
                 extra={"server": order.server_uuid})
        return True

    def drop(self, order: SnapshotOrder, work: Work, permission: BatchPermission) -> PowerState:
        snapshots = self._able()
        snapshots.drop_snapshot(order.server_uuid, order.image_id, order.given)
        return self._state(order.server_uuid)

    def _find_uploaded(self, order: SnapshotOrder) -> None:
        """Check that the image is already complete: the answer of an earlier upload may have been lost, and the file is
        then gone."""
        assert self._tools.store is not None
        if self._tools.store.show(order.image_id).status != "active":
            raise errors.server.SnapshotNotFound(uuid=order.server_uuid, image_id=order.image_id, host=self._tools.host)

    def _able(self) -> Snapshots:
        return able(self._driver.snapshots, self._tools.host, "take snapshots of guests")

    def _state(self, server_uuid: str) -> PowerState:
        """Return the guest's power state; a guest that is not defined is off."""
        state = self._driver.lifecycle.power_state(server_uuid)
        return PowerState.SHUTDOWN if state is None else state
