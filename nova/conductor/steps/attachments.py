"""What the volume service and a server's record say of its attachments, compared where the guest is made anew."""

from __future__ import annotations

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
from nova.db.sql.types import AnyColumn
from nova.db.volumes import ATTACHMENT, RESERVATION, Cleanup
from nova.model.volumes import ATTACHED, BlockDevice, VolumeAttachment

LOG = logging.getLogger(__name__)


class Compared(NamedTuple):
    """``lost``: devices whose attachment the volume service does not list; ``unknown``: attachments that no record
    has, and nobody is making; ``unfinished``: devices whose attachment was made, and no more."""

    lost: tuple[BlockDevice, ...]
    unknown: tuple[VolumeAttachment, ...]
    unfinished: tuple[BlockDevice, ...] = ()


def compare(found: Sequence[VolumeAttachment], recorded: Sequence[BlockDevice], cleanups: Sequence[Cleanup]
            ) -> Compared:
    """``recorded`` and ``cleanups`` must be read after ``found``: an attachment that comes meanwhile has left a row
    before it was made, which stands until the record has it."""
    listed = {one.id: one for one in found}
    known = {id for one in recorded for id in (one.attachment_id, one.next_attachment_id)}
    made_now = {one.what for one in cleanups if one.kind == RESERVATION}
    going = {one.what for one in cleanups if one.kind == ATTACHMENT}
    return Compared(tuple(one for one in recorded if one.attachment_id and one.attachment_id not in listed),
                    tuple(one for one in found if one.id not in known | going and one.volume_id not in made_now),
                    tuple(one for one in recorded if one.attachment_id in listed
                          and listed[one.attachment_id].status != ATTACHED))


def compared(deps: Deps, server_uuid: str) -> Compared:
    """Of a server, as they are now. Errors of the client."""
    found = deps.volumes.list_attachments(server_uuid)
    with deps.cell.reading() as tx:
        recorded = volumes.devices_of(tx, [server_uuid]).get(server_uuid, ())
        return compare(found, recorded, volumes.of_server(tx, server_uuid))


class CheckAttachments(VolumeStep):
    """The guest gets what both say. A volume that is the server's no more at the volume service is not given to it (but
    the one it boots from, without which there is no guest: then its start fails); attachments that no record has are
    deleted. An attach that this operation has overtaken is finished. A volume service that is away is no reason to
    leave a guest down: nothing is compared then."""

    uses = ("cell", "compute", "volumes")
    lenient = True

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        """It makes no attachment."""
        return {}

    def act(self, deps: Deps, op: Op) -> None:
        found = compared(deps, op.uuid)
        gone = [one for one in found.lost if one.boot_index != 0 and self._is_gone(deps, one)]
        for device in gone:
            LOG.warning("volume %s is not the server's any more, by the volume service: its guest does not get it",
                        device.volume_id, extra={"server": op.uuid})
        for one in found.unknown:
            LOG.warning("gave back attachment %s of volume %s, which no record has", one.id, one.volume_id,
                        extra={"server": op.uuid})
        cleanups = [Cleanup(ATTACHMENT, one.id, op.uuid) for one in found.unknown]

        def write(tx: Connection) -> None:
            volumes.let_go(tx, op.uuid, [one.volume_id for one in gone])
            volumes.add_cleanups(tx, cleanups, RETRY_S)
        if gone or cleanups:
            deps.cell.transact(write)
        if gone:
            lost = {one.id for one in gone}
            op.write(volumes=tuple(one for one in devices(op) if one.id not in lost))
        volume_cleanups.pay(deps, cleanups)
        for device in found.unfinished:
            connect(deps, op, device)

    @staticmethod
    def _is_gone(deps: Deps, device: BlockDevice) -> bool:
        """A list may be short; this is about the one."""
        try:
            deps.volumes.get_attachment(device.attachment_id)
        except errors.NotFound:
            return True
        return False


__all__ = ["CheckAttachments", "Compared", "compare", "compared"]
