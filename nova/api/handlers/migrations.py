"""Migrations of all servers, and of one server, which can be force-completed or aborted while they run."""

from __future__ import annotations

from nova import errors
from nova.api import versions
from nova.api.handlers.server_lists import changes
from nova.api.handlers.server_targets import actor
from nova.api.request import Request
from nova.api.view import LINKS, answers
from nova.api.views import migrations as views
from nova.model.base import Page
from nova.model.server.migrations import PREPARING, QUEUED, RUNNING, Migration, MigrationQuery, ServerMigrations
from nova.model.server.server_orders import MigrationOrder
from nova.model.server.servers import ServerQuery
from nova.web.formats import BOOLEANS

ALL_PROJECTS_RULE = "os_compute_api:os-migrations:index:all_projects"
HOST_RULE = "os_compute_api:os-migrations:index:host"
SERVER_HOST_RULE = "os_compute_api:servers:migrations:index:host"

MOST = 2**63 - 1  # what a key may be


@answers({"migrations": [views.MIGRATION], "migrations_links?": LINKS})
def index(req: Request) -> dict[str, object]:
    """List migrations of all servers, newest first; paged from 2.59. Migrations of all projects, or of another project,
    need a separate rule. Raises api.PageMarkerNotFound (400)."""
    project = req.query.one("project_id")
    if project is None or project != req.context.project_id:
        req.authorize(rule=ALL_PROJECTS_RULE)
    found = () if _hidden(req) else req.conductor.list_migrations(_query(req))
    pages = versions.migrations_have_pages(req.version)
    last = found[-1].uuid if found else None
    return {"migrations": views.MIGRATION.all(found, req, _flags(req, HOST_RULE)),
            **(req.next_links("migrations_links", found, last) if pages else {})}


def _hidden(req: Request) -> bool:
    """True if only hidden migrations are requested, those between cells in another cell's database: always empty."""
    return BOOLEANS.get(req.query.one("hidden", ""), False)


def _query(req: Request) -> MigrationQuery:
    since, before = changes(req)
    one = req.query.one
    page = (Page(limit=req.limit(), marker=one("marker")) if versions.migrations_have_pages(req.version) else Page())
    return MigrationQuery(
        host=one("host"), server_uuid=one("instance_uuid"), source_compute=one("source_compute"),
        status=one("status"), type=one("migration_type"), user_id=one("user_id"), project_id=one("project_id"),
        changes_since=since, changes_before=before, page=page)


def _flags(req: Request, rule: str, project_id: str | None = None) -> frozenset[str]:
    return frozenset({views.HOSTS} if req.allows(rule, project_id) else ())


# migrations of a server


@answers({"migrations": [views.OF_SERVER]})
def server_index(req: Request, server_id: str) -> dict[str, object]:
    """List the live migrations of a server that are in progress; ended ones are not shown. Raises server.NotFound
    (404)."""
    found: ServerMigrations = req.conductor.list_server_migrations(_server(req, server_id))
    req.authorize(found.project_id, found.user_id)
    flags = _flags(req, SERVER_HOST_RULE, found.project_id)
    return {"migrations": views.OF_SERVER.all(found.migrations, req, flags)}


@answers({"migration": views.OF_SERVER})
def server_show(req: Request, server_id: str, migration_id: str) -> dict[str, object]:
    """Show one live migration of a server while it is in progress. Raises server.NotFound, move.MigrationNotFound,
    move.MigrationNotInProgress (404)."""
    key = _key(server_id, migration_id)
    found: ServerMigrations = req.conductor.get_server_migration(_server(req, server_id), key)
    req.authorize(found.project_id, found.user_id)
    move = found.migrations[0]
    if not move.live:
        raise errors.move.MigrationNotInProgress(id=migration_id, server=server_id)
    return {"migration": views.OF_SERVER(move, req, frozenset({views.HOSTS}))}


def force_complete(req: Request, server_id: str, migration_id: str) -> None:
    """Force a running live migration to complete."""
    req.conductor.force_live_migration(_migration_order(req, (server_id, migration_id), "live_migration_force_complete",
                                                        (RUNNING,)))


def abort(req: Request, server_id: str, migration_id: str) -> None:
    """Abort a live migration that runs or, in newer versions, is queued."""
    early = (QUEUED, PREPARING) if versions.queued_migrations_can_be_aborted(req.version) else ()
    req.conductor.abort_live_migration(_migration_order(req, (server_id, migration_id), "live_migration_cancel",
                                                        (RUNNING, *early)))


def _migration_order(req: Request, which: tuple[str, str], action: str, statuses: tuple[str, ...]) -> MigrationOrder:
    """Return the order, after checks of policy, lock, server state (409), migration (404) and its status (400)."""
    server_id, migration_id = which
    actor(req, server_id, action)
    found = req.conductor.get_server_migration(_server(req, server_id), _key(server_id, migration_id))
    move: Migration = found.migrations[0]
    if move.status not in statuses:
        raise errors.move.MigrationWrongStatus(migration=migration_id, server=server_id, status=move.status,
                                               action=action, wanted=" or ".join(statuses))
    return MigrationOrder(uuid=server_id, migration_id=move.id)


def _server(req: Request, server_id: str) -> ServerQuery:
    return ServerQuery(uuid=server_id, scope=req.scope())


def _key(server_id: str, migration_id: str) -> int:
    key = int(migration_id) if migration_id.isascii() and migration_id.isdigit() else MOST + 1
    if key > MOST:
        raise errors.move.MigrationNotInProgress(id=migration_id, server=server_id)
    return key
