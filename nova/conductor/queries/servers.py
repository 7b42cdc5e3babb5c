"""Server queries and changes: read, list, update, lock, and start actions."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from nova import context, errors
from nova.conductor.actions.by_name import Requested, Started, begin_orders
from nova.conductor.actions.shelve import shelve
from nova.conductor.engine.deps import Deps
from nova.conductor.queries import request_traces
from nova.conductor.quota import quota
from nova.db.host.services import as_time
from nova.db.quota import ledger
from nova.db.server import actions, row_locks, server_groups, server_lists, servers
from nova.db.server.server_lists import ListedServer, Marker
from nova.db.server.servers import DetailRow
from nova.db.sql.engine import Connection, DatabaseUnavailable, may_be_done
from nova.gathering import Gathering
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

MATCHED_AT_ONCE = 2  # lists by pattern at a time, per project and conductor process


class Servers:
    """The server calls of ConductorRPC, except create."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self._matching: Counter[str] = Counter()  # running lists by pattern, by project
        self._lock = threading.Lock()
        self._begin = Gathering("begin", self._begin_all, may_be_done)

    # -- reads

    def get_server(self, query: ServerQuery) -> ServerDetail:
        """Return a server. ``as_kept``: do not ask the network service for its security groups.

        Raises server.NotFound outside the scope; DatabaseUnavailable, unless ``with_unknown`` is set and the API
        database knows enough about the server.
        """
        found = or_unknown(self.deps, query, lambda: self._read(query))
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
        """Return a page of servers.

        Raises api.PageMarkerNotFound; api.PageBadRegex for a pattern that is invalid or would keep the database
        busy; api.PageTooManyPatterns; DatabaseUnavailable, except for the ``silent_cells`` of ``PAGES``.
        """
        limit = self.limit(query)
        if limit <= 0:
            return ServerPage()
        try:
            return self._page(query, limit)
        except DatabaseUnavailable:
            if query.silent_cells not in PAGES:
                raise
            return PAGES[query.silent_cells](self.deps, query, limit)

    def limit(self, query: ServerListQuery) -> int:
        """Return the maximum length of the query's page."""
        most = self.deps.settings.max_limit
        return most if query.page.limit is None else min(query.page.limit, most)

    @contextlib.contextmanager
    def _share(self, query: ServerListQuery) -> Iterator[None]:
        """Limit a project's running lists by pattern, each of which may take the database seconds. Raises
        api.PageTooManyPatterns."""
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
                self._matching = +self._matching  # drops counts of 0

    def _page(self, query: ServerListQuery, limit: int) -> ServerPage:
        if not query.detail:
            return ServerPage(summaries=tuple(ServerSummary(uuid=row.uuid, name=row.name)
                                              for row in self.names(query, limit)))
        with self._share(query), self.deps.cell.reading() as tx:
            found = self._details(tx, server_lists.select(tx, query, limit))
        return ServerPage(servers=self._with_groups_now(found))

    def names(self, query: ServerListQuery, limit: int, marker: Marker | None = None) -> list[ListedServer]:
        """Return the names and the sort values of a page of this cell's servers. ``marker``: the query's, from another
        cell. Raises as :meth:`list_servers`; DatabaseUnavailable."""
        with self._share(query), self.deps.cell.reading() as tx:
            return server_lists.names(tx, query, limit, marker)

    def details(self, uuids: Sequence[str]) -> tuple[ServerDetail, ...]:
        """Return these servers of the cell, deleted ones included. Raises DatabaseUnavailable."""
        with self.deps.cell.reading() as tx:
            found = self._details(tx, server_lists.of(tx, uuids))
        return self._with_groups_now(found)

    def _with_groups_now(self, found: Sequence[ServerDetail]) -> tuple[ServerDetail, ...]:
        """Return the servers with the network service's security groups; no transaction waits for that service."""
        names = self.deps.networking.groups_shown(found) if found else {}
        return tuple(msgspec.structs.replace(one, security_groups=names[one.uuid]) if one.uuid in names else one
                     for one in found)

    def _details(self, tx: Connection, rows: Sequence[DetailRow]) -> list[ServerDetail]:
        """Return the servers with their metadata and tags: one more statement for all rows together."""
        metadata, tags = servers.children(tx, [row.uuid for row in rows])
        template = self.deps.settings.instance_name_template
        return [servers.detail(row, (metadata.get(row.uuid, {}), tags.get(row.uuid, ())), template,
                               self._host_status(row) if row.host else "")
                for row in rows]

    def _host_status(self, row: DetailRow) -> str:
        """Return the status of the server's host; empty if no nova-compute is registered there."""
        if row.host_disabled is None:
            return ""
        if row.host_forced_down:
            return "DOWN"
        age = (as_time(row.clock) - row.host_seen_at).total_seconds() if row.host_seen_at else None
        if age is None or age > self.deps.settings.service_down_time:
            return "UNKNOWN"
        return "MAINTENANCE" if row.host_disabled else "UP"

    def get_target(self, query: ServerQuery) -> ServerTarget:
        """Return the server's owner and place. Raises server.NotFound outside the scope."""
        with self.deps.cell.reading() as tx:
            return servers.target(tx, query.uuid, query.scope, query.with_deleted)

    def get_console_output(self, query: ConsoleQuery) -> str:
        """Return console output. Raises server.NotFound, server.NoHost; NotFound, Conflict, Unavailable from the
        host."""
        with self.deps.cell.reading() as tx:
            row = servers.rows_of(tx, [query.uuid]).get(query.uuid)
        if row is None:
            raise errors.server.NotFound(server=query.uuid)
        if not row.host:
            raise errors.server.NoHost(server=query.uuid)
        return str(self.deps.compute.get_console_output(row.host, query.uuid, query.length).text)

    # -- writes

    def update_server(self, update: ServerUpdate) -> ServerDetail:
        """Change the named fields and return the server. Raises server.NotFound."""
        changes = {name: getattr(update, name) for name in update.fields}
        self.deps.cell.transact(lambda tx: servers.update(tx, update.uuid, changes))
        return self.get_server(ServerQuery(uuid=update.uuid, scope=update.scope))

    def order_server(self, order: ServerOrder) -> None:
        """Start an action: the state table allows it, the journal stores it, this process runs it."""
        if order.action == "shelve":
            return shelve(self.deps, order.uuid)
        if order.action != "force_delete" and order.action not in self.deps.runner.workflows:
            raise errors.Bug(f"no workflow is named '{order.action}'")
        entry, server = self._begin(Requested(order, context.current()))
        self.deps.runner.start([entry], None if server is None else {order.uuid: server})

    def _begin_all(self, requests: Sequence[Requested]) -> list[Started | errors.NovaError]:
        """Start the actions that several users ordered at the same time, in one transaction."""
        def begin(tx: Connection) -> list[Started | errors.NovaError]:
            if len(requests) > 1:
                row_locks.lock_together(tx, {one.order.uuid for one in requests})
            return begin_orders(self.deps, tx, requests)
        return self.deps.cell.transact(begin)

    def lock_server(self, change: LockChange) -> None:
        """Lock the server, or unlock it with ``by`` None. No effect if a party in ``unless`` has locked it already.

        Raises server.NotFound; server.LockedMeanwhile if a party in ``unless`` holds the lock that must be removed.
        """
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
        """Change a server's metadata and return all of it.

        Raises server.NotFound, server.WrongState; server.NoSuchMetadata if a key to delete does not exist;
        quota.TooMany only if there are more items than before.
        """
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
        """Return a server's actions. Raises server.NotFound, api.PageMarkerNotFound."""
        most = self.deps.settings.max_limit
        with self.deps.cell.reading() as tx:
            return actions.select(tx, query, most if query.limit is None else min(query.limit, most))

    def get_action(self, query: ActionQuery) -> InstanceAction:
        """Return an action. Raises server.NotFound, server.ActionNotFound."""
        with self.deps.cell.reading() as tx:
            return actions.get(tx, query)

    def get_request(self, request_id: str) -> tuple[InstanceAction, ...]:
        """Return the operations of a request, the oldest first; () for an unknown request."""
        return request_traces.of_request(self.deps, request_id)


NO_ZONE = "UNKNOWN"  # without a requested zone, only the cell knows the server's zone
#: Placeholder in lists, which do not show flavors of unknown servers.
NO_FLAVOR = Flavor(flavorid="", name="", memory_mb=0, vcpus=0, root_gb=0)


def or_unknown(deps: Deps, query: ServerQuery, read: Callable[[], ServerDetail]) -> ServerDetail:
    """Return the server as ``read`` does or, if its cell does not answer and the query is ``with_unknown``, as the API
    database knows it. Raises the cell's error if it does not."""
    try:
        return read()
    except (DatabaseUnavailable, errors.cell.Busy, errors.cell.NotServed):
        unknown = server(deps, query) if query.with_unknown else None
        if unknown is None:
            raise
        return unknown


def server(deps: Deps, query: ServerQuery) -> ServerDetail | None:
    """Return a server from the API database, in two statements; None if the ledger's row is too old to have its facts.
    Raises NotFound."""
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


def shown(deps: Deps, query: ServerListQuery, limit: int, cells: Sequence[str] = ()) -> ServerPage:
    """Return the newest servers of the scope (of these cells only, or all) from the API database, in one statement."""
    with deps.api.reading() as tx:
        rows = ledger.newest(tx, query.scope, limit, cells)
    if not query.detail:
        return ServerPage(summaries=tuple(ServerSummary(uuid=row.server_uuid, name="", unknown=True) for row in rows))
    return ServerPage(servers=tuple(
        ServerDetail(id=0, name="", vm_state=VmState.UNKNOWN, unknown=True, uuid=row.server_uuid, flavor=NO_FLAVOR,
                     project_id=row.project_id, user_id=row.user_id, created_at=row.created_at) for row in rows))


def skipped(deps: Deps, query: ServerListQuery, limit: int) -> ServerPage:
    """Return an empty page."""
    return ServerPage()


#: ``silent_cells`` -> the page of a list while the cell's database is down. For other values the list fails.
PAGES: Mapping[str, Callable[[Deps, ServerListQuery, int], ServerPage]] = {"skip": skipped, "show": shown}
