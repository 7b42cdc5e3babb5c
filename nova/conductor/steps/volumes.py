"""A server's volumes on its way through hosts: made, reserved for it, connected to a host, moved with it, given back.

A volume is never free while its server lives: before a host's attachment is given back, there is another one. What is
to be said to the volume service, and cannot fail the operation any more, is a row of ``volume_cleanups`` in the very
transaction that makes it due (:mod:`nova.conductor.volume_cleanups`); the step only tries to do it at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from nova import concurrency, errors
from nova.conductor import volume_cleanups
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps import volume_keys
from nova.conductor.steps.placement import taken
from nova.db import volumes
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection, DatabaseAway
from nova.db.sql.types import AnyColumn
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

LOOK_S, AT_ONCE_S = 1.0, 10.0  # between two looks at a volume that is being made; how long a step waits for it at once
MADE_WITHIN_S = 3600.0  # of the operation's age: a volume that is not there by then will never be
DOUBT_S = 600  # after which an attachment that no record has is nobody's
RETRY_S = 30  # after which others do what a step was to do at once


def devices(op: Op) -> tuple[BlockDevice, ...]:
    """The server's, in the guest's order."""
    return op.server.volumes or ()


def connected(deps: Deps, op: Op, order: BuildOrder, coming: bool = False) -> BuildOrder:
    """The order with how its host reaches the volumes, which nobody keeps: what a step of this operation has not just
    learnt, the volume service is asked for. ``coming``: the host is where a move goes to. Errors of the client."""
    found = []
    for device in devices(op):
        attachment = (coming and device.next_attachment_id) or device.attachment_id
        found.append(VolumeDisk(device=device, connection=connection_of(deps, op, device, attachment)))
    return msgspec.structs.replace(order, volumes=tuple(found))


def connection_of(deps: Deps, op: Op, device: BlockDevice, attachment_id: str) -> VolumeConnection | None:
    """How the attachment's host reaches its volume, with all that it needs for that; None: no host has asked for it.
    volume.Encrypted, errors of the client."""
    kept: VolumeConnection | None = op.secrets.get(attachment_id)
    found = kept or (deps.volumes.get_attachment(attachment_id).connection if attachment_id else None)
    return found and volume_keys.whole(deps, op, device, found)


def connector_of(deps: Deps, host: str) -> Connector:
    """What the host says of itself to a back end; but its name is ours to say, or it could take another's place."""
    return {**deps.compute.volume_connector(host), "host": host}


def learn(op: Op, attachment: VolumeAttachment) -> None:
    """Keep a connection for the rest of the operation, in memory alone."""
    op.secrets = {**op.secrets, attachment.id: attachment.connection}


def connect(deps: Deps, op: Op, device: BlockDevice) -> None:
    """The server's own host may use the volume, and the volume service says that it is in use. Errors of the client,
    and of the host that is asked for its connector."""
    if op.server.host:
        learn(op, deps.volumes.connect(device.attachment_id, connector_of(deps, op.server.host), device.device_name))
        deps.volumes.complete(device.attachment_id)


def reserve_again(op: Op, only: Callable[[BlockDevice], bool] = lambda one: True) -> list[Cleanup]:
    """What takes care of attachments that a step is about to make, should it never learn of them."""
    return [Cleanup(RESERVATION, one.volume_id, op.uuid) for one in devices(op) if one.volume_id and only(one)]


class VolumeStep(Step):
    """Steps about volumes. A server without any costs nothing."""

    uses: ClassVar[tuple[str, ...]] = ("cell", "compute", "volumes")

    def applies(self, op: Op) -> bool:
        """Not for a server without volumes."""
        return bool(op.server.volumes) and super().applies(op)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        for op in ops:
            volumes.add_cleanups(tx, reserve_again(op), DOUBT_S)
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._guarded(deps, op) for op in ops]

    def _guarded(self, deps: Deps, op: Op) -> Result:
        try:
            self.act(deps, op)
        except (DatabaseAway, errors.daemon.WorkflowNotYet):
            raise
        except errors.NovaError as error:
            return error
        return {}

    def act(self, deps: Deps, op: Op) -> None:
        """``do`` of one server."""


def each(deps: Deps, op: Op, change: Callable[[BlockDevice], BlockDevice]) -> None:
    """Change the server's devices one by one; what was done before one that fails is written all the same."""
    done = list(devices(op))
    for index, device in enumerate(done):
        try:
            done[index] = change(device)
        except errors.NovaError:
            op.write(volumes=tuple(done))
            raise
    op.write(volumes=tuple(done))


class AwaitVolumes(VolumeStep):
    """Volumes that are made for the server are there, and reserved for it. Undo: none is the server's, and those that
    were made for it go."""

    def act(self, deps: Deps, op: Op) -> None:
        def reserved(device: BlockDevice) -> BlockDevice:
            if device.attachment_id:
                return device
            self._await(deps, op, device)
            return msgspec.structs.replace(device, attachment_id=deps.volumes.reserve(device.volume_id, op.uuid).id)
        each(deps, op, reserved)

    @staticmethod
    def _await(deps: Deps, op: Op, device: BlockDevice) -> None:
        """daemon.WorkflowNotYet: it is still being made; volume.NotMade."""
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
            volume_cleanups.pay_for(deps, op.uuid)


class ConnectVolumes(VolumeStep):
    """The host that was taken may use the volumes, and the volume service says that they are in use. Undo: they are
    reserved for the server, and no host's."""

    def act(self, deps: Deps, op: Op) -> None:
        host = taken(op).host
        connector = connector_of(deps, host)
        for device in devices(op):
            learn(op, deps.volumes.connect(device.attachment_id, connector, device.device_name))
            deps.volumes.complete(device.attachment_id)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.progress.host:
                reserve_anew(deps, op)


def reserve_anew(deps: Deps, op: Op, only: Callable[[BlockDevice], bool] = lambda one: True) -> None:
    """A reservation in place of each attachment (of ``only`` these), which a host may still use: made before that is
    given back."""
    old = [one.attachment_id for one in devices(op) if one.attachment_id and only(one)]

    def reserved(device: BlockDevice) -> BlockDevice:
        if device.attachment_id not in old:
            return device
        return msgspec.structs.replace(device, attachment_id=deps.volumes.reserve(device.volume_id, op.uuid).id)
    each(deps, op, reserved)
    done = [Cleanup(ATTACHMENT, one, op.uuid) for one in old]
    deps.cell.transact(lambda tx: volumes.add_cleanups(tx, done, RETRY_S))
    volume_cleanups.pay(deps, done)


class ReserveVolumes(VolumeStep):
    """The guest is gone from its host (or that host does it later): its volumes are reserved, and no host's."""

    lenient = True

    def act(self, deps: Deps, op: Op) -> None:
        reserve_anew(deps, op)


class ConnectAtDestination(VolumeStep):
    """The destination of a move may use the volumes beside the source. Undo: it may not."""

    def act(self, deps: Deps, op: Op) -> None:
        connect_next(deps, op, taken(op).host)

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
            volume_cleanups.pay_for(deps, op.uuid)


def connect_next(deps: Deps, op: Op, host: str) -> None:
    """An attachment more of each volume, of this host."""
    connector = connector_of(deps, host)

    def coming(device: BlockDevice) -> BlockDevice:
        if device.next_attachment_id:
            return device
        made = deps.volumes.attach(device.volume_id, op.uuid, connector, device.device_name)
        learn(op, made)
        return msgspec.structs.replace(device, next_attachment_id=made.id)
    each(deps, op, coming)


class MoveVolumes(VolumeStep):
    """The server has arrived: the destination's attachments are the server's, and the source's go. There is no way
    back from it, and what the volume service does not do now it does later."""

    lenient = True

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
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
        volume_cleanups.pay_for(deps, op.uuid)


class DropVolumes(VolumeStep):
    """The server has none any more, and no way back: attachments go, and so do volumes that were to go with it, and
    snapshots for an image that never got whole."""

    uses = (*VolumeStep.uses, "images")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        return give_back(tx, ops, lambda op, device: device.delete_on_termination or (
            device.made and op.server.launched_at is None))  # made for a server that nobody ever used

    def act(self, deps: Deps, op: Op) -> None:
        volume_cleanups.pay_for(deps, op.uuid, (*volume_cleanups.AT_ONCE, volumes.IMAGE_SNAPSHOTS))


def give_back(tx: Connection, ops: Sequence[Op], goes: Callable[[Op, BlockDevice], bool]) -> Mapping[str, AnyColumn]:
    """No volume is the server's any more; one that ``goes`` is deleted after its attachments."""
    for op in ops:
        found = devices(op)
        attachments = [one for device in found for one in (device.attachment_id, device.next_attachment_id) if one]
        gone = [device.volume_id for device in found if goes(op, device) and device.volume_id]
        volumes.add_cleanups(tx, [*(Cleanup(ATTACHMENT, one, op.uuid) for one in attachments),
                                  *(Cleanup(VOLUME, one, op.uuid) for one in gone)], RETRY_S)
        volumes.let_go(tx, op.uuid, [device.volume_id for device in found])
        op.see(volumes=())
    return {"volumes": ()}


__all__ = ["AwaitVolumes", "ConnectAtDestination", "ConnectVolumes", "DropVolumes", "MoveVolumes", "ReserveVolumes",
           "connect", "connect_next", "connected", "connection_of", "connector_of", "devices", "give_back",
           "reserve_anew"]
