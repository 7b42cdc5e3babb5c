"""The ends of a resize, which are begun by their names: confirming and reverting."""

from __future__ import annotations

from typing import Any

import msgspec

from nova import errors
from nova.conductor.engine import zones
from nova.conductor.engine.deps import World
from nova.db import migrations, servers, services, states
from nova.db.engine import Connection
from nova.model import migrations as kinds
from nova.model.servers import ServerMemo
from nova.model.states import PowerState, VmState


class SourceDown(errors.Conflict):
    code, message = "move.source_down", "Compute service of {host} is unavailable at this time."


class NothingToEnd(errors.Invalid):
    code, message = "resize.no_record", "Instance {server} has not been resized."


def base(world: World, row: Any) -> dict[str, Any]:
    """What every move must know of where the server comes from."""
    name = servers.instance_name(world.settings.instance_name_template, row.id, row.uuid)
    return {"source": row.host, "source_node": row.node or "", "source_zone": row.availability_zone,
            "old_flavor": msgspec.to_builtins(row.flavor), "instance_name": name}


def ending(world: World, tx: Connection, entry: states.Entry) -> states.Entry:
    """The entry of a confirming or reverting with what it must know of the move. NothingToEnd; SourceDown: there is
    nobody to revert to."""
    row = servers.rows_of(tx, [entry.server_uuid])[entry.server_uuid]
    memo = row.memo or ServerMemo()
    move = migrations.by_uuid(tx, memo.move) if memo.move else None
    if move is None or move.status not in (kinds.FINISHED, kinds.CONFIRMING, kinds.REVERTING) or \
            move.old_flavor is None or not move.source_compute:
        raise NothingToEnd(server=entry.server_uuid)
    if entry.action == "revertResize" and not services.host_up(tx, move.source_compute,
                                                               world.settings.service_down_time):
        raise SourceDown(host=move.source_compute)
    metadata, _tags = servers.children(tx, [row.uuid])
    ran = VmState.ACTIVE if row.power_state == PowerState.RUNNING else VmState.STOPPED
    zone = zones.of_hosts(world, [move.source_compute]).get(move.source_compute)
    return states.argue(tx, entry, {
        **base(world, row), "move": move.uuid, "source": move.source_compute, "source_node": move.source_node or "",
        "source_zone": zone or world.settings.default_availability_zone,
        "old_flavor": msgspec.to_builtins(move.old_flavor),
        "destination": row.host, "destination_node": row.node or "", "metadata": metadata.get(row.uuid, {}),
        "vm_state": memo.vm_state or ran.value})


ENDINGS = {"confirmResize": ending, "revertResize": ending}

__all__ = ["ENDINGS", "NothingToEnd", "SourceDown", "base", "ending"]
