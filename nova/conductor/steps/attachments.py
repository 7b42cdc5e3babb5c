"""Comparison of a server's recorded attachments with the volume service's, for a guest that is being recreated."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.conductor import volume_cleanups
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.steps.volumes import RETRY_S, VolumeStep, connect, devices
from nova.db import volumes
from nova.db.sql.engine import Connection
from nova.db.volumes import ATTACHMENT, RESERVATION, Cleanup
from nova.model.volumes import ATTACHED, BlockDevice, VolumeAttachment

LOG = logging.getLogger(__name__)


class Compared(NamedTuple):
    """Differences of attachments. ``lost``: devices whose attachment the volume service does not list; ``unknown``:
    attachments that are not recorded and not being created; ``unfinished``: devices whose attachment was created but
    not completed."""

    lost: tuple[BlockDevice, ...]
    unknown: tuple[VolumeAttachment, ...]
    unfinished: tuple[BlockDevice, ...] = ()


def compare(found: Sequence[VolumeAttachment], recorded: Sequence[BlockDevice], cleanups: Sequence[Cleanup]
            ) -> Compared:
    """Return the differences. ``recorded`` and ``cleanups`` must be read after ``found``.

    A new attachment has a cleanup row before it is created, and keeps it until it is recorded.
    """
    listed = {one.id: one for one in found}
    known = {id for one in recorded for id in (one.attachment_id, one.next_attachment_id)}
    made_now = {one.what for one in cleanups if one.kind == RESERVATION}
    going = {one.what for one in cleanups if one.kind == ATTACHMENT}
    return Compared(tuple(one for one in recorded if one.attachment_id and one.attachment_id not in listed),
                    tuple(one for one in found if one.id not in known | going and one.volume_id not in made_now),
                    tuple(one for one in recorded if one.attachment_id in listed
                          and listed[one.attachment_id].status != ATTACHED))


def compared(deps: Deps, server_uuid: str) -> Compared:
    """Return the current differences of a server. Raises the errors of the volume client."""
    found = deps.volumes.list_attachments(server_uuid)
    with deps.cell.reading() as tx:
        recorded = volumes.devices_of(tx, [server_uuid]).get(server_uuid, ())
        return compare(found, recorded, volumes.of_server(tx, server_uuid))


class CheckAttachments(VolumeStep):
    """Reconcile the server's attachments with the volume service, so that the guest gets volumes that both list.

    A volume that the volume service no longer attaches to the server is not given to the guest. The boot volume is an
    exception: the guest cannot run without it, so its start fails. Unrecorded attachments are deleted. An attach that
    this operation has overtaken is finished. If the volume service does not answer, nothing is compared, and the guest
    starts anyway.
    """

    uses = ("cell", "compute", "volumes")
    ignores_errors = True

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """Add no cleanups, because this step creates no attachments."""
        return {}

    def act(self, deps: Deps, op: Op) -> None:
        found = compared(deps, op.uuid)
        gone = [one for one in found.lost if one.boot_index != 0 and self._is_gone(deps, one)]
        for device in gone:
            LOG.warning("volume %s is no longer attached at the volume service; removed it from the server",
                        device.volume_id, extra={"server": op.uuid})
        for one in found.unknown:
            LOG.warning("deleting attachment %s of volume %s: it is not in the server's record", one.id, one.volume_id,
                        extra={"server": op.uuid})
        cleanups = [Cleanup(ATTACHMENT, one.id, op.uuid) for one in found.unknown]

        def write(tx: Connection) -> None:
            volumes.release(tx, op.uuid, [one.volume_id for one in gone])
            volumes.add_cleanups(tx, cleanups, RETRY_S)
        if gone or cleanups:
            deps.cell.transact(write)
        if gone:
            lost = {one.id for one in gone}
            op.write(volumes=tuple(one for one in devices(op) if one.id not in lost))
        volume_cleanups.run_cleanups(deps, cleanups)
        for device in found.unfinished:
            connect(deps, op, device)

    @staticmethod
    def _is_gone(deps: Deps, device: BlockDevice) -> bool:
        """True if the attachment does not exist: a list may be incomplete, a lookup by id is not."""
        with contextlib.suppress(errors.NotFound):
            deps.volumes.get_attachment(device.attachment_id)
            return False
        return True


__all__ = ["CheckAttachments", "Compared", "compare", "compared"]
