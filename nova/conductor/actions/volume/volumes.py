"""Workflows that attach, detach and extend a server's volume."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nova import errors
from nova.conductor import volume_cleanups
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result, VolumeOperation
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.guests import ORDERS, build_order, fence, results_of
from nova.conductor.steps.volumes import RETRY_S, VolumeStep, connection_of, connector_of, devices, learn
from nova.db import volumes
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.volumes import ATTACHMENT, DETACHING, Cleanup
from nova.model.guest.orders import Outcome, VolumeOrder
from nova.model.volumes import ATTACHED, BlockDevice, VolumeDisk


def about(device: BlockDevice) -> VolumeOperation:
    """Return the arguments of an operation on this device."""
    return VolumeOperation(device_id=device.id, volume_id=device.volume_id)


def device_of(op: Op) -> BlockDevice | None:
    """Return the operation's device, or None if the server no longer has it."""
    wanted = op.asked(VolumeOperation).device_id
    return next((one for one in devices(op) if one.id == wanted), None)


class ConnectVolume(Step):
    """Connect the server's host to the volume. Undo: remove the volume from the server and free it."""

    uses = ("cell", "compute", "volumes")

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._connect(deps, op) for op in ops]

    def _connect(self, deps: Deps, op: Op) -> Result:
        device = device_of(op)
        if device is None or not op.server.host:
            return {}
        try:
            if not (op.asked(VolumeOperation).resumed and self._is_complete(deps, op, device)):
                connector = connector_of(deps, op.server.host)
                learn(op, deps.volumes.connect(device.attachment_id, connector, device.device_name))
        except errors.NovaError as error:
            return error
        return {}

    @staticmethod
    def _is_complete(deps: Deps, op: Op, device: BlockDevice) -> bool:
        """True if the attachment is complete, so that it need not be connected again. Raises the errors of the volume
        client."""
        found = deps.volumes.get_attachment(device.attachment_id)
        learn(op, found)
        return found.status == ATTACHED

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return forget(tx, ops)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            volume_cleanups.run_server_cleanups(deps, op.uuid)


def forget(tx: Connection, ops: Sequence[Op]) -> Mapping[str, object]:
    """Remove the device from the server's row, and add a cleanup of its attachment."""
    left = {}
    for op in ops:
        device = device_of(op)
        if device is None:
            continue
        volumes.add_cleanups(tx, [Cleanup(ATTACHMENT, device.attachment_id, op.uuid)], RETRY_S)
        volumes.release(tx, op.uuid, [device.volume_id])
        left[op.uuid] = tuple(one for one in devices(op) if one.id != device.id)
        op.see(volumes=left[op.uuid])
    return {"volumes": PerServer(left)} if left else {}


Call = Callable[[str, tuple[VolumeOrder, ...]], tuple[Outcome, ...]]


class VolumeOrderStep(Step):
    """A step that sends an order about the operation's volume to the guest's host."""

    uses = ORDERS

    def plug(self, deps: Deps, op: Op, plugged: bool) -> Result:
        """Order the host to attach the volume to the guest or to detach it."""
        return self.send(deps, op, deps.compute.attach_volumes if plugged else deps.compute.detach_volumes, plugged)

    def send(self, deps: Deps, op: Op, call: Call, plugged: bool = True) -> Result:
        """Send the order to the server's host; a server without a host has nothing to do."""
        host, device = op.server.host, device_of(op)
        if not host or device is None:
            return {}
        build = build_order(deps, op.server, op, fence(op))
        if not plugged:
            build = msgspec.structs.replace(build, volumes=tuple(one for one in build.volumes
                                                                 if one.device.id != device.id))
        try:
            connection = connection_of(deps, op, device, device.attachment_id) if plugged else None
            order = VolumeOrder(server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build,
                                disk=VolumeDisk(device=device, connection=connection))
            [result] = results_of([op], call(host, (self.order(deps, op, order),)))
        except errors.Unavailable as error:
            return error
        return result if isinstance(result, errors.NovaError) else {**result, "host": host}

    def order(self, deps: Deps, op: Op, order: VolumeOrder) -> VolumeOrder:
        """Return the order with the step's own additions. Raises the errors of the volume client."""
        return order


class PlugVolume(VolumeOrderStep):
    """Attach the volume to the guest. Undo: detach it; the operation waits for a host that does not answer.

    The volume must not go to another server while the guest may write to it.
    """

    event = "compute_attach_volume"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self.plug(deps, op, plugged=True) for op in ops]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            result = self.plug(deps, op, plugged=False)
            if isinstance(result, errors.NovaError) and not isinstance(result, errors.NotFound | errors.NotSupported):
                raise result


class CompleteAttachment(VolumeStep):
    """Set the volume to in use at the volume service."""

    def act(self, deps: Deps, op: Op) -> None:
        device = device_of(op)
        if device is not None:
            deps.volumes.complete(device.attachment_id)


class UnplugVolume(VolumeOrderStep):
    """Detach the volume from the guest: the point of no return. Undo: set the volume to in use."""

    event = "compute_detach_volume"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._unplug(deps, op) for op in ops]

    def _unplug(self, deps: Deps, op: Op) -> Result:
        result = self.plug(deps, op, plugged=False)
        return result if isinstance(result, errors.NovaError) else {**result, "committed": True}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            if (device := device_of(op)) is not None:
                volumes.add_cleanups(tx, [Cleanup(DETACHING, device.volume_id, op.uuid)], RETRY_S)
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if (device := device_of(op)) is not None:
                with contextlib.suppress(errors.NovaError):  # the cleanup retries it later
                    volume_cleanups.keep_in_use(deps, device.volume_id)


class ForgetVolume(Step):
    """Remove the volume from the server and free it."""

    uses = ("cell", "volumes")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return forget(tx, ops)

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            volume_cleanups.run_server_cleanups(deps, op.uuid)
        return [{} for _ in ops]


class ExtendVolume(VolumeOrderStep):
    """Update the record, the host and the guest to the volume's current size."""

    event = "compute_extend_volume"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._extend(deps, op) for op in ops]

    def _extend(self, deps: Deps, op: Op) -> Result:
        device = device_of(op)
        if device is None:
            return {}
        try:
            size_gb = deps.volumes.get(device.volume_id).size_gb
            grown = msgspec.structs.replace(device, size_gb=size_gb)
            op.write(volumes=tuple(grown if one.id == device.id else one for one in devices(op)))
            return self.send(deps, op, deps.compute.extend_volumes)
        except errors.NovaError as error:
            return error


ATTACH_VOLUME = Workflow(
    "attach_volume",
    ConnectVolume(),        # allow its host to use it; undo: release it
    PlugVolume(),           # give it to the guest, now or at its next start; undo: detach
    CompleteAttachment(),   # set it to in use at the volume service
    asks=VolumeOperation,
)

EXTEND_VOLUME = Workflow("extend_volume", ExtendVolume(), asks=VolumeOperation)

DETACH_VOLUME = Workflow(
    "detach_volume",
    UnplugVolume(),         # remove it from the guest; undo: set to in use
    ForgetVolume(),         # remove its attachment
    asks=VolumeOperation,
)
