"""Server groups: servers that should share a host, or should not."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Json, Page, Scope, Time, Value

AFFINITY, ANTI_AFFINITY = "affinity", "anti-affinity"
SOFT_AFFINITY, SOFT_ANTI_AFFINITY = "soft-affinity", "soft-anti-affinity"
#: Policies that a claim keeps; the others only weigh.
HARD_POLICIES = (AFFINITY, ANTI_AFFINITY)
SOFT_POLICIES = (SOFT_AFFINITY, SOFT_ANTI_AFFINITY)
#: The rule of anti-affinity: so many members may share a host.
MAX_PER_HOST = "max_server_per_host"


def hinted(hints: Mapping[str, object]) -> Json:
    """The group that a create's scheduler hints name: its uuid, alone or the first of a list. None for none."""
    asked = hints.get("group")
    return (asked[0] if asked else None) if isinstance(asked, list | tuple) else asked or None


class ServerGroup(Value):
    """A group, whole. ``members`` are uuids of servers that are not deleted, the oldest first."""

    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: Mapping[str, int] = {}
    members: tuple[str, ...] = ()
    created_at: Time | None = None


class NewServerGroup(Value):
    """What a create asks for. ``rules`` has at most MAX_PER_HOST, for anti-affinity only. ``uuid`` is the request's
    own choice: a broker may hand a message out twice, and the group is made once."""

    uuid: str
    name: str
    policy: str
    rules: Mapping[str, int] = {}


class ServerGroupQuery(Value):
    """Some groups, in the order of their making: those of a scope, a page of them."""

    scope: Scope = Scope()
    page: Page = Page()
