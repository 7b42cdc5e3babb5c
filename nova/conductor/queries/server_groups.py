"""Queries and changes of server groups, within the quota."""

from __future__ import annotations

import msgspec

from nova import context, errors
from nova.conductor.engine.deps import Deps
from nova.conductor.quota import quota
from nova.db.quota import ledger
from nova.db.server import server_groups
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.quota.quotas import UNLIMITED
from nova.model.server.server_groups import NewServerGroup, ServerGroup, ServerGroupQuery


class ServerGroups:
    """The server group calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_server_groups(self, query: ServerGroupQuery) -> tuple[ServerGroup, ...]:
        """Return server groups in the order of creation."""
        most = self.deps.settings.max_limit
        limit = most if query.page.limit is None else min(query.page.limit, most)
        with self.deps.api.reading() as tx:
            return server_groups.select(tx, query.scope, msgspec.structs.replace(query.page, limit=limit))

    def get_server_group(self, uuid: str, scope: Scope) -> ServerGroup:
        """Return a group. Raises server.ServerGroupNotFound, also outside the scope."""
        with self.deps.api.reading() as tx:
            return server_groups.get(tx, uuid, scope)

    def create_server_group(self, group: NewServerGroup) -> ServerGroup:
        """Create a group for the user and project of the context. A redelivered message creates no second group. Raises
        Forbidden without user and project; quota.TooMany."""
        who = context.current()
        if not who.project_id or not who.user_id:
            raise errors.Forbidden("A server group needs a user and a project.")
        project_id, user_id = who.project_id, who.user_id

        whose = quota.owner(self.deps, project_id, user_id)

        def write(tx: Connection) -> ServerGroup:
            ledger.lock_owner(tx, project_id)
            try:
                return server_groups.get(tx, group.uuid, Scope(project_id=project_id))  # redelivered message
            except errors.server.ServerGroupNotFound:
                self._check_quota(tx, whose)
            server_groups.insert(tx, group, project_id, user_id)
            return server_groups.get(tx, group.uuid, Scope(project_id=project_id))
        return self.deps.api.transact(write)

    def _check_quota(self, tx: Connection, whose: quota.Owner) -> None:
        used = server_groups.usage(tx, whose.project_id, str(whose.user_id))
        project, user = quota.effective(self.deps, tx, whose)
        for limits, now in ((project, used["project"]), (user, used["user"])):
            limit = limits.get("server_groups", UNLIMITED)
            if not quota.fits(limit, now["server_groups"], 1):
                raise errors.quota.TooMany(what="too many server groups", limit=limit)

    def delete_server_group(self, uuid: str, scope: Scope) -> None:
        """Delete a group. Raises server.ServerGroupNotFound, also outside the scope."""
        self.deps.api.transact(lambda tx: server_groups.delete(tx, uuid, scope))
