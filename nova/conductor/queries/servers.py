"""Servers read, updated, locked and ordered about."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from nova import context, errors
from nova.conductor.actions.by_name import begin_order
from nova.conductor.actions.shelve import shelve
from nova.conductor.engine.deps import Deps
from nova.conductor.queries import request_traces
from nova.conductor.quota import quota
from nova.db.host.services import as_time
from nova.db.quota import ledger
from nova.db.server import actions, server_groups, server_lists, servers
from nova.db.sql.engine import Connection, DatabaseAway
from nova.db.sql.types import AnyRow
from nova.model.flavor.flavors import Flavor
from nova.model.server.actions import ActionQuery, InstanceAction
from nova.model.server.servers import (
    ConsoleQuery,
    LockChange,
    MetadataChange,
    ServerDetail,
    ServerListQuery,
    ServerOrder,
    ServerPage,
    ServerQuery,
    ServerSummary,
    ServerTarget,
    ServerUpdate,
)
from nova.model.server.states import METADATA_STATES, VmState

MATCHED_AT_ONCE = 2  # of a project, in each conductor process


class Servers:
    """The server calls of ConductorRPC (but create)."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self._matching: Counter[str] = Counter()  # by project, lists by patterns that are under way here
        self._lock = threading.Lock()

    # -- reads

    def get_server(self, query: ServerQuery) -> ServerDetail:
        """server.NotFound outside the scope; DatabaseAway, unless ``with_unknown`` and the other database knows enough
        of it. ``as_kept``: the network service is not asked for its security groups."""
        try:
            found = self._read(query)
        except DatabaseAway:
            unknown = server(self.deps, query) if query.with_unknown else None
            if unknown is None:
                raise
            return unknown
        return self._with_group(found) if "group" in found.scheduler_hints else found

    def _read(self, query: ServerQuery) -> ServerDetail:
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
            found = self._details(tx, [row])
        return found[0] if query.as_kept else self._with_groups_now(found)[0]

    def _with_group(self, server: ServerDetail) -> ServerDetail:
        with self.deps.api.reading() as tx:
            group = server_groups.group_of(tx, server.uuid)
        return msgspec.structs.replace(server, server_groups=(group,) if group else ())

    def list_servers(self, query: ServerListQuery) -> ServerPage:
        """api.PageMarkerNotFound; api.PageBadRegex: a pattern that cannot be, or would keep the database busy;
        api.PageTooManyPatterns; DatabaseAway, but for the ``silent_cells`` of ``PAGES``."""
        most = self.deps.settings.max_limit
        limit = most if query.page.limit is None else min(query.page.limit, most)
        if limit <= 0:
            return ServerPage()
        try:
            with self._share(query):
                return self._page(query, limit)
        except DatabaseAway:
            if query.silent_cells not in PAGES:
                raise
            return PAGES[query.silent_cells](self.deps, query, limit)

    @contextlib.contextmanager
    def _share(self, query: ServerListQuery) -> Iterator[None]:
        """Patterns may take the database seconds each: one project's are few at a time. api.PageTooManyPatterns."""
        project = str(context.current().project_id)
        if not server_lists.has_patterns(query):
            yield
            return
        with self._lock:
            if self._matching[project] >= MATCHED_AT_ONCE:
                raise errors.api.PageTooManyPatterns(most=MATCHED_AT_ONCE)
            self._matching[project] += 1
        try:
            yield
        finally:
            with self._lock:
                self._matching.subtract([project])
                self._matching = +self._matching  # without those that have none

    def _page(self, query: ServerListQuery, limit: int) -> ServerPage:
        with self.deps.cell.reading() as tx:
            rows = server_lists.select(tx, query, limit)
            if not query.detail:
                return ServerPage(summaries=tuple(ServerSummary(uuid=row.uuid, name=row.name) for row in rows))
            found = self._details(tx, rows)
        return ServerPage(servers=self._with_groups_now(found))

    def _with_groups_now(self, found: Sequence[ServerDetail]) -> tuple[ServerDetail, ...]:
        """With their security groups as the network service has them; no transaction waits for it."""
        names = self.deps.networking.groups_shown(found) if found else {}
        return tuple(msgspec.structs.replace(one, security_groups=names[one.uuid]) if one.uuid in names else one
                     for one in found)

    def _details(self, tx: Connection, rows: Sequence[AnyRow]) -> list[ServerDetail]:
        """Rows with their children: one more statement, however many rows."""
        metadata, tags = servers.children(tx, [row.uuid for row in rows])
        template = self.deps.settings.instance_name_template
        found = []
        for row in rows:
            one = servers.detail(row, metadata.get(row.uuid, {}), tags.get(row.uuid, ()), template)
            found.append(msgspec.structs.replace(one, host_status=self._host_status(row)) if row.host else one)
        return found

    def _host_status(self, row: AnyRow) -> str:
        """Of a server with a host; empty when no nova-compute is registered there."""
        if row.host_disabled is None:
            return ""
        if row.host_forced_down:
            return "DOWN"
        age = (as_time(row.clock) - row.host_seen_at).total_seconds() if row.host_seen_at else None
        if age is None or age > self.deps.settings.service_down_time:
            return "UNKNOWN"
        return "MAINTENANCE" if row.host_disabled else "UP"

    def get_target(self, query: ServerQuery) -> ServerTarget:
        """server.NotFound outside the scope."""
        with self.deps.cell.reading() as tx:
            return servers.target(tx, query.uuid, query.scope, query.with_deleted)

    def get_console_output(self, query: ConsoleQuery) -> str:
        """server.NotFound, server.NoHost; what the host says: NotFound, Conflict, Unavailable."""
        with self.deps.cell.reading() as tx:
            row = servers.rows_of(tx, [query.uuid]).get(query.uuid)
        if row is None:
            raise errors.server.NotFound(server=query.uuid)
        if not row.host:
            raise errors.server.NoHost(server=query.uuid)
        return str(self.deps.compute.get_console_output(row.host, query.uuid, query.length).text)

    # -- writes

    def update_server(self, update: ServerUpdate) -> ServerDetail:
        """The fields that the update names; the server after it. server.NotFound."""
        changes = {name: getattr(update, name) for name in update.fields}
        self.deps.cell.transact(lambda tx: servers.update(tx, update.uuid, changes))
        return self.get_server(ServerQuery(uuid=update.uuid, scope=update.scope))

    def order_server(self, order: ServerOrder) -> None:
        """Begin an action: the state table decides, the journal keeps it, this process runs it."""
        if order.action == "shelve":
            return shelve(self.deps, order.uuid)
        if order.action != "force_delete" and order.action not in self.deps.runner.workflows:
            raise errors.Bug(f"no workflow is named '{order.action}'")
        entry = self.deps.cell.transact(lambda tx: begin_order(self.deps, tx, order))
        self.deps.runner.start([entry])

    def lock_server(self, change: LockChange) -> None:
        """``by`` None unlocks. Nothing, where it is locked already by somebody in ``unless``. server.NotFound;
        server.LockedMeanwhile: it is to be unlocked, and is locked by somebody in ``unless``."""
        who = context.current()

        def write(tx: Connection) -> None:
            row = servers.lock_row(tx, change.uuid)
            if row.locked_by in change.unless:
                if change.by is None:
                    raise errors.server.LockedMeanwhile(server=change.uuid, by=row.locked_by)
                return
            servers.update(tx, change.uuid, {"locked_by": change.by, "locked_reason": change.reason})
            actions.record(tx, change.uuid, "lock" if change.by else "unlock",
                           (who.request_id, who.user_id, who.project_id))
        self.deps.cell.transact(write)

    def change_metadata(self, change: MetadataChange) -> Mapping[str, str]:
        """server.NotFound, server.WrongState; server.NoSuchMetadata: a key to delete is not there; quota.TooMany, only
        where there are more items than before."""
        who = context.current()
        whose = quota.owner(self.deps, who.project_id, who.user_id)
        with self.deps.api.reading() as tx:
            limits, _user = quota.effective(self.deps, tx, whose)
        return self.deps.cell.transact(lambda tx: self._change_metadata(tx, change, limits))

    def _change_metadata(self, tx: Connection, change: MetadataChange, limits: Mapping[str, int]) -> dict[str, str]:
        row = servers.lock_row(tx, change.uuid)
        if VmState(row.vm_state) not in METADATA_STATES:
            verb = "delete metadata" if change.delete else "update metadata"
            raise errors.server.WrongState(action=verb, server=change.uuid, attribute="vm_state", value=row.vm_state)
        now = servers.children(tx, [change.uuid])[0].get(change.uuid, {})
        missing = [key for key in change.delete if key not in now]
        if missing:
            raise errors.server.NoSuchMetadata()
        kept = {} if change.replace else {key: value for key, value in now.items() if key not in change.delete}
        after = {**kept, **change.items}
        if not quota.fits(limits.get("metadata_items", -1), 0, len(after)) and len(after) > len(now):
            raise errors.quota.TooMany(what="too many items of metadata", limit=limits["metadata_items"])
        servers.change_metadata(tx, change.uuid, change.items, [key for key in now if key not in after])
        servers.update(tx, change.uuid, {})
        return after

    # -- the journal

    def list_actions(self, query: ActionQuery) -> tuple[InstanceAction, ...]:
        """server.NotFound, api.PageMarkerNotFound."""
        most = self.deps.settings.max_limit
        with self.deps.cell.reading() as tx:
            return actions.select(tx, query, most if query.limit is None else min(query.limit, most))

    def get_action(self, query: ActionQuery) -> InstanceAction:
        """server.NotFound, server.ActionNotFound."""
        with self.deps.cell.reading() as tx:
            return actions.get(tx, query)

    def get_request(self, request_id: str) -> tuple[InstanceAction, ...]:
        """The oldest operation first; () when nothing is known of it."""
        return request_traces.of_request(self.deps, request_id)


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
    """No server at all: an empty page."""
    return ServerPage()


#: ``silent_cells`` -> what a list is then. For all else it fails.
PAGES: Mapping[str, Callable[[Deps, ServerListQuery, int], ServerPage]] = {"skip": skipped, "show": shown}
