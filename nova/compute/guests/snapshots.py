"""Snapshots: a guest's root disk kept as a file of the host, sent to the image service, dropped."""

from __future__ import annotations

import contextlib
import logging
from typing import BinaryIO

from nova import concurrency, errors
from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.model.guest.orders import Outcome, SnapshotOrder
from nova.model.image.rbd_locations import RbdLocation
from nova.model.server.states import PowerState
from nova.virt.interface import Snapshots

LOG = logging.getLogger(__name__)


class Stoppable:
    """A file that is read no further when a newer order wants the guest: an upload may take hours."""

    def __init__(self, file: BinaryIO, work: Work) -> None:
        self._file, self._work = file, work
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """host.OrderStopped when a newer order wants the guest."""
        self._work.check()
        return self._file.read(size)


class SnapshotsOfGuests:
    def __init__(self, tools: BuildTools) -> None:
        self._tools, self._driver = tools, tools.driver

    def take(self, order: SnapshotOrder, work: Work, gate: BatchGate) -> Outcome:
        """Nothing of it stays when it fails, or when a newer order wants the guest."""
        snapshots = self._able()
        work.check()
        try:
            with concurrency.while_wanted(work.check):
                snapshot = snapshots.take_snapshot(order)
            work.check()
        except Exception:
            with contextlib.suppress(Exception):  # the first error is the one to tell; a destroy clears up, too
                snapshots.drop_snapshot(order.server_uuid, order.image_id)
            raise
        return Outcome(server_uuid=order.server_uuid, snapshot=snapshot, power_state=self._state(order.server_uuid))

    def upload(self, order: SnapshotOrder, work: Work, gate: BatchGate) -> PowerState:
        """The file stays until the image has the data, so that a failure can be tried again."""
        snapshots = self._able()
        if self._tools.store is None:
            raise errors.host.NoImageService(host=self._tools.host)
        direct = self._driver.direct_snapshots
        path = snapshots.snapshot_path(order.server_uuid, order.image_id)
        location = direct.location(order.image_id) if direct is not None and path is None else None
        if path is None and location is None:
            self._find_uploaded(order)
            return self._state(order.server_uuid)
        gate.pass_(order.server_uuid)  # whoever took the image away has overtaken this
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
        """Whether the image service takes the snapshot as it lies in Ceph. False: it refuses, and has nothing of it.
        Unavailable: nobody knows."""
        assert self._tools.store is not None
        try:
            self._tools.store.offer(order.image_id, location)
        except errors.Unavailable:
            raise
        except errors.NovaError as error:
            LOG.warning("snapshot %s is uploaded, and not taken by the image service in Ceph: %s", order.image_id,
                        error.message, extra={"server": order.server_uuid})
            return False
        LOG.info("the image service has image %s at %s", order.image_id, location.url,
                 extra={"server": order.server_uuid})
        return True

    def drop(self, order: SnapshotOrder, work: Work, gate: BatchGate) -> PowerState:
        snapshots = self._able()
        snapshots.drop_snapshot(order.server_uuid, order.image_id, order.given)
        return self._state(order.server_uuid)

    def _find_uploaded(self, order: SnapshotOrder) -> None:
        """The answer of an upload may have been lost: then the image is whole, and the file is gone."""
        assert self._tools.store is not None
        if self._tools.store.show(order.image_id).status != "active":
            raise errors.server.SnapshotNotFound(uuid=order.server_uuid, image_id=order.image_id, host=self._tools.host)

    def _able(self) -> Snapshots:
        return able(self._driver.snapshots, self._tools.host, "take snapshots of guests")

    def _state(self, server_uuid: str) -> PowerState:
        """A guest that is not defined is off."""
        state = self._driver.lifecycle.power_state(server_uuid)
        return PowerState.SHUTDOWN if state is None else state
