"""Server groups: servers that should or should not share a host."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Scope, Time, Value

AFFINITY, ANTI_AFFINITY = "affinity", "anti-affinity"
SOFT_AFFINITY, SOFT_ANTI_AFFINITY = "soft-affinity", "soft-anti-affinity"
#: Policies that a claim enforces; the others only affect weights.
HARD_POLICIES = (AFFINITY, ANTI_AFFINITY)
SOFT_POLICIES = (SOFT_AFFINITY, SOFT_ANTI_AFFINITY)
#: Rule of anti-affinity: the number of members that may share a host.
MAX_PER_HOST = "max_server_per_host"


def hinted(hints: Mapping[str, object]) -> str | None:
    """Return the group in a create request's scheduler hints: its uuid, or the first uuid of a list. None if there is
    none."""
    asked = hints.get("group")
    first = (asked[0] if asked else None) if isinstance(asked, list | tuple) else asked
    return str(first) if first else None


class ServerGroup(Value):
    """A complete group. ``members`` are uuids of servers that are not deleted, the oldest first."""

    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: Mapping[str, int] = {}
    members: tuple[str, ...] = ()
    created_at: Time | None = None


class NewServerGroup(Value):
    """A group to create. ``rules`` has at most MAX_PER_HOST, for anti-affinity only. The request chooses ``uuid``: if
    the broker delivers a message twice, the group is created only once."""

    uuid: str
    name: str
    policy: str
    rules: Mapping[str, int] = {}


class ServerGroupQuery(Value):
    """A page of groups of a scope, in order of their creation."""

    scope: Scope = Scope()
    page: Page = Page()
