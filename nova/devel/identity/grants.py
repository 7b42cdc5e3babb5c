"""Role assignments of FakeKeystone, and their list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova.devel.identity.directory import SYSTEM, Directory, RoleGrant, ScopeKind, TokenScope
from nova.devel.service import FakeCall, FakeError, FakeRoute, admin

#: Kinds that have roles, and their parameter in paths.
WHO = (("users", "user_id"), ("groups", "group_id"))


def _grant(directory: Directory, call: FakeCall) -> RoleGrant:
    """Return the assignment in the path. Raises 404 if a part of it does not exist."""
    return RoleGrant(_who(directory, call), _scope(directory, call),
                     directory.get("roles", call.named["role_id"])["id"])


def _who(directory: Directory, call: FakeCall) -> str:
    """Return the user's id, or the group's."""
    return next(directory.get(plural, call.named[name])["id"] for plural, name in WHO if name in call.named)


def _scope(directory: Directory, call: FakeCall) -> TokenScope:
    if "project_id" in call.named:
        return TokenScope(ScopeKind.PROJECT, directory.get("projects", call.named["project_id"])["id"])
    if "domain_id" in call.named:
        return TokenScope(ScopeKind.DOMAIN, directory.get("domains", call.named["domain_id"])["id"])
    return SYSTEM


def give(directory: Directory, call: FakeCall) -> None:
    """PUT .../users/{user_id}/roles/{role_id}, or of a group: assign a role; repeating it is not an error."""
    directory.grants.add(_grant(directory, call))


def look(directory: Directory, call: FakeCall) -> None:
    """HEAD or GET the assignment: 204 or 404."""
    if _grant(directory, call) not in directory.grants:
        raise FakeError(404, f"Could not find role assignment with role: {call.named['role_id']}.")


def take(directory: Directory, call: FakeCall) -> None:
    """DELETE the assignment."""
    look(directory, call)
    directory.grants.remove(_grant(directory, call))


def list_given(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET .../users/{user_id}/roles, or of a group: list assigned roles, without implied ones."""
    ids = directory.roles_of(_who(directory, call), _scope(directory, call), implied=False)
    return {"roles": [directory.things["roles"][one] for one in ids],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def assignments(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET /v3/role_assignments. ``effective``: include implied roles, and replace groups by their members;
    ``include_names``: add names to the ids."""
    query = call.http.GET
    wanted = {"users": query.get("user.id"), "groups": query.get("group.id"), "role": query.get("role.id"),
              "project": query.get("scope.project.id"), "domain": query.get("scope.domain.id"),
              "system": query.get("scope.system") and SYSTEM.id}
    grants = _effective(directory) if _said(call, "effective") else directory.grants
    found = [one for one in sorted(grants) if _fits(directory, one, wanted)]
    return {"role_assignments": [_shown(directory, one, _said(call, "include_names")) for one in found],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def _said(call: FakeCall, name: str) -> bool:
    """Return whether a flag of the query is set and not disabled."""
    return name in call.http.GET and call.http.GET[name].lower() not in ("0", "false")


def _effective(directory: Directory) -> Iterable[RoleGrant]:
    return {RoleGrant(user_id, one.scope, role_id) for one in directory.grants
            for user_id in _users(directory, one.user_id) for role_id in directory.with_implied([one.role_id])}


def _users(directory: Directory, who: str) -> list[str]:
    """Return a group's members, or the user."""
    return [one.user_id for one in directory.memberships if one.group_id == who] if _is_group(directory, who) else [who]


def _is_group(directory: Directory, who: str) -> bool:
    return who in directory.things["groups"]


def _fits(directory: Directory, grant: RoleGrant, wanted: dict[str, str | None]) -> bool:
    facts = {_kind(directory, grant): grant.user_id, "role": grant.role_id, grant.scope.kind: grant.scope.id}
    return all(facts.get(name) == value for name, value in wanted.items() if value is not None)


def _shown(directory: Directory, grant: RoleGrant, names: bool) -> dict[str, object]:
    scope: dict[str, object] = {"system": {"all": True}}
    if grant.scope.kind != ScopeKind.SYSTEM:
        scope = {grant.scope.kind: _named(directory, f"{grant.scope.kind}s", grant.scope.id, names)}
    plural = _kind(directory, grant)
    return {plural[:-1]: _named(directory, plural, grant.user_id, names),
            "role": _named(directory, "roles", grant.role_id, names), "scope": scope, "links": {}}


def _kind(directory: Directory, grant: RoleGrant) -> str:
    return "groups" if _is_group(directory, grant.user_id) else "users"


def _named(directory: Directory, plural: str, thing_id: str, names: bool) -> dict[str, object]:
    if not names:
        return {"id": thing_id}
    thing = directory.things[plural][thing_id]
    domain = directory.things["domains"].get(thing.get("domain_id") or "")
    return {"id": thing_id, "name": thing["name"],
            **({"domain": {"id": domain["id"], "name": domain["name"]}} if domain else {})}


def _rows(where: str) -> Iterable[FakeRoute[Directory]]:
    for plural, name in WHO:
        path = f"{where}/{plural}/{{{name}}}/roles"
        yield FakeRoute("GET", path, list_given, admin)
        for method, handler in (("PUT", give), ("GET", look), ("DELETE", take)):
            yield FakeRoute(method, f"{path}/{{role_id}}", handler, admin, 204)


ROUTES: tuple[FakeRoute[Directory], ...] = (
    *_rows("/v3/projects/{project_id}"), *_rows("/v3/domains/{domain_id}"), *_rows("/v3/system"),
    FakeRoute("GET", "/v3/role_assignments", assignments, admin),
)
