"""The start of all moves: check both hosts, then write the rows of the journal and the migration in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nova import errors
from nova.conductor.engine.begin import begin, builtins
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments
from nova.conductor.quota import quota
from nova.conductor.steps import moves
from nova.db.host import services
from nova.db.quota import ledger
from nova.db.server import migrations, operation_arguments, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.flavor.flavors import Flavor
from nova.model.server.migrations import NewMigration


def base(deps: Deps, row: ServerRow) -> dict[str, Any]:
    """Return the facts about the server's current place that every move needs."""
    name = servers.instance_name(deps.settings.instance_name_template, row)
    return {"source": row.host, "source_node": row.node or "", "source_zone": row.availability_zone,
            "old_flavor": row.flavor, "instance_name": name}


ArgumentsKind = type[moves.MoveArguments]


class MovePlan(NamedTuple):
    """A requested move. ``check`` is called with the server's row, under its lock."""

    action: str
    type: str
    status: str
    uuid: str
    asks: ArgumentsKind
    asked: Mapping[str, object]  # the fields that come from the request
    check: Callable[[Connection, ServerRow], None]
    flavor: Flavor | None = None
    row: Mapping[str, Any] = {}
    owner: quota.Owner | None = None  # of a resize: the project and user whose quota it counts in


def host_up(deps: Deps, tx: Connection, host: str) -> bool | None:
    """True if the host's nova-compute has reported lately and is not forced down. None: the host has no
    nova-compute."""
    return services.host_up(tx, host, deps.settings.service_down_time)


def check_source(deps: Deps, tx: Connection, row: ServerRow, down: type[errors.NovaError]) -> None:
    """Raise ``down`` if the server's host is not up."""
    if not host_up(deps, tx, row.host or ""):
        raise down(host=row.host)


def check_target(deps: Deps, tx: Connection, row: ServerRow, host: str | None, unknown: type[errors.NovaError],
                  must_be_up: bool = True) -> None:
    """Check the target host of a move. ``host`` None: the scheduler chooses, so there is nothing to check.

    Raises ``unknown`` for a host without nova-compute; move.OwnHost; move.HostDown unless it may still be down.
    """
    if host is None:
        return
    up = host_up(deps, tx, host)
    if up is None:
        raise unknown(host=host)
    if host == row.host:
        raise errors.move.OwnHost()
    if must_be_up and not up:
        raise errors.move.HostDown(host=host)


def begin_move(deps: Deps, plan: MovePlan, secrets: Mapping[str, object] | None = None) -> states.Entry:
    """Write the journal's row and the migration's in one transaction of the cell, and start the move.

    The quota usage of a resize is checked and written within it. A conductor that dies in between has counted too much
    (see nova.conductor.upkeep.quota_repair).
    """
    entry = deps.cell.transact(lambda tx: _write(deps, tx, plan))
    deps.runner.start([entry], secrets=secrets)
    return entry


def _write(deps: Deps, tx: Connection, plan: MovePlan) -> states.Entry:
    entry = begin(deps, tx, plan.action, plan.uuid, Arguments())
    row = servers.rows_of(tx, [plan.uuid])[plan.uuid]
    if row.host is None:
        raise errors.server.NoHost(server=plan.uuid)
    plan.check(tx, row)
    metadata, _tags = servers.children(tx, [plan.uuid])
    known = {**base(deps, row), "metadata": metadata.get(plan.uuid, {}), "vm_state": row.vm_state}
    move = moves.uuid_of(plan.uuid, entry.id, deps.cell_uuid)
    arguments = plan.asks(**{"exclude": (row.host,), **plan.asked, **known, "move": move})
    entry = operation_arguments.argue(tx, entry, builtins(arguments))
    if plan.row:
        servers.update(tx, plan.uuid, plan.row)
    migrations.insert(tx, NewMigration(
        uuid=move, server_uuid=plan.uuid, type=plan.type, status=plan.status,
        user_id=row.user_id, project_id=row.project_id, source_compute=row.host, source_node=row.node,
        old_flavor=row.flavor, new_flavor=plan.flavor or row.flavor))
    if plan.flavor is not None and plan.owner is not None:
        count_resize(deps, entry, row, plan.flavor, plan.owner)
    return entry


def count_resize(deps: Deps, entry: states.Entry, row: ServerRow, flavor: Flavor, whose: quota.Owner) -> None:
    """Count the larger of both flavors, under the project's lock as for a create. Raises OverQuota if quota forbids
    it."""
    image = row.image.properties if row.image else {}
    old, new = (deps.quotas.counted(one, image) for one in (row.flavor, flavor))
    wanted = {name: amount - old.get(name, 0) for name, amount in new.items() if amount > old.get(name, 0)}

    def write(tx: Connection) -> None:
        ledger.lock_owner(tx, row.project_id)
        project, user = quota.effective(deps, tx, whose, wanted)
        used = deps.quotas.usage(tx, row.project_id, row.user_id)
        for limits, now in ((project, used["project"]), (user, used["user"])):
            quota.check(limits, now, wanted)
        ledger.count_as(tx, row.uuid, entry.epoch, moves.counted(row, row.flavor, flavor))
    deps.api.transact(write)
