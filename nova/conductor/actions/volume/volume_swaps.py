"""Volume swaps: nova copies a volume to another while the guest runs, at the volume service's request.

For the server it stays the same volume. Its data are copied to a new volume that the volume service has created.
Finally that service exchanges the ids of both volumes, so that nova's record and the guest's disk keep their id.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.conductor import volume_cleanups
from nova.conductor.actions.volume.volume_turns import attached_device, check_host, in_turn
from nova.conductor.actions.volume.volumes import VolumeOrderStep, device_of
from nova.conductor.engine.begin import begin, locked, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result, VolumeOperation
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.volumes import DOUBT_S, RETRY_S, connection_of, connector_of, devices, learn
from nova.db import volumes
from nova.db.server import states
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.volumes import ATTACHMENT, COMPLETE, DETACHING, NOT_REPLACED, REPLACED, RESERVATION, Cleanup
from nova.model.guest.orders import VolumeOrder
from nova.model.volumes import AVAILABLE, BlockDevice, Volume, VolumeAttachment, VolumeDisk

NOT_MOVED = (None, "", "none", "success", "error")  # migration_status of a volume that is not being migrated
WAIT_S = 5.0  # for other operations on the server's devices


class SwapOperation(VolumeOperation):
    """Arguments of a swap. ``old_volume_id``: the device's, which stays its id; ``attachment_id``: to the new volume,
    for this server."""

    old_volume_id: str = ""
    new_volume_id: str = ""
    attachment_id: str = ""


class VolumeSwaps:
    """The swap call of ServerVolumeCalls.

    The volume service calls it with its own account, which may not see the project's volumes. Its access check is
    sufficient, so nova's credentials are used for all of it.
    """

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def swap_volume(self, server_uuid: str, volume_id: str, new_volume_id: str) -> None:
        """Start to swap a volume.

        Raises volume.NotAttached; for the old volume NotFound; for the new one Refused, CannotReplace; SwapNotAsked,
        because only the volume service may swap volumes, and only while it migrates one; HostDown, Busy;
        server.WrongState.
        """
        device = attached_device(row_of(self.deps, server_uuid), volume_id, root=True)
        old = self.deps.volumes.get(volume_id)
        _check(old, self._new(old, new_volume_id))
        check_host(self.deps, server_uuid)
        doubts = [Cleanup(DETACHING, volume_id, server_uuid), Cleanup(RESERVATION, new_volume_id, server_uuid),
                  Cleanup(NOT_REPLACED, new_volume_id, server_uuid)]
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, doubts, DOUBT_S))
        self.deps.runner.start([self._begun(server_uuid, device, new_volume_id, doubts)])

    def _begun(self, uuid: str, device: BlockDevice, new_id: str, doubts: Sequence[Cleanup]) -> states.Entry:
        """Start to detach the old volume, reserve the new one and start the operation, or do none of it."""
        made: list[VolumeAttachment] = []

        def write(tx: Connection) -> states.Entry:
            attached_device(locked(tx, uuid), device.volume_id, root=True)
            return begin(self.deps, tx, "swap_volume", uuid, SwapOperation(
                device_id=device.id, volume_id=device.volume_id, old_volume_id=device.volume_id, new_volume_id=new_id,
                attachment_id=made[0].id))

        def undo() -> None:
            volume_cleanups.run_cleanups(self.deps, [Cleanup(ATTACHMENT, one.id, uuid) for one in made])
            with contextlib.suppress(errors.NovaError):  # the cleanup retries it later
                volume_cleanups.keep_in_use(self.deps, device.volume_id)
                # the error response reports the failure to the volume service
                self.deps.cell.transact(lambda tx: volumes.drop_cleanups(tx, doubts))
        with failures.on_failure(undo, on=errors.NovaError):
            self.deps.volumes.begin_detaching(device.volume_id)
            made.append(self.deps.volumes.reserve(new_id, uuid))
            return in_turn(self.deps, uuid, write, time.monotonic() + WAIT_S)

    def _new(self, old: Volume, new_volume_id: str) -> Volume:
        with failures.replaced(errors.NotFound,
                lambda _: errors.volume.CannotReplace(old=old.id, new=new_volume_id, reason="it does not exist")):
            return self.deps.volumes.get(new_volume_id)


def _check(old: Volume, new: Volume) -> None:
    if old.migration_status in NOT_MOVED:
        raise errors.volume.SwapNotAsked(volume=old.id)
    reasons = {
        f"its status is {new.status}": new.status != AVAILABLE,
        f"its size is {new.size_gb} GB, not {old.size_gb} GB; a disk is only copied to a volume of its own size":
            new.size_gb != old.size_gb,
        "the old volume is attached to more than one server": len(old.attachments) > 1,
        "encrypted volumes cannot be copied": old.encrypted or new.encrypted}
    for reason, applies in reasons.items():
        if applies:
            raise errors.volume.CannotReplace(old=old.id, new=new.id, reason=reason)


def _swap(op: Op) -> SwapOperation:
    return op.asked(SwapOperation)


class ConnectSuccessor(Step):
    """Connect the server's host to the new volume too. Undo: release it, set the old one to in use, and report to the
    volume service that the migration failed."""

    uses = ("cell", "compute", "volumes")

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._connect(deps, op) for op in ops]

    @staticmethod
    def _connect(deps: Deps, op: Op) -> Result:
        device, host = device_of(op), op.server.host
        if device is None or not host:
            return {}
        try:
            connector = connector_of(deps, host)
            learn(op, deps.volumes.connect(_swap(op).attachment_id, connector, device.device_name))
        except errors.NovaError as error:
            return error
        return {}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            swap = _swap(op)
            volumes.add_cleanups(tx, [Cleanup(ATTACHMENT, swap.attachment_id, op.uuid),
                                      Cleanup(DETACHING, swap.old_volume_id, op.uuid),
                                      Cleanup(NOT_REPLACED, swap.new_volume_id, op.uuid)], RETRY_S)
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            volume_cleanups.run_server_cleanups(deps, op.uuid)
            swap = _swap(op)
            with contextlib.suppress(errors.NovaError):  # the cleanup retries it later
                volume_cleanups.keep_in_use(deps, swap.old_volume_id)
                volume_cleanups.end_migration(deps, swap.new_volume_id, failed=True)


class CopyVolume(VolumeOrderStep):
    """Copy the guest's disk to the new volume: the point of no return. After an error the host is asked which volume
    the guest uses.

    The operation waits for a host that does not answer, because neither volume may be taken from the guest.
    """

    event = "compute_swap_volume"
    repeats_on_bug = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._copy(deps, op) for op in ops]

    def _copy(self, deps: Deps, op: Op) -> Result:
        device = device_of(op)
        if device is None:
            return errors.volume.NotAttached(server=op.uuid, volume=_swap(op).old_volume_id)
        result = self._sure(self.send(deps, op, deps.compute.swap_volumes))
        if isinstance(result, errors.Overtaken):
            return result
        if isinstance(result, errors.NovaError):
            kept = self._sure(self.send(deps, op, deps.compute.unswap_volumes))
            if getattr(kept, "code", "") != errors.guest.HasSuccessor.code:
                return kept if isinstance(kept, errors.Overtaken) else result
            result = {}
        return {**result, "committed": True}

    def order(self, deps: Deps, op: Op, order: VolumeOrder) -> VolumeOrder:
        """Return the order with the new volume."""
        swap = _swap(op)
        device = msgspec.structs.replace(order.disk.device, volume_id=swap.new_volume_id)
        successor = VolumeDisk(device=device, connection=connection_of(deps, op, device, swap.attachment_id))
        return msgspec.structs.replace(order, successor=successor)

    @staticmethod
    def _sure(result: Result) -> Result:
        """Return the result. Raises daemon.WorkflowNotYet if it is unknown what the host has done."""
        if isinstance(result, errors.Unavailable):
            raise errors.daemon.WorkflowNotYet(what=f"the guest's host, which copies a volume ({result.message})")
        return result


class KeepSuccessor(Step):
    """Record the new attachment, remove the old one, and let the volume service exchange the volumes' ids. Failed calls
    are retried later."""

    uses = ("cell", "volumes")
    ignores_errors = True

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        kept = {}
        for op in ops:
            swap, device = _swap(op), device_of(op)
            if device is None:
                continue
            volumes.drop_cleanups(tx, [Cleanup(NOT_REPLACED, swap.new_volume_id, op.uuid)])
            done = [Cleanup(COMPLETE, swap.attachment_id, op.uuid), Cleanup(REPLACED, swap.new_volume_id, op.uuid)]
            if device.attachment_id != swap.attachment_id:
                done.append(Cleanup(ATTACHMENT, device.attachment_id, op.uuid))
            volumes.add_cleanups(tx, done, RETRY_S)
            now = msgspec.structs.replace(device, attachment_id=swap.attachment_id)
            kept[op.uuid] = tuple(now if one.id == device.id else one for one in devices(op))
            op.see(volumes=kept[op.uuid])
        return {"volumes": PerServer(kept)} if kept else {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            volume_cleanups.run_server_cleanups(deps, op.uuid)
        return [{} for _ in ops]


SWAP_VOLUME = Workflow(
    "swap_volume",
    ConnectSuccessor(),     # allow its host to use the new volume; undo: release it
    CopyVolume(),           # copy the guest's disk to it
    KeepSuccessor(),        # remove the old attachment, exchange the volumes' ids
    asks=SwapOperation,
)
