"""Domains, projects, users, roles, regions, services and endpoints of FakeKeystone: five operations each, from one
table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nova.devel.identity.credentials import owner, owner_or_admin
from nova.devel.identity.directory import Directory, ScopeKind
from nova.devel.identity.kinds import KINDS, IdentityKind
from nova.devel.identity.records import IdentityRecord
from nova.devel.identity.requests import text_of
from nova.devel.service import FakeCall, FakeError, FakeRoute, Rule, admin

Operation = Callable[[Directory, FakeCall], Mapping[str, object]]
Ids = dict[str, "Ids"] | None  # nested ids of projects


def list_all(kind: IdentityKind) -> Operation:
    """Return the GET of the kind's list, with its filters."""
    def run(directory: Directory, call: FakeCall) -> Mapping[str, object]:
        wanted = {name: call.http.GET[name] for name in kind.found_by if name in call.http.GET}
        if kind.plural == "projects" and wanted.get("is_domain", "").lower() in ("true", "1"):
            return page(call, kind.plural, [])
        return page(call, kind.plural, [one for one in directory.things[kind.plural].values() if _fits(one, wanted)])
    return run


def create(kind: IdentityKind) -> Operation:
    """Return the POST of the kind. The domain defaults to the token's. Raises 400 or 409."""
    def run(directory: Directory, call: FakeCall) -> Mapping[str, object]:
        given = dict(call.member(kind.singular))
        if "domain_id" in kind.members and kind.plural != "roles" and given.get("domain_id") is None:
            given.pop("domain_id", None)
            given |= {"domain_id": call.caller.domain_id} if call.caller.domain_id else {}
        if kind.plural == "endpoints":
            given["region_id"] = given["region"] = given.get("region_id") or given.get("region")
        thing = directory.add(kind.plural, given)
        if kind.plural == "projects" and thing["parent_id"] is None:
            thing["parent_id"] = thing["domain_id"]
        return {kind.singular: shown(call, kind.plural, thing)}
    return run


def show(kind: IdentityKind) -> Operation:
    """Return the GET of one resource. Raises 404."""
    def run(directory: Directory, call: FakeCall) -> Mapping[str, object]:
        return {kind.singular: shown(call, kind.plural, directory.get(kind.plural, call.named[_parameter(kind)]))}
    return run


def show_project(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET one project, with its ancestors (``parents_as_list``, ``parents_as_ids``) and descendants (``subtree_as_..``)
    if the query requests them. Raises 404."""
    projects = directory.things["projects"]
    project = directory.get("projects", call.named["project_id"])
    below = {key: [one["id"] for one in projects.values() if one["parent_id"] == key] for key in projects}
    found = shown(call, "projects", project)
    for name, ids in (("parents", _above(projects, project)), ("subtree", _tree(below, project["id"]))):
        if f"{name}_as_ids" in call.http.GET:
            found[name] = ids
        elif f"{name}_as_list" in call.http.GET:
            found[name] = [{"project": shown(call, "projects", projects[one])} for one in _flat(ids)]
    return {"project": found}


def _above(projects: Mapping[str, IdentityRecord], project: IdentityRecord) -> Ids:
    """Return nested ids of the ancestors, the nearest first, without the domain. None if there are none."""
    parent = projects.get(project["parent_id"] or "")
    return {parent["id"]: _above(projects, parent)} if parent else None


def _tree(below: Mapping[str, list[str]], top: str) -> Ids:
    return {one: _tree(below, one) for one in below[top]} or None


def _flat(ids: Ids) -> list[str]:
    return [] if ids is None else [one for key, inside in ids.items() for one in (key, *_flat(inside))]


def update(kind: IdentityKind) -> Operation:
    """Return the PATCH of the kind. Raises 400, 404 or 409."""
    def run(directory: Directory, call: FakeCall) -> Mapping[str, object]:
        thing = directory.change(kind.plural, call.named[_parameter(kind)], call.member(kind.singular))
        return {kind.singular: shown(call, kind.plural, thing)}
    return run


def delete(kind: IdentityKind) -> Callable[[Directory, FakeCall], None]:
    """Return the DELETE of the kind. Raises 403 or 404."""
    def run(directory: Directory, call: FakeCall) -> None:
        directory.remove(kind.plural, call.named[_parameter(kind)])
    return run


def set_own_password(directory: Directory, call: FakeCall) -> None:
    """POST /v3/users/{user_id}/password: change the own password. Raises 400, or 401 for a wrong old password."""
    given, user_id = call.member("user"), call.named["user_id"]
    original, fresh = text_of(given, "original_password"), text_of(given, "password")
    old = directory.passwords.get(user_id)
    if old is None or not old.is_of(original):
        raise FakeError(401, "The original password is incorrect.")
    directory.set_password(user_id, fresh)


def projects_of_user(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET /v3/users/{user_id}/projects: list the projects in which the user has a role."""
    user_id = directory.get("users", call.named["user_id"])["id"]
    return page(call, "projects", scoped(directory, user_id, ScopeKind.PROJECT))


def scoped(directory: Directory, user_id: str, kind: str) -> Iterable[IdentityRecord]:
    """Return the enabled projects or domains in which a user has a role."""
    found = [directory.things[f"{kind}s"][scope.id] for scope in directory.scopes_of(user_id, kind)]
    return [one for one in found if one["enabled"]]


def page(call: FakeCall, plural: str, things: Iterable[IdentityRecord]) -> dict[str, object]:
    """Return a list in Keystone's form, as a single page."""
    return {plural: [shown(call, plural, one) for one in things],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def shown(call: FakeCall, plural: str, thing: IdentityRecord) -> dict[str, object]:
    """Return a resource with its link."""
    return {**thing, "links": {"self": f"{call.http.application_url}/v3/{plural}/{thing['id']}"}}


def _fits(thing: Mapping[str, object], wanted: Mapping[str, str]) -> bool:
    return all(_text(thing.get(name)) == (value.lower() if isinstance(thing.get(name), bool) else value)
               for name, value in wanted.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _parameter(kind: IdentityKind) -> str:
    """Return the parameter's name in the path."""
    return f"{kind.singular}_id"


def _in_scope(call: FakeCall) -> bool:
    return call.caller.is_admin or call.caller.project_id == call.named["project_id"]


def _in_domain(call: FakeCall) -> bool:
    return call.caller.is_admin or call.caller.domain_id == call.named["domain_id"]


#: Kinds whose resources non-administrators may see, with the rule.
SHOW_RULES: dict[str, Rule] = {"projects": _in_scope, "domains": _in_domain, "users": owner_or_admin}


def _rows(kind: IdentityKind) -> Iterable[FakeRoute[Directory]]:
    path = f"/v3/{kind.plural}"
    one = f"{path}/{{{_parameter(kind)}}}"
    yield FakeRoute("GET", path, list_all(kind), admin)
    yield FakeRoute("POST", path, create(kind), admin, 201)
    shows = show_project if kind.plural == "projects" else show(kind)
    yield FakeRoute("GET", one, shows, SHOW_RULES.get(kind.plural, admin))
    yield FakeRoute("PATCH", one, update(kind), admin)
    yield FakeRoute("DELETE", one, delete(kind), admin, 204)


ROUTES: tuple[FakeRoute[Directory], ...] = (
    *(row for kind in KINDS for row in _rows(kind)),
    FakeRoute("POST", "/v3/users/{user_id}/password", set_own_password, owner, 204),
    FakeRoute("GET", "/v3/users/{user_id}/projects", projects_of_user, owner_or_admin),
)
