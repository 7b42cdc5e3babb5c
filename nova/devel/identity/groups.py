"""Group memberships of FakeKeystone. Members have the roles of the group."""

from __future__ import annotations

from collections.abc import Mapping

from nova.devel.identity.directory import Directory, Membership
from nova.devel.identity.resources import owner_or_admin, page
from nova.devel.service import FakeCall, FakeError, FakeRoute, admin


def _membership(directory: Directory, call: FakeCall) -> Membership:
    """Return the membership in the path. Raises 404 if a part of it does not exist."""
    return Membership(directory.get("groups", call.named["group_id"])["id"],
                      directory.get("users", call.named["user_id"])["id"])


def join(directory: Directory, call: FakeCall) -> None:
    """PUT /v3/groups/{group_id}/users/{user_id}: add a member; repeating it is not an error."""
    directory.memberships.add(_membership(directory, call))


def look(directory: Directory, call: FakeCall) -> None:
    """HEAD or GET the membership: 204 or 404."""
    if _membership(directory, call) not in directory.memberships:
        raise FakeError(404, f"Could not find user {call.named['user_id']} in group {call.named['group_id']}.")


def leave(directory: Directory, call: FakeCall) -> None:
    """DELETE the membership."""
    look(directory, call)
    directory.memberships.remove(_membership(directory, call))


def members(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET /v3/groups/{group_id}/users: list members."""
    group_id = directory.get("groups", call.named["group_id"])["id"]
    return page(call, "users", [directory.things["users"][one.user_id] for one in sorted(directory.memberships)
                                if one.group_id == group_id])


def groups_of_user(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET /v3/users/{user_id}/groups: list the user's groups."""
    user_id = directory.get("users", call.named["user_id"])["id"]
    return page(call, "groups", [directory.things["groups"][one.group_id] for one in sorted(directory.memberships)
                                 if one.user_id == user_id])


_ONE = "/v3/groups/{group_id}/users/{user_id}"
ROUTES: tuple[FakeRoute[Directory], ...] = (
    FakeRoute("PUT", _ONE, join, admin, 204), FakeRoute("GET", _ONE, look, admin, 204),
    FakeRoute("DELETE", _ONE, leave, admin, 204), FakeRoute("GET", "/v3/groups/{group_id}/users", members, admin),
    FakeRoute("GET", "/v3/users/{user_id}/groups", groups_of_user, owner_or_admin),
)
