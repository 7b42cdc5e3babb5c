"""Requests about a server's volumes: checked, and started as operations
(:mod:`nova.conductor.actions.volume.volumes`)."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid as uuids
from collections.abc import Callable
from string import ascii_lowercase

import msgspec

from nova import context, errors, failures
from nova.conductor import volume_cleanups
from nova.conductor.actions.volume.volume_snapshots import AssistedSnapshots
from nova.conductor.actions.volume.volume_swaps import VolumeSwaps
from nova.conductor.actions.volume.volume_turns import attached_device, check_host, in_turn
from nova.conductor.actions.volume.volumes import about
from nova.conductor.engine import operation_wait
from nova.conductor.engine.begin import begin, locked, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.steps import volume_keys
from nova.conductor.steps.guests import disks_of
from nova.conductor.steps.volumes import DOUBT_S
from nova.db import volumes
from nova.db.operation import operations
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.volumes import ATTACHMENT, DETACHING, RESERVATION, Cleanup
from nova.model.base import HostName
from nova.model.server.servers import ServerQuery
from nova.model.server.states import VmState
from nova.model.volumes import (
    AVAILABLE,
    IN_USE,
    AttachVolume,
    BlockDevice,
    Volume,
)

LOG = logging.getLogger(__name__)

ATTACH, DETACH = "attach_volume", "detach_volume"
EVENT_WAIT_S = 5.0  # for other operations on the server, in an event without a waiting caller
Turn = Callable[[Callable[[Connection], states.Entry]], states.Entry]  # decides when an operation starts

WAIT_S = 50.0  # upper limit; the caller's rpc_response_timeout also limits it


class VolumeActions(VolumeSwaps, AssistedSnapshots):
    """The calls of ServerVolumeCalls. ``wait_s``: the longest time that a caller waits."""

    def __init__(self, deps: Deps, wait_s: float = WAIT_S) -> None:
        super().__init__(deps)
        self._wait_s = wait_s

    def list_server_volumes(self, query: ServerQuery) -> tuple[BlockDevice, ...]:
        """Return the server's volumes. Raises server.NotFound outside the scope."""
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
        return tuple(row.volumes or ())

    def attach_volume(self, server_uuid: str, wanted: AttachVolume, wait: bool) -> BlockDevice:
        """Start to attach a volume.

        Raises volume.NotFound, NotAvailable, AlreadyAttached, NeedsMultiattach, NotOnOffloaded, TooMany, Busy,
        Encrypted; server.WrongState.
        """
        end = time.monotonic() + min(self._wait_s, context.deadline().left_s)
        row = row_of(self.deps, server_uuid)
        volume = self.deps.volumes.get(wanted.volume_id, as_user=True)
        _check(row, volume, wanted)
        self._check_zone(row, volume)
        device = BlockDevice(
            id=str(uuids.uuid4()), source_id=volume.id, volume_id=volume.id, size_gb=volume.size_gb, tag=wanted.tag,
            delete_on_termination=wanted.delete_on_termination, multiattach=volume.multiattach,
            encrypted=volume.encrypted)
        secrets = volume_keys.of_user(self.deps, [device])
        entry, device = self._reserved(device, server_uuid, end)
        self.deps.runner.start([entry], secrets=secrets)
        if wait:
            operation_wait.wait_for_success(self.deps, entry, end, self._wait_s)
        return device

    def _reserved(self, device: BlockDevice, uuid: str, end: float) -> tuple[states.Entry, BlockDevice]:
        """Reserve the volume, add it to the server's row and start the operation, or do none of it.

        The device gets the first free name. If a conductor dies in between, a cleanup row releases the reservation.
        """
        doubt = Cleanup(RESERVATION, device.volume_id, uuid)
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [doubt], DOUBT_S))
        made = self.deps.volumes.reserve(device.volume_id, uuid, as_user=True)
        device = msgspec.structs.replace(device, attachment_id=made.id)

        def write(tx: Connection) -> states.Entry:
            nonlocal device
            row = locked(tx, uuid)
            if any(one.volume_id == device.volume_id for one in row.volumes or ()):
                raise errors.volume.AlreadyAttached(volume=device.volume_id)
            device = msgspec.structs.replace(device, device_name=next_device_name(row))
            volumes.hold(tx, uuid, device)
            servers.update(tx, uuid, {"volumes": (*(row.volumes or ()), device)})
            volumes.drop_cleanups(tx, [doubt])
            return begin(self.deps, tx, ATTACH, uuid, about(device))
        left = [Cleanup(ATTACHMENT, made.id, uuid)]
        with failures.on_failure(lambda: volume_cleanups.run_cleanups(self.deps, left), on=errors.NovaError):
            return in_turn(self.deps, uuid, write, end), device

    def detach_volume(self, server_uuid: str, volume_id: str) -> None:
        """Start to detach a volume. Raises volume.NotAttached, IsRoot, HostDown, Busy, Refused; server.WrongState."""
        end = time.monotonic() + min(self._wait_s, context.deadline().left_s)
        device = attached_device(row_of(self.deps, server_uuid), volume_id)
        check_host(self.deps, server_uuid)
        self._detach(server_uuid, device, lambda write: in_turn(self.deps, server_uuid, write, end), as_user=True)

    def detach_given_up(self, host: HostName, server_uuid: str, volume_ids: tuple[str, ...]) -> None:
        """Finish the detach of volumes that a guest of this host released after their detach had failed.

        Ignored are volumes of other hosts' servers and servers with a running operation: the host reports them again.
        Raises the errors of the volume client.
        """
        def at_once(write: Callable[[Connection], states.Entry]) -> states.Entry:
            def attempt(tx: Connection) -> states.Entry:
                if locked(tx, server_uuid).host != host or operations.any_open(tx, server_uuid):
                    raise errors.volume.Busy(server=server_uuid)
                return write(tx)
            return self.deps.cell.transact(attempt)
        for volume_id in volume_ids:
            with contextlib.suppress(errors.NotFound, errors.volume.Busy, errors.WrongState):
                row = row_of(self.deps, server_uuid)
                if row.host == host:
                    LOG.info("guest released volume %s after its detach had failed; finishing the detach", volume_id,
                             extra={"server": server_uuid})
                    self._detach(server_uuid, attached_device(row, volume_id), at_once, as_user=False)

    def _detach(self, server_uuid: str, device: BlockDevice, turn: Turn, as_user: bool) -> None:
        volume_id = device.volume_id
        doubt = Cleanup(DETACHING, volume_id, server_uuid)
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [doubt], DOUBT_S))
        self.deps.volumes.begin_detaching(volume_id, as_user=as_user)

        def write(tx: Connection) -> states.Entry:
            attached_device(locked(tx, server_uuid), volume_id)
            return begin(self.deps, tx, DETACH, server_uuid, about(device))

        def undo() -> None:
            with contextlib.suppress(errors.NovaError):  # the cleanup retries it later
                volume_cleanups.keep_in_use(self.deps, volume_id)
        with failures.on_failure(undo, on=errors.NovaError):
            entry = turn(write)
        self.deps.runner.start([entry])

    def _check_zone(self, row: ServerRow, volume: Volume) -> None:
        """Check that the volume is in the server's zone; for a shelved server this is its pinned zone, if any."""
        zone = row.availability_zone or row.pinned_availability_zone
        if not self.deps.settings.cross_az_attach and zone not in (None, volume.availability_zone):
            raise errors.volume.OtherZone(volume=volume.id, zone=volume.availability_zone, server_zone=zone)

    def keep_volume(self, server_uuid: str, volume_id: str, delete_on_termination: bool) -> None:
        """Set whether the volume is deleted with the server. Raises volume.NotAttached; Busy if an operation runs on
        the server."""
        def write(tx: Connection) -> None:
            row = locked(tx, server_uuid)
            if operations.any_open(tx, server_uuid):
                raise errors.volume.Busy(server=server_uuid)
            found = attached_device(row, volume_id, root=True)
            changed = msgspec.structs.replace(found, delete_on_termination=delete_on_termination)
            servers.update(tx, server_uuid, {"volumes": tuple(
                changed if one.id == found.id else one for one in row.volumes or ())})
        self.deps.cell.transact(write)

    def volume_extended(self, server_uuid: str, volume_id: str) -> None:
        """Start to extend a volume that the volume service has made larger. Raises server.WrongState,
        volume.NotAttached, volume.Busy."""
        def write(tx: Connection) -> states.Entry:
            device = attached_device(locked(tx, server_uuid), volume_id, root=True)
            return begin(self.deps, tx, "extend_volume", server_uuid, about(device))
        self.deps.runner.start([in_turn(self.deps, server_uuid, write, time.monotonic() + EVENT_WAIT_S)])


def _check(row: ServerRow, volume: Volume, wanted: AttachVolume) -> None:
    if any(one.volume_id == volume.id for one in row.volumes or ()):
        raise errors.volume.AlreadyAttached(volume=volume.id)
    if volume.multiattach and not wanted.multiattach:
        raise errors.volume.NeedsMultiattach(volume=volume.id)
    if volume.status != AVAILABLE and not (volume.multiattach and volume.status == IN_USE):
        raise errors.volume.NotAvailable(volume=volume.id, status=volume.status)
    if row.vm_state == VmState.SHELVED_OFFLOADED.value and (wanted.tag or volume.multiattach):
        raise errors.volume.NotOnOffloaded(volume=volume.id)


def next_device_name(row: ServerRow) -> str:
    """Return the next free device name (vdb, vdc, ...): the first after the local disks that no disk of it has."""
    prefix = (row.root_device_name or "/dev/vda")[:-1]
    taken = {one.device_name for one in row.volumes or ()}
    names = [prefix + letter for letter in ascii_lowercase[len(disks_of(row)):]]
    return next((name for name in names if name not in taken), names[-1])
