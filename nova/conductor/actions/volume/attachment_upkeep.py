"""Attachment maintenance for operators: compare attachments with the volume service's, and replace an attachment."""

from __future__ import annotations

import functools
import random

import msgspec

from nova import errors, failures
from nova.conductor import volume_cleanups
from nova.conductor.engine.begin import locked, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.steps.attachments import compared
from nova.conductor.steps.volumes import DOUBT_S, RETRY_S, connector_of
from nova.db import volumes
from nova.db.operation import operations
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.volumes import ATTACHMENT, RESERVATION, Cleanup
from nova.model.server.states import VmState
from nova.model.volumes import (
    LOST_AT_CINDER,
    UNKNOWN_HERE,
    AttachmentDifference,
    BlockDevice,
    ComparedAttachments,
    Connector,
)


class AttachmentUpkeep:
    """The attachment maintenance calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def host_connector(self, host: str) -> Connector:
        """Return the host's connector. Raises host.NotSupported or Unavailable, as the host reports."""
        return connector_of(self.deps, host)

    def compare_attachments(self, limit: int) -> ComparedAttachments:
        """Compare attachments, with one call of the volume service for each server. Servers with a running operation
        are skipped. Raises the errors of the volume client."""
        with self.deps.cell.reading() as tx:
            found, whole = volumes.servers_with_volumes(tx, limit, random.random())
        differences: list[AttachmentDifference] = []
        for uuid in found:
            with self.deps.cell.reading() as tx:
                busy = operations.any_open(tx, uuid)
            if not busy:
                differences += self._differences(uuid)
        return ComparedAttachments(servers=len(found), whole=whole, differences=tuple(differences))

    def _differences(self, uuid: str) -> list[AttachmentDifference]:
        both = compared(self.deps, uuid)
        make = functools.partial(AttachmentDifference, server_uuid=uuid)
        return [*(make(volume_id=one.volume_id, attachment_id=one.attachment_id, kind=LOST_AT_CINDER)
                  for one in both.lost),
                *(make(volume_id=one.volume_id, attachment_id=one.id, kind=UNKNOWN_HERE) for one in both.unknown)]

    def refresh_attachment(self, server_uuid: str, volume_id: str, connector: Connector | None) -> BlockDevice:
        """Replace an attachment: the new one is created before the old one is removed; a failure keeps the old one.

        Raises server.NotFound; volume.NotAttached, RefreshNotOff; errors of the volume client, and of the host when its
        connector is requested.
        """
        row = row_of(self.deps, server_uuid)
        old, host = _device(row, volume_id), str(row.host)
        wanted = {**connector, "host": host} if connector else connector_of(self.deps, host)
        doubt = Cleanup(RESERVATION, volume_id, server_uuid)
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [doubt], DOUBT_S))
        made = self.deps.volumes.attach(volume_id, server_uuid, wanted, old.device_name)
        new = msgspec.structs.replace(old, attachment_id=made.id)

        def write(tx: Connection) -> None:
            now = locked(tx, server_uuid)
            if _device(now, volume_id, tx).attachment_id != old.attachment_id:
                raise errors.volume.Busy(server=server_uuid)
            servers.update(tx, server_uuid, {"volumes": tuple(new if one.id == old.id else one
                                                              for one in now.volumes or ())})
            volumes.add_cleanups(tx, [Cleanup(ATTACHMENT, old.attachment_id, server_uuid)], RETRY_S)
        left = [Cleanup(ATTACHMENT, made.id, server_uuid)]
        with failures.on_failure(lambda: volume_cleanups.run_cleanups(self.deps, left), on=errors.NovaError):
            self.deps.volumes.complete(made.id)
            self.deps.cell.transact(write)
        volume_cleanups.run_server_cleanups(self.deps, server_uuid)
        return new


def _device(row: ServerRow, volume_id: str, tx: Connection | None = None) -> BlockDevice:
    """Return the server's device of a volume. Raises volume.NotAttached; RefreshNotOff if the guest may use the volume
    or an operation runs on the server."""
    found = next((one for one in row.volumes or () if one.volume_id == volume_id and one.attachment_id), None)
    if found is None:
        raise errors.volume.NotAttached(server=row.uuid, volume=volume_id)
    busy = row.task_state is not None or (tx is not None and operations.any_open(tx, row.uuid))
    if row.vm_state != VmState.STOPPED.value or row.host is None or busy:
        state = f"{row.vm_state}, {row.task_state}" if row.task_state else row.vm_state
        raise errors.volume.RefreshNotOff(server=row.uuid, state=state)
    return found


__all__ = ["AttachmentUpkeep"]
