"""What is asked of a server's volumes: refused at once, or begun (:mod:`nova.conductor.actions.volumes`)."""

from __future__ import annotations

import contextlib
import time
import uuid as uuids
from collections.abc import Callable
from string import ascii_lowercase

import msgspec

from nova import concurrency, context, errors
from nova.conductor.actions.volumes import VolumeOperation
from nova.conductor.engine import volume_cleanups, waiting
from nova.conductor.engine.begin import begin, locked, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.waiting import LONGEST_PAUSE_S, LOOK_S
from nova.conductor.steps import volume_keys
from nova.conductor.steps.guests import disks_of
from nova.conductor.steps.volumes import DOUBT_S
from nova.db import operations, servers, services, states, volumes
from nova.db.engine import Connection
from nova.db.server_row import ServerRow
from nova.db.volumes import ATTACHMENT, DETACHING, RESERVATION, Cleanup
from nova.model.servers import ServerQuery
from nova.model.states import VmState
from nova.model.volumes import (
    AVAILABLE,
    IN_USE,
    AttachVolume,
    BlockDevice,
    NewAssistedSnapshot,
    OldAssistedSnapshot,
    Volume,
)

ATTACH, DETACH = "attach_volume", "detach_volume"
EVENT_WAIT_S = 5.0  # for other operations on the server, by whom nobody waits for
IN_TURN = (ATTACH, DETACH, "extend_volume", "attach_interface", "detach_interface")  # one of them at a time
WAIT_S = 50.0  # at most; and no longer than the caller does (by its rpc_response_timeout)


class VolumeActions:
    """The calls of ServerVolumeCalls. ``wait_s``: how long a caller may wait at most."""

    def __init__(self, deps: Deps, wait_s: float = WAIT_S) -> None:
        self.deps, self._wait_s = deps, wait_s

    def list_server_volumes(self, query: ServerQuery) -> tuple[BlockDevice, ...]:
        """server.NotFound outside the scope."""
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
        return tuple(row.volumes or ())

    def attach_volume(self, server_uuid: str, wanted: AttachVolume, wait: bool) -> BlockDevice:
        """volume.NotFound, NotAvailable, AlreadyAttached, NeedsMultiattach, NotOnOffloaded, TooMany, Busy, Encrypted;
        server.WrongState."""
        end = time.monotonic() + min(self._wait_s, context.patience().left_s)
        row = row_of(self.deps, server_uuid)
        volume = self.deps.volumes.get(wanted.volume_id, as_user=True)
        _check(row, volume, wanted)
        device = BlockDevice(
            id=str(uuids.uuid4()), source_id=volume.id, volume_id=volume.id, size_gb=volume.size_gb, tag=wanted.tag,
            delete_on_termination=wanted.delete_on_termination, multiattach=volume.multiattach,
            encrypted=volume.encrypted, device_name=next_name(row) if row.host else None)
        secrets = volume_keys.of_user(self.deps, [device])
        entry = self._reserved(device, server_uuid, end)
        self.deps.runner.start([entry], secrets=secrets)
        if wait:
            waiting.succeeded(self.deps, entry, end, self._wait_s)
        return device

    def _reserved(self, device: BlockDevice, uuid: str, end: float) -> states.Entry:
        """The volume is the server's, at the volume service and in the record, and the operation has begun; or none of
        it. A conductor that dies in between leaves a row that gives the reservation back."""
        doubt = Cleanup(RESERVATION, device.volume_id, uuid)
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [doubt], DOUBT_S))
        made = self.deps.volumes.reserve(device.volume_id, uuid, as_user=True)
        device = msgspec.structs.replace(device, attachment_id=made.id)

        def write(tx: Connection) -> states.Entry:
            row = locked(tx, uuid)
            if any(one.volume_id == device.volume_id for one in row.volumes or ()):
                raise errors.volume.AlreadyAttached(volume=device.volume_id)
            volumes.hold(tx, uuid, device)
            servers.update(tx, uuid, {"volumes": (*(row.volumes or ()), device)})
            volumes.drop_cleanups(tx, [doubt])
            return begin(self.deps, tx, ATTACH, uuid, VolumeOperation(device_id=device.id))
        try:
            return self._in_turn(uuid, write, end)
        except errors.NovaError:
            volume_cleanups.pay(self.deps, [Cleanup(ATTACHMENT, made.id, uuid)])
            raise

    def detach_volume(self, server_uuid: str, volume_id: str) -> None:
        """volume.NotAttached, IsRoot, HostDown, Busy, Refused; server.WrongState."""
        end = time.monotonic() + min(self._wait_s, context.patience().left_s)
        device = _device(row_of(self.deps, server_uuid), volume_id)
        self._check_host(server_uuid)
        doubt = Cleanup(DETACHING, volume_id, server_uuid)
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [doubt], DOUBT_S))
        self.deps.volumes.begin_detaching(volume_id, as_user=True)

        def write(tx: Connection) -> states.Entry:
            _device(locked(tx, server_uuid), volume_id)
            return begin(self.deps, tx, DETACH, server_uuid, VolumeOperation(device_id=device.id))
        try:
            entry = self._in_turn(server_uuid, write, end)
        except errors.NovaError:
            with contextlib.suppress(errors.NovaError):  # then it is done later
                volume_cleanups.keep_in_use(self.deps, volume_id)
            raise
        self.deps.runner.start([entry])

    def _check_host(self, server_uuid: str) -> None:
        with self.deps.cell.reading() as tx:
            host = servers.rows_of(tx, [server_uuid])[server_uuid].host
            if host and not services.host_up(tx, host, self.deps.settings.service_down_time):
                raise errors.volume.HostDown(server=server_uuid)

    def keep_volume(self, server_uuid: str, volume_id: str, delete_on_termination: bool) -> None:
        """volume.NotAttached; Busy: an operation works on the server."""
        def write(tx: Connection) -> None:
            row = locked(tx, server_uuid)
            if operations.any_open(tx, server_uuid):
                raise errors.volume.Busy(server=server_uuid)
            found = _device(row, volume_id, root=True)
            changed = msgspec.structs.replace(found, delete_on_termination=delete_on_termination)
            servers.update(tx, server_uuid, {"volumes": tuple(
                changed if one.id == found.id else one for one in row.volumes or ())})
        self.deps.cell.transact(write)

    def swap_volume(self, server_uuid: str, volume_id: str, new_volume_id: str) -> None:
        """volume.SwapNotAsked: only the volume service may have volumes swapped, and only while it migrates one."""
        _device(row_of(self.deps, server_uuid), volume_id, root=True)
        old = self.deps.volumes.get(volume_id, as_user=True)
        if old.migration_status in (None, "", "none", "success", "error"):
            raise errors.volume.SwapNotAsked(volume=volume_id)
        raise errors.volume.SwapNotSupported(volume=volume_id)

    def create_assisted_snapshot(self, wanted: NewAssistedSnapshot) -> None:
        """volume.NotAssisted: the volume service waits for no snapshot that nobody makes."""
        raise errors.volume.NotAssisted(volume=wanted.volume_id)

    def delete_assisted_snapshot(self, gone: OldAssistedSnapshot) -> None:
        """volume.NotAssisted."""
        raise errors.volume.NotAssisted(volume=gone.volume_id)

    def volume_extended(self, server_uuid: str, volume_id: str) -> None:
        """The volume service has made a volume larger. server.WrongState, volume.NotAttached, volume.Busy."""
        def write(tx: Connection) -> states.Entry:
            device = _device(locked(tx, server_uuid), volume_id, root=True)
            return begin(self.deps, tx, "extend_volume", server_uuid, VolumeOperation(device_id=device.id))
        self.deps.runner.start([self._in_turn(server_uuid, write, time.monotonic() + EVENT_WAIT_S)])

    # -- within

    def _in_turn(self, uuid: str, write: Callable[[Connection], states.Entry], end: float) -> states.Entry:
        """One operation on a server's devices at a time, in the order in which they come in the end."""
        def attempt(tx: Connection) -> states.Entry | None:
            locked(tx, uuid)
            return None if operations.under_way(tx, uuid, IN_TURN) else write(tx)
        pause = LOOK_S
        while (entry := self.deps.cell.transact(attempt)) is None:
            if time.monotonic() + pause > end:
                raise errors.volume.Busy(server=uuid)
            concurrency.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        return entry


def _check(row: ServerRow, volume: Volume, wanted: AttachVolume) -> None:
    if any(one.volume_id == volume.id for one in row.volumes or ()):
        raise errors.volume.AlreadyAttached(volume=volume.id)
    if volume.multiattach and not wanted.multiattach:
        raise errors.volume.NeedsMultiattach(volume=volume.id)
    if volume.status != AVAILABLE and not (volume.multiattach and volume.status == IN_USE):
        raise errors.volume.NotAvailable(volume=volume.id, status=volume.status)
    if row.vm_state == VmState.SHELVED_OFFLOADED.value and (wanted.tag or volume.multiattach):
        raise errors.volume.NotOnOffloaded(volume=volume.id)


def _device(row: ServerRow, volume_id: str, root: bool = False) -> BlockDevice:
    """volume.NotAttached; IsRoot, unless ``root``."""
    found = next((one for one in row.volumes or () if one.volume_id == volume_id and one.attachment_id), None)
    if found is None:
        raise errors.volume.NotAttached(server=row.uuid, volume=volume_id)
    if found.boot_index == 0 and not root:
        raise errors.volume.IsRoot(volume=volume_id)
    return found


def next_name(row: ServerRow) -> str:
    """The first name that no disk of the guest has, behind those of its local disks."""
    prefix = (row.root_device_name or "/dev/vda")[:-1]
    taken = {one.device_name for one in row.volumes or ()}
    names = [prefix + letter for letter in ascii_lowercase[len(disks_of(row)):]]
    return next((name for name in names if name not in taken), names[-1])
