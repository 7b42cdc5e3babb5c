"""Helpers of requests about a server's volumes: find the device, and run one operation at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from nova import concurrency, errors
from nova.conductor.engine.begin import locked
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation_wait import LONGEST_PAUSE_S, LOOK_S
from nova.db.host import services
from nova.db.operation import operations
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.volumes import BlockDevice

#: Actions of which only one runs at a time on a server.
IN_TURN = ("attach_volume", "detach_volume", "extend_volume", "swap_volume", "attach_interface", "detach_interface",
           "snapshot_volume", "merge_volume_snapshot")


def in_turn(deps: Deps, uuid: str, write: Callable[[Connection], states.Entry], end: float) -> states.Entry:
    """Run ``write`` when no other operation on the server's devices runs; waiting requests have no fixed order.

    ``end``: by the monotonic clock. Raises volume.Busy if other operations are still running then.
    """
    def attempt(tx: Connection) -> states.Entry | None:
        locked(tx, uuid)
        return None if operations.under_way(tx, uuid, IN_TURN) else write(tx)
    pause = LOOK_S
    while (entry := deps.transact_together(uuid, attempt)) is None:
        if time.monotonic() + pause > end:
            raise errors.volume.Busy(server=uuid)
        concurrency.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
    return entry


def attached_device(row: ServerRow, volume_id: str, root: bool = False) -> BlockDevice:
    """Return the server's device of the volume. Raises volume.NotAttached; IsRoot, unless ``root``."""
    found = next((one for one in row.volumes or () if one.volume_id == volume_id and one.attachment_id), None)
    if found is None:
        raise errors.volume.NotAttached(server=row.uuid, volume=volume_id)
    if found.boot_index == 0 and not root:
        raise errors.volume.IsRoot(volume=volume_id)
    return found


def check_host(deps: Deps, server_uuid: str) -> None:
    """Raise volume.HostDown if the server's host is down. A server without a host passes."""
    with deps.cell.reading() as tx:
        host = servers.rows_of(tx, [server_uuid])[server_uuid].host
        if host and not services.host_up(tx, host, deps.settings.service_down_time):
            raise errors.volume.HostDown(server=server_uuid)
