"""Who has which role where: FakeKeystone's grants and the list of role assignments."""

from __future__ import annotations

from collections.abc import Iterable

from nova.model.base import Json
from nova.testing.identity_directory import SYSTEM, Directory, RoleGrant, ScopeKind, TokenScope
from nova.testing.service import FakeCall, FakeError, FakeRoute, admin


def _grant(directory: Directory, call: FakeCall) -> RoleGrant:
    """What the path names. 404 for a part of it that is not there."""
    named = call.named
    return RoleGrant(directory.get("users", named["user_id"])["id"], _scope(directory, call),
                     directory.get("roles", named["role_id"])["id"])


def _scope(directory: Directory, call: FakeCall) -> TokenScope:
    if "project_id" in call.named:
        return TokenScope(ScopeKind.PROJECT, directory.get("projects", call.named["project_id"])["id"])
    if "domain_id" in call.named:
        return TokenScope(ScopeKind.DOMAIN, directory.get("domains", call.named["domain_id"])["id"])
    return SYSTEM


def give(directory: Directory, call: FakeCall) -> None:
    """PUT .../users/{user_id}/roles/{role_id}; again is no error."""
    directory.grants.add(_grant(directory, call))


def look(directory: Directory, call: FakeCall) -> None:
    """HEAD, GET of the same: 204 or 404."""
    if _grant(directory, call) not in directory.grants:
        raise FakeError(404, f"Could not find role assignment with role: {call.named['role_id']}.")


def take(directory: Directory, call: FakeCall) -> None:
    """DELETE of the same."""
    look(directory, call)
    directory.grants.remove(_grant(directory, call))


def list_given(directory: Directory, call: FakeCall) -> Json:
    """GET .../users/{user_id}/roles: roles as they were given, without those that they imply."""
    user_id = directory.get("users", call.named["user_id"])["id"]
    ids = directory.roles_of(user_id, _scope(directory, call), implied=False)
    return {"roles": [directory.things["roles"][one] for one in ids],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def assignments(directory: Directory, call: FakeCall) -> Json:
    """GET /v3/role_assignments. ``effective``: with implied roles; ``include_names``: names beside ids."""
    query = call.http.GET
    wanted = {"user": query.get("user.id"), "role": query.get("role.id"), "project": query.get("scope.project.id"),
              "domain": query.get("scope.domain.id"), "system": query.get("scope.system") and SYSTEM.id}
    grants = _effective(directory) if _said(call, "effective") else directory.grants
    found = [] if query.get("group.id") else [one for one in sorted(grants) if _fits(one, wanted)]
    return {"role_assignments": [_shown(directory, one, _said(call, "include_names")) for one in found],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def _said(call: FakeCall, name: str) -> bool:
    """A flag of the query: there, and not said to be off."""
    return name in call.http.GET and call.http.GET[name].lower() not in ("0", "false")


def _effective(directory: Directory) -> Iterable[RoleGrant]:
    return {RoleGrant(one.user_id, one.scope, role_id) for one in directory.grants
            for role_id in directory.with_implied([one.role_id])}


def _fits(grant: RoleGrant, wanted: dict[str, str | None]) -> bool:
    facts = {"user": grant.user_id, "role": grant.role_id, grant.scope.kind: grant.scope.id}
    return all(facts.get(name) == value for name, value in wanted.items() if value is not None)


def _shown(directory: Directory, grant: RoleGrant, names: bool) -> dict[str, Json]:
    scope: dict[str, Json] = {"system": {"all": True}}
    if grant.scope.kind != ScopeKind.SYSTEM:
        scope = {grant.scope.kind: _named(directory, f"{grant.scope.kind}s", grant.scope.id, names)}
    return {"user": _named(directory, "users", grant.user_id, names),
            "role": _named(directory, "roles", grant.role_id, names), "scope": scope, "links": {}}


def _named(directory: Directory, plural: str, thing_id: str, names: bool) -> dict[str, Json]:
    if not names:
        return {"id": thing_id}
    thing = directory.things[plural][thing_id]
    domain = directory.things["domains"].get(thing.get("domain_id") or "")
    return {"id": thing_id, "name": thing["name"],
            **({"domain": {"id": domain["id"], "name": domain["name"]}} if domain else {})}


def _rows(where: str) -> Iterable[FakeRoute[Directory]]:
    path = f"{where}/users/{{user_id}}/roles"
    yield FakeRoute("GET", path, list_given, admin)
    for method, handler in (("PUT", give), ("GET", look), ("DELETE", take)):
        yield FakeRoute(method, f"{path}/{{role_id}}", handler, admin, 204)


ROUTES: tuple[FakeRoute[Directory], ...] = (
    *_rows("/v3/projects/{project_id}"), *_rows("/v3/domains/{domain_id}"), *_rows("/v3/system"),
    FakeRoute("GET", "/v3/role_assignments", assignments, admin),
)
