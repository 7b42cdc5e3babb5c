"""Pending cleanups in the volume service: tried immediately when they become due, and repeated until they succeed.

A server is gone for its user immediately, also if the volume service fails. Its volumes and attachments are released
when that service is back.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from nova import errors
from nova.conductor.engine.begin import begin
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import VolumeOperation
from nova.db import volumes
from nova.db.operation import operations
from nova.db.server import servers, states
from nova.db.sql.engine import Connection
from nova.db.volumes import (
    ATTACHMENT,
    COMPLETE,
    DETACHING,
    IMAGE_SNAPSHOTS,
    NOT_REPLACED,
    REPLACED,
    RESERVATION,
    TO_ATTACH,
    TO_DETACH,
    VOLUME,
    Cleanup,
)
from nova.model.volumes import BlockDevice, snapshot_name

LOG = logging.getLogger(__name__)

AT_ONCE = (COMPLETE, ATTACHMENT, VOLUME, REPLACED)  # cleanups that do not depend on the server's other operations
TARGET = "target:"  # migration_status prefix of a migration's target volume; the source volume's ID follows
BATCH = 50
FIRST_S, LONGEST_S = 30, 3600  # limits of the pause between two tries, which doubles with each
SOON_S, OFTEN_S = 5, 60  # the same for cleanups that wait only for the server


def run_server_cleanups(deps: Deps, server_uuid: str, kinds: Collection[str] = AT_ONCE) -> None:
    """Do the due cleanups of a server's attachments and volumes now. Errors of the volume service are logged, never
    raised."""
    with deps.cell.reading() as tx:
        found = [one for one in volumes.of_server(tx, server_uuid) if one.kind in kinds]
    run_cleanups(deps, found)


def run_cleanups(deps: Deps, cleanups: Sequence[Cleanup]) -> None:
    """Do these cleanups, in an order in which they can succeed."""
    for one in sorted(cleanups, key=lambda cleanup: list(CLEANUP_KINDS).index(cleanup.kind)):
        try:
            done = CLEANUP_KINDS[one.kind].do(deps, one)
        except errors.NovaError as error:
            LOG.warning("could not %s %s in the volume service; retrying later: %s", CLEANUP_KINDS[one.kind].words,
                        one.what, error.message, extra={"server": one.server_uuid})
            continue
        if done:
            deps.cell.transact(functools.partial(volumes.drop_cleanups, done=[one]))


def run(deps: Deps) -> int:
    """Run one turn of the due cleanups and return the number of tries."""
    with deps.cell.reading() as tx:
        due = volumes.due(tx, BATCH)
    mine = [one for one in due if deps.cell.transact(functools.partial(
        volumes.put_off, one=one, seconds=CLEANUP_KINDS[one.kind].pause_s(one.tries)))]
    run_cleanups(deps, mine)
    return len(mine)


def _complete(deps: Deps, one: Cleanup) -> bool:
    """Complete an attachment; no error if it is gone."""
    with contextlib.suppress(errors.NotFound):
        deps.volumes.complete(one.what)
    return True


def _delete_attachment(deps: Deps, one: Cleanup) -> bool:
    deps.volumes.delete_attachment(one.what)
    return True


def _delete_volume(deps: Deps, one: Cleanup) -> bool:
    with contextlib.suppress(errors.NotFound):
        deps.volumes.delete(one.what)
    return True


def _delete_unknown(deps: Deps, one: Cleanup) -> bool:
    """Delete the server's attachments to the volume that its record does not have. While an operation works on the
    server, these are not known."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
        known = {id for device in volumes.devices_of(tx, [one.server_uuid]).get(one.server_uuid, ())
                 for id in (device.attachment_id, device.next_attachment_id)}
    for found in deps.volumes.list_attachments(one.server_uuid, one.what):
        if found.id not in known:
            LOG.warning("deleted attachment %s of volume %s, which has no record", found.id, one.what,
                        extra={"server": one.server_uuid})
            deps.volumes.delete_attachment(found.id)
    return True


def _in_use_again(deps: Deps, one: Cleanup) -> bool:
    """Roll back a failed detach: the volume stays attached. If the detach did succeed meanwhile, no call is needed."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
        has = any(device.volume_id == one.what
                  for device in volumes.devices_of(tx, [one.server_uuid]).get(one.server_uuid, ()))
    if has:
        keep_in_use(deps, one.what)
    return True


def keep_in_use(deps: Deps, volume_id: str) -> None:
    """Keep a volume attached that is in state "detaching". Raises errors of the client."""
    if deps.volumes.get(volume_id).status == "detaching":
        deps.volumes.roll_detaching(volume_id)


def _replaced(deps: Deps, one: Cleanup) -> bool:
    end_migration(deps, one.what, failed=False)
    return True


def _not_replaced(deps: Deps, one: Cleanup) -> bool:
    """End a failed migration, unless an operation still works on the server: the volume may still be swapped in."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
    end_migration(deps, one.what, failed=True)
    return True


def end_migration(deps: Deps, volume_id: str, failed: bool) -> None:
    """Report the result of a migration to this volume. The volume service exchanges the IDs of both, or deletes this
    one. No call if it knows already. Raises errors of the client."""
    with contextlib.suppress(errors.NotFound):
        status = deps.volumes.get(volume_id).migration_status or ""
        if status.startswith(TARGET):
            deps.volumes.complete_migration(status.removeprefix(TARGET), volume_id, error=failed)


def _delete_snapshots(deps: Deps, one: Cleanup) -> bool:
    """Delete the snapshots of an image that was never completed. While its operation runs forward, the image depends on
    them. The image is deleted first: it cannot become complete after that."""
    with deps.cell.reading() as tx:
        if operations.under_way(tx, one.server_uuid, {"create_image_stopped"}) == "do":
            return False
    with contextlib.suppress(errors.NotFound, errors.Forbidden):  # the owner has protected the image
        if deps.images.show(one.what).status == "active":
            return True
        deps.images.delete(one.what)
    for snapshot in deps.volumes.find_snapshots(snapshot_name(one.what)):
        with contextlib.suppress(errors.NotFound):
            deps.volumes.delete_snapshot(snapshot.id)
    return True


def _attach(deps: Deps, one: Cleanup) -> bool:
    return _resume(deps, one, lambda device: "attach_volume")


def _detach(deps: Deps, one: Cleanup) -> bool:
    """Resume a detach. If it was rolled back meanwhile, attach the volume again, since the guest may have released
    it."""
    def action(device: BlockDevice) -> str:
        goes = deps.volumes.get(device.volume_id).status == "detaching"
        return "detach_volume" if goes else "attach_volume"
    return _resume(deps, one, action)


def _resume(deps: Deps, one: Cleanup, action: Callable[[BlockDevice], str]) -> bool:
    """Begin an overtaken action again, as soon as no other operation works on the server and its state allows it. No
    action if the server no longer has the volume. The row is deleted in the beginning's transaction, so that a later
    row belongs to the next overtaking."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
        device = _device(tx, one)
    if device is None:
        return True
    wanted = action(device)

    def write(tx: Connection) -> states.Entry | None:
        servers.lock_row(tx, one.server_uuid)
        found = _device(tx, one)
        if found is None or operations.any_open(tx, one.server_uuid):
            return None
        volumes.drop_cleanups(tx, [one])
        asked = VolumeOperation(device_id=found.id, volume_id=found.volume_id, resumed=True)
        return begin(deps, tx, wanted, one.server_uuid, asked)
    try:
        entry = deps.cell.transact(write)
    except errors.NotFound:
        return True
    except errors.WrongState:
        return False
    if entry is not None:
        LOG.info("resuming %s of volume %s after another operation had overtaken it", wanted, one.what,
                 extra={"server": one.server_uuid})
        deps.runner.start([entry])
    return False


def _device(tx: Connection, one: Cleanup) -> BlockDevice | None:
    found = volumes.devices_of(tx, [one.server_uuid]).get(one.server_uuid, ())
    return next((device for device in found if device.volume_id == one.what and device.attachment_id), None)


class CleanupKind(NamedTuple):
    """A kind of cleanup: its log text, its function (True if the cleanup is done), and the seconds between two
    tries."""

    words: str
    do: Callable[[Deps, Cleanup], bool]
    first_s: int = FIRST_S
    longest_s: int = LONGEST_S

    def pause_s(self, tries: int) -> int:
        """Return the pause after this number of failed tries, in seconds."""
        return min(self.first_s << min(tries, 10), self.longest_s)


#: In the order in which they can succeed: a volume can be deleted when it has no attachments and no snapshots.
CLEANUP_KINDS = {
    COMPLETE: CleanupKind("complete attachment", _complete),
    ATTACHMENT: CleanupKind("delete attachment", _delete_attachment),
    RESERVATION: CleanupKind("delete unknown attachments of volume", _delete_unknown),
    TO_ATTACH: CleanupKind("resume the attach of volume", _attach, SOON_S, OFTEN_S),
    TO_DETACH: CleanupKind("resume the detach of volume", _detach, SOON_S, OFTEN_S),
    DETACHING: CleanupKind("roll back the detaching of volume", _in_use_again),
    REPLACED: CleanupKind("complete the migration to volume", _replaced),
    NOT_REPLACED: CleanupKind("cancel the migration to volume", _not_replaced),
    IMAGE_SNAPSHOTS: CleanupKind("delete the snapshots for image", _delete_snapshots),
    VOLUME: CleanupKind("delete volume", _delete_volume)}
