"""Servers while their cell's database is away: what the ledger, in the other one, knows of them.

Which are in a list then, and how: ``ServerListQuery.silent_cells``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db import ledger, server_groups
from nova.model.flavors import Flavor
from nova.model.servers import ServerDetail, ServerListQuery, ServerPage, ServerQuery, ServerSummary
from nova.model.states import VmState

NO_ZONE = "UNKNOWN"  # where no zone was asked for, the cell alone knows the server's
#: Stands in lists, where flavors of unknown servers are not shown.
NO_FLAVOR = Flavor(flavorid="", name="", memory_mb=0, vcpus=0, root_gb=0)


def server(deps: Deps, query: ServerQuery) -> ServerDetail | None:
    """In two statements. None where the ledger knows too little (its row is an older release's). NotFound."""
    with deps.api.reading() as tx:
        row = ledger.get(tx, query.uuid, query.scope)
        group = server_groups.group_of(tx, query.uuid) if row is not None else None
    if row is None:
        raise errors.server.NotFound(server=query.uuid)
    if row.facts is None:
        return None
    facts = row.facts
    return ServerDetail(id=0, name="", vm_state=VmState.UNKNOWN, unknown=True, uuid=query.uuid,
                        project_id=row.project_id, user_id=row.user_id, created_at=row.created_at,
                        flavor=facts.flavor, image_id=facts.image_id,
                        availability_zone=facts.availability_zone or NO_ZONE, server_groups=(group,) if group else ())


def shown(deps: Deps, query: ServerListQuery, limit: int) -> ServerPage:
    """The newest servers of the scope, in one statement."""
    with deps.api.reading() as tx:
        rows = ledger.newest(tx, query.scope, limit)
    if not query.detail:
        return ServerPage(summaries=tuple(ServerSummary(uuid=row.server_uuid, name="", unknown=True) for row in rows))
    return ServerPage(servers=tuple(
        ServerDetail(id=0, name="", vm_state=VmState.UNKNOWN, unknown=True, uuid=row.server_uuid, flavor=NO_FLAVOR,
                     project_id=row.project_id, user_id=row.user_id, created_at=row.created_at) for row in rows))


def skipped(deps: Deps, query: ServerListQuery, limit: int) -> ServerPage:
    return ServerPage()


#: ``silent_cells`` -> what a list is then. For all else it fails.
PAGES: Mapping[str, Callable[[Deps, ServerListQuery, int], ServerPage]] = {"skip": skipped, "show": shown}
