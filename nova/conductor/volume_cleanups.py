"""What the volume service is still to be told: tried at once by whoever makes it due, and again until it is done.

A server is gone for its user at once, whatever the volume service answers; what it holds there goes when that is back.
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

AT_ONCE = (COMPLETE, ATTACHMENT, VOLUME, REPLACED)  # no doubts, in which others have a say
TARGET = "target:"  # in the migration_status of a volume that another one (its id follows) is moved to
BATCH = 50
FIRST_S, LONGEST_S = 30, 3600  # between two tries: as long as it has lasted, within these
SOON_S, OFTEN_S = 5, 60  # the same of what waits for the server alone


def pay_for(deps: Deps, server_uuid: str, kinds: Collection[str] = AT_ONCE) -> None:
    """What is due of a server's attachments and volumes, now. Never raises for the volume service's sake."""
    with deps.cell.reading() as tx:
        found = [one for one in volumes.of_server(tx, server_uuid) if one.kind in kinds]
    pay(deps, found)


def pay(deps: Deps, cleanups: Sequence[Cleanup]) -> None:
    """These, in an order in which they can be done."""
    for one in sorted(cleanups, key=lambda cleanup: list(WAYS).index(cleanup.kind)):
        try:
            done = WAYS[one.kind].do(deps, one)
        except errors.NovaError as error:
            LOG.warning("the volume service does not %s %s, which is tried again: %s", WAYS[one.kind].words, one.what,
                        error.message, extra={"server": one.server_uuid})
            continue
        if done:
            deps.cell.transact(functools.partial(volumes.drop_cleanups, done=[one]))


def run(deps: Deps) -> int:
    """One turn of all that is due; how many were tried."""
    with deps.cell.reading() as tx:
        due = volumes.due(tx, BATCH)
    mine = [one for one in due if deps.cell.transact(functools.partial(
        volumes.put_off, one=one, seconds=WAYS[one.kind].pause_s(one.tries)))]
    pay(deps, mine)
    return len(mine)


def _complete(deps: Deps, one: Cleanup) -> bool:
    """Nothing where the attachment has gone since."""
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
    """Attachments of the server to the volume of which its record does not know. While an operation works on the
    server, nobody can say which these are."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
        known = {id for device in volumes.devices_of(tx, [one.server_uuid]).get(one.server_uuid, ())
                 for id in (device.attachment_id, device.next_attachment_id)}
    for found in deps.volumes.list_attachments(one.server_uuid, one.what):
        if found.id not in known:
            LOG.warning("gave back attachment %s of volume %s, which no record has", found.id, one.what,
                        extra={"server": one.server_uuid})
            deps.volumes.delete_attachment(found.id)
    return True


def _in_use_again(deps: Deps, one: Cleanup) -> bool:
    """A detach that came to nothing: the volume is the server's as before. Where it did come to its end meanwhile,
    there is nothing to say."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
        has = any(device.volume_id == one.what
                  for device in volumes.devices_of(tx, [one.server_uuid]).get(one.server_uuid, ()))
    if has:
        keep_in_use(deps, one.what)
    return True


def keep_in_use(deps: Deps, volume_id: str) -> None:
    """A volume that is to be detached stays where it is. Errors of the client."""
    if deps.volumes.get(volume_id).status == "detaching":
        deps.volumes.roll_detaching(volume_id)


def _replaced(deps: Deps, one: Cleanup) -> bool:
    end_migration(deps, one.what, failed=False)
    return True


def _not_replaced(deps: Deps, one: Cleanup) -> bool:
    """While an operation works on the server, the volume may come to its place yet."""
    with deps.cell.reading() as tx:
        if operations.any_open(tx, one.server_uuid):
            return False
    end_migration(deps, one.what, failed=True)
    return True


def end_migration(deps: Deps, volume_id: str, failed: bool) -> None:
    """Tell the volume service how its move to this volume went: it exchanges the ids of both, or deletes this one.
    Nothing where it knows already. Errors of the client."""
    with contextlib.suppress(errors.NotFound):
        status = deps.volumes.get(volume_id).migration_status or ""
        if status.startswith(TARGET):
            deps.volumes.complete_migration(status.removeprefix(TARGET), volume_id, error=failed)


def _delete_snapshots(deps: Deps, one: Cleanup) -> bool:
    """Of an image that never got whole. While its operation goes forward, they are what it is made of. The image goes
    first: it can't get whole after that."""
    with deps.cell.reading() as tx:
        if operations.under_way(tx, one.server_uuid, {"create_image_stopped"}) == "do":
            return False
    with contextlib.suppress(errors.NotFound, errors.Forbidden):  # its owner has protected it
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
    """Where it was taken back meanwhile, the guest shall have the volume, which it may have given up."""
    def action(device: BlockDevice) -> str:
        goes = deps.volumes.get(device.volume_id).status == "detaching"
        return "detach_volume" if goes else "attach_volume"
    return _resume(deps, one, action)


def _resume(deps: Deps, one: Cleanup, action: Callable[[BlockDevice], str]) -> bool:
    """Begin what was overtaken, as soon as nothing else works on the server and its state allows it; nothing where the
    volume is not the server's any more. The row goes in the transaction of that beginning: one that is there afterwards
    is of the next overtaking."""
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
        LOG.info("%s of volume %s, which another operation had overtaken, goes on", wanted, one.what,
                 extra={"server": one.server_uuid})
        deps.runner.start([entry])
    return False


def _device(tx: Connection, one: Cleanup) -> BlockDevice | None:
    found = volumes.devices_of(tx, [one.server_uuid]).get(one.server_uuid, ())
    return next((device for device in found if device.volume_id == one.what and device.attachment_id), None)


class Way(NamedTuple):
    """What is done for a cleanup (whether it is over then), in words and in deed; seconds between two tries."""

    words: str
    do: Callable[[Deps, Cleanup], bool]
    first_s: int = FIRST_S
    longest_s: int = LONGEST_S

    def pause_s(self, tries: int) -> int:
        """After so many that were in vain."""
        return min(self.first_s * 2 ** min(tries, 10), self.longest_s)


#: In an order in which they can be done: a volume can be deleted when nobody has it, and it has no snapshots.
WAYS = {
    COMPLETE: Way("complete attachment", _complete), ATTACHMENT: Way("delete attachment", _delete_attachment),
    RESERVATION: Way("say who has volume", _delete_unknown),
    TO_ATTACH: Way("say how far the attach is of volume", _attach, SOON_S, OFTEN_S),
    TO_DETACH: Way("say how far the detach is of volume", _detach, SOON_S, OFTEN_S),
    DETACHING: Way("take back the detaching of volume", _in_use_again),
    REPLACED: Way("end the migration to volume", _replaced),
    NOT_REPLACED: Way("give up the migration to volume", _not_replaced),
    IMAGE_SNAPSHOTS: Way("delete the snapshots for image", _delete_snapshots),
    VOLUME: Way("delete volume", _delete_volume)}
