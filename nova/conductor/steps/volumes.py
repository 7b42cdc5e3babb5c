"""Steps for a server's volumes: create, reserve, connect to a host, move between hosts, release.

A volume is never free while its server exists: a new attachment is created before a host's attachment is deleted. Calls
of the volume service that can no longer fail the operation are rows of ``volume_cleanups``, written in the transaction
that makes them due (:mod:`nova.conductor.volume_cleanups`). The step only tries to make them immediately.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from nova import concurrency, errors, failures
from nova.conductor import volume_cleanups
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps import volume_keys
from nova.conductor.steps.placement import cell_of_taken, taken
from nova.db import volumes
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection, DatabaseUnavailable
from nova.db.volumes import ATTACHMENT, COMPLETE, RESERVATION, VOLUME, Cleanup
from nova.model.guest.orders import BuildOrder
from nova.model.volumes import (
    AVAILABLE,
    CREATING,
    DOWNLOADING,
    BlockDevice,
    Connector,
    VolumeAttachment,
    VolumeConnection,
    VolumeDisk,
)

LOG = logging.getLogger(__name__)

LOOK_S, AT_ONCE_S = 1.0, 10.0  # poll interval of a new volume; how long a step waits for it
MADE_WITHIN_S = 3600.0  # by the operation's age: a volume that is still not available then counts as failed
DOUBT_S = 600  # after which an unrecorded attachment is deleted
RETRY_S = 30  # after which other processes repeat a call that a step did not make


def devices(op: Op) -> tuple[BlockDevice, ...]:
    """Return the server's devices, in the guest's order."""
    return op.server.volumes or ()


def connected(deps: Deps, op: Op, order: BuildOrder, coming: bool = False) -> BuildOrder:
    """Return the order with the connections of the volumes, which are not stored.

    A connection that this operation has not read yet is read from the volume service. ``coming``: the host is the
    destination of a move. Raises the errors of the volume client.
    """
    found = []
    for device in devices(op):
        attachment = (coming and device.next_attachment_id) or device.attachment_id
        found.append(VolumeDisk(device=device, connection=connection_of(deps, op, device, attachment)))
    return msgspec.structs.replace(order, volumes=tuple(found))


def connection_of(deps: Deps, op: Op, device: BlockDevice, attachment_id: str) -> VolumeConnection | None:
    """Return the connection of the attachment's host to its volume, with all data that it needs; None if no host has
    requested one. Raises volume.Encrypted, and the errors of the volume client."""
    kept: VolumeConnection | None = op.secrets.get(attachment_id)
    found = kept or (deps.volumes.get_attachment(attachment_id).connection if attachment_id else None)
    return found and volume_keys.whole(deps, op, device, found)


def connector_of(deps: Deps, host: str) -> Connector:
    """Return the connector that the host reports, with the host name that nova knows, so that it cannot pose as another
    host."""
    return {**deps.compute.volume_connector(host), "host": host}


def learn(op: Op, attachment: VolumeAttachment) -> None:
    """Keep a connection for the rest of the operation, only in memory."""
    op.secrets = {**op.secrets, attachment.id: attachment.connection}


def connect(deps: Deps, op: Op, device: BlockDevice) -> None:
    """Connect the server's own host to the volume, and set it to in use. Raises the errors of the volume client, and of
    the host when its connector is requested."""
    if op.server.host:
        learn(op, deps.volumes.connect(device.attachment_id, connector_of(deps, op.server.host), device.device_name))
        deps.volumes.complete(device.attachment_id)


def reservation_cleanups(op: Op, only: Callable[[BlockDevice], bool] = lambda one: True) -> list[Cleanup]:
    """Return cleanups for the attachments that a step is about to create, in case it never learns of them."""
    return [Cleanup(RESERVATION, one.volume_id, op.uuid) for one in devices(op) if one.volume_id and only(one)]


class VolumeStep(Step):
    """A step about volumes. A server without volumes skips it."""

    uses: ClassVar[tuple[str, ...]] = ("cell", "compute", "volumes")

    def applies(self, op: Op) -> bool:
        """False for a server without volumes."""
        return bool(op.server.volumes) and super().applies(op)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            volumes.add_cleanups(tx, reservation_cleanups(op), DOUBT_S)
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._guarded(deps, op) for op in ops]

    def _guarded(self, deps: Deps, op: Op) -> Result:
        try:
            self.act(deps, op)
        except (DatabaseUnavailable, errors.daemon.WorkflowNotYet):
            raise
        except errors.NovaError as error:
            return error
        return {}

    def act(self, deps: Deps, op: Op) -> None:
        """Run the step for one server."""


def each(deps: Deps, op: Op, change: Callable[[BlockDevice], BlockDevice]) -> None:
    """Change the server's devices one by one; after a failure the earlier changes are still written."""
    done = list(devices(op))
    for index, device in enumerate(done):
        with failures.on_failure(lambda: op.write(volumes=tuple(done)), on=errors.NovaError):
            done[index] = change(device)
    op.write(volumes=tuple(done))


class AwaitVolumes(VolumeStep):
    """Wait for the volumes that are created for the server, and reserve them. Undo: release all of its volumes and
    delete the new ones."""

    def act(self, deps: Deps, op: Op) -> None:
        def reserved(device: BlockDevice) -> BlockDevice:
            if device.attachment_id:
                return device
            self._await(deps, op, device)
            return msgspec.structs.replace(device, attachment_id=deps.volumes.reserve(device.volume_id, op.uuid).id)
        each(deps, op, reserved)

    @staticmethod
    def _await(deps: Deps, op: Op, device: BlockDevice) -> None:
        """Wait for the volume. Raises daemon.WorkflowNotYet if it is still being created, and volume.NotMade if that
        failed."""
        waited = 0.0
        while (status := deps.volumes.get(device.volume_id).status) != AVAILABLE:
            if status not in (CREATING, DOWNLOADING) or op.age_s > MADE_WITHIN_S:
                raise errors.volume.NotMade(volume=device.volume_id, status=status)
            if waited >= AT_ONCE_S:
                raise errors.daemon.WorkflowNotYet(what=f"volume {device.volume_id}, which is {status}")
            concurrency.sleep(LOOK_S)
            waited += LOOK_S

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return give_back(tx, ops, lambda _op, device: device.made)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            volume_cleanups.run_server_cleanups(deps, op.uuid)


class ConnectVolumes(VolumeStep):
    """Connect the host that was taken to the volumes, and set them to in use. Undo: disconnect it, but keep them
    reserved for the server."""

    def act(self, deps: Deps, op: Op) -> None:
        host = taken(op).host
        connector = connector_of(deps, host)
        for device in devices(op):
            learn(op, deps.volumes.connect(device.attachment_id, connector, device.device_name))
            deps.volumes.complete(device.attachment_id)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.progress.host:
                replace_reservations(deps, op)


def replace_reservations(deps: Deps, op: Op, only: Callable[[BlockDevice], bool] = lambda one: True) -> None:
    """Replace each attachment (of ``only`` these) by a reservation, which is created before the attachment is deleted.
    A host may still use the attachment."""
    old = [one.attachment_id for one in devices(op) if one.attachment_id and only(one)]

    def reserved(device: BlockDevice) -> BlockDevice:
        if device.attachment_id not in old:
            return device
        return msgspec.structs.replace(device, attachment_id=deps.volumes.reserve(device.volume_id, op.uuid).id)
    each(deps, op, reserved)
    done = [Cleanup(ATTACHMENT, one, op.uuid) for one in old]
    deps.cell.transact(lambda tx: volumes.add_cleanups(tx, done, RETRY_S))
    volume_cleanups.run_cleanups(deps, done)


class ReserveVolumes(VolumeStep):
    """Disconnect the volumes but keep them reserved, after the guest is removed from its host (or will be later)."""

    ignores_errors = True

    def act(self, deps: Deps, op: Op) -> None:
        replace_reservations(deps, op)


class ConnectAtDestination(VolumeStep):
    """Connect the destination of a move to the volumes, in addition to the source. Undo: disconnect it."""

    uses = (*VolumeStep.uses, "cells")

    def act(self, deps: Deps, op: Op) -> None:
        connect_next(deps, op, connector_of(cell_of_taken(deps, op), taken(op).host))

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        left = {}
        for op in ops:
            volumes.add_cleanups(tx, [Cleanup(ATTACHMENT, one.next_attachment_id, op.uuid) for one in devices(op)
                                      if one.next_attachment_id], RETRY_S)
            left[op.uuid] = tuple(msgspec.structs.replace(one, next_attachment_id="") for one in devices(op))
            op.see(volumes=left[op.uuid])
        return {"volumes": PerServer(left)}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            volume_cleanups.run_server_cleanups(deps, op.uuid)


def connect_next(deps: Deps, op: Op, connector: Connector) -> None:
    """Create an additional attachment of each volume, for the connector's host."""
    def coming(device: BlockDevice) -> BlockDevice:
        if device.next_attachment_id:
            return device
        made = deps.volumes.attach(device.volume_id, op.uuid, connector, device.device_name)
        learn(op, made)
        return msgspec.structs.replace(device, next_attachment_id=made.id)
    each(deps, op, coming)


class MoveVolumes(VolumeStep):
    """Make the destination's attachments the server's, and delete the source's, after the server has arrived. This
    cannot be undone; calls that the volume service does not answer now are repeated later."""

    ignores_errors = True

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        arrived = {}
        for op in ops:
            moved = [one for one in devices(op) if one.next_attachment_id]
            volumes.add_cleanups(tx, [*(Cleanup(COMPLETE, one.next_attachment_id, op.uuid) for one in moved),
                                      *(Cleanup(ATTACHMENT, one.attachment_id, op.uuid) for one in moved
                                        if one.attachment_id)], RETRY_S)
            arrived[op.uuid] = tuple(msgspec.structs.replace(
                one, attachment_id=one.next_attachment_id or one.attachment_id, next_attachment_id="")
                for one in devices(op))
            op.see(volumes=arrived[op.uuid])
        return {"volumes": PerServer(arrived)}

    def act(self, deps: Deps, op: Op) -> None:
        volume_cleanups.run_server_cleanups(deps, op.uuid)


class DropVolumes(VolumeStep):
    """Remove all volumes from a deleted server: delete its attachments, volumes that are deleted with it, and snapshots
    of incomplete images. This cannot be undone."""

    uses = (*VolumeStep.uses, "images")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return give_back(tx, ops, lambda op, device: device.delete_on_termination or (
            device.made and op.server.launched_at is None))  # created for a server that never ran

    def act(self, deps: Deps, op: Op) -> None:
        volume_cleanups.run_server_cleanups(deps, op.uuid, (*volume_cleanups.AT_ONCE, volumes.IMAGE_SNAPSHOTS))


def give_back(tx: Connection, ops: Sequence[Op], goes: Callable[[Op, BlockDevice], bool]) -> Mapping[str, object]:
    """Remove all volumes from the servers; a volume that ``goes`` is deleted after its attachments."""
    for op in ops:
        found = devices(op)
        attachments = [one for device in found for one in (device.attachment_id, device.next_attachment_id) if one]
        gone = [device.volume_id for device in found if goes(op, device) and device.volume_id]
        volumes.add_cleanups(tx, [*(Cleanup(ATTACHMENT, one, op.uuid) for one in attachments),
                                  *(Cleanup(VOLUME, one, op.uuid) for one in gone)], RETRY_S)
        volumes.release(tx, op.uuid, [device.volume_id for device in found])
        op.see(volumes=())
    return {"volumes": ()}


__all__ = ["AwaitVolumes", "ConnectAtDestination", "ConnectVolumes", "DropVolumes", "MoveVolumes", "ReserveVolumes",
           "connect", "connect_next", "connected", "connection_of", "connector_of", "devices", "give_back",
           "replace_reservations"]
