"""The server group a create asks for: it must be there, be the caller's to use, and have room."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping
from typing import NamedTuple

from nova import context, errors
from nova.conductor.engine import quota
from nova.db import server_groups
from nova.db.engine import Connection
from nova.model.base import Scope
from nova.model.quotas import UNLIMITED
from nova.model.server_groups import hinted
from nova.model.servers import NewServer


class BadGroup(errors.Invalid):
    code, message = "server.bad_group", "ServerGroup {group} in the scheduler hint 'group' could not be found."


class Joining(NamedTuple):
    """The group's key, locked, and how many servers may join it (None: any number)."""

    key: int
    room: int | None


def joining(tx: Connection, order: NewServer, who: context.RequestContext, limits: Mapping[str, int]) -> Joining | None:
    """None when the request asks for no group. BadGroup; OverQuota when fewer than ``min_count`` fit in."""
    name = hinted(order.scheduler_hints)
    if name is None:
        return None
    scope = Scope() if who.is_admin else Scope(project_id=who.project_id)
    try:
        key, count = server_groups.room_for(tx, str(uuids.UUID(str(name))), scope, str(who.user_id))
    except (server_groups.NoSuchGroup, ValueError):
        raise BadGroup(group=name) from None
    limit = limits.get("server_group_members", UNLIMITED)
    room = quota.room(limit, count, 1)
    if room is not None and room < order.min_count:
        raise quota.TooManyItems(what="too many servers in group", limit=limit)
    return Joining(key, room)


def join(tx: Connection, group: Joining | None, server_uuids: list[str], who: context.RequestContext) -> None:
    """In the transaction that opens the servers' ledger rows."""
    if group is not None:
        server_groups.join(tx, group.key, server_uuids, str(who.user_id))
