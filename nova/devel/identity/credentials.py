"""Application credentials of FakeKeystone: a user's own, for one project, with roles of the user in it."""

from __future__ import annotations

import datetime
import secrets
import uuid
from collections.abc import Mapping

from nova import failures
from nova.devel.identity.directory import Digest, Directory, ScopeKind, TokenScope
from nova.devel.identity.records import ApplicationCredential, RoleReference
from nova.devel.service import FakeCall, FakeError, FakeRoute
from nova.model.base import JsonValue, utcnow

TIME = "%Y-%m-%dT%H:%M:%S.%f"
#: Types of the members that clients send; null is allowed for some.
MEMBERS: dict[str, tuple[type, ...]] = {
    "name": (str,), "description": (str, type(None)), "secret": (str, type(None)), "roles": (list, type(None)),
    "expires_at": (str, type(None)), "unrestricted": (bool, type(None)), "access_rules": (list, type(None))}


def owner(call: FakeCall) -> bool:
    """Return whether the caller is the user in the path; administrators are not allowed."""
    return call.caller.user_id == call.named["user_id"]


def owner_or_admin(call: FakeCall) -> bool:
    """Return whether the caller is the user in the path, or an administrator."""
    return owner(call) or call.caller.is_admin


def create(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """POST a credential. Only this response contains the secret. Raises 400, which names the member; 403 for a token of
    a restricted application credential; 409 if the user has a credential of that name."""
    caller, given = call.caller, call.member("application_credential")
    _check(given)
    if caller.restricted:
        raise FakeError(403, "This application credential may not manage application credentials: it is restricted.")
    if caller.project_id is None:
        raise FakeError(400, "Application credentials require a project-scoped token.")
    if any((one["user_id"], one["name"]) == (caller.user_id, given["name"]) for one in directory.credentials.values()):
        raise FakeError(409, f"Conflict occurred attempting to store application_credential - Duplicate entry found "
                             f"with name {given['name']}.")
    description, secret = given.get("description"), given.get("secret") or secrets.token_urlsafe(48)
    credential: ApplicationCredential = {
        "id": uuid.uuid4().hex, "name": str(given["name"]),
        "description": None if description is None else str(description),
        "user_id": caller.user_id, "project_id": caller.project_id, "system": None,
        "roles": _roles(directory, call, given), "expires_at": _ends(given),
        "unrestricted": bool(given.get("unrestricted"))}
    directory.credentials[credential["id"]] = credential
    directory.credential_secrets[credential["id"]] = Digest.of(str(secret))
    return {"application_credential": {**_shown(call, credential), "secret": secret}}


def list_all(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET the user's credentials, filtered by ``name`` if the query has it."""
    name = call.http.GET.get("name")
    found = [one for one in directory.credentials.values()
             if one["user_id"] == call.named["user_id"] and name in (None, one["name"])]
    return {"application_credentials": [_shown(call, one) for one in found],
            "links": {"self": call.http.path_url, "next": None, "previous": None}}


def show(directory: Directory, call: FakeCall) -> Mapping[str, object]:
    """GET one credential. Raises 404, also for another user's."""
    return {"application_credential": _shown(call, _own(directory, call))}


def delete(directory: Directory, call: FakeCall) -> None:
    """DELETE a credential. Raises 403 like ``create``."""
    if call.caller.restricted:
        raise FakeError(403, "This application credential may not manage application credentials: it is restricted.")
    directory.remove_credential(_own(directory, call)["id"])


def _own(directory: Directory, call: FakeCall) -> ApplicationCredential:
    found = directory.credentials.get(call.named["credential_id"])
    if found is None or found["user_id"] != call.named["user_id"]:
        raise FakeError(404, f"Could not find application credential: {call.named['credential_id']}.")
    return found


def _check(given: Mapping[str, JsonValue]) -> None:
    for name, types in MEMBERS.items():
        if name in given and not isinstance(given[name], types):
            raise FakeError(400, f"Invalid input for field '{name}'.")
    if not given.get("name"):
        raise FakeError(400, "'name' is a required property of a new application_credential.")
    if given.get("access_rules"):
        raise FakeError(400, "Invalid input for field 'access_rules': this fake does not support them.")


def _ends(given: Mapping[str, JsonValue]) -> str | None:
    """Return the expiry time in UTC, in Keystone's format. Raises 400 for an invalid or past time."""
    if not given.get("expires_at"):
        return None
    with failures.replaced(ValueError, lambda _: FakeError(400,
            "Invalid input for field 'expires_at': it is not a valid ISO 8601 time.")):
        ends = datetime.datetime.fromisoformat(str(given["expires_at"]))
    ends = ends.astimezone(datetime.UTC).replace(tzinfo=None) if ends.tzinfo else ends
    if ends <= utcnow():
        raise FakeError(400, "Invalid input for field 'expires_at': it is in the past.")
    return ends.strftime(TIME)


def _roles(directory: Directory, call: FakeCall, given: Mapping[str, JsonValue]) -> list[RoleReference]:
    """Return the requested roles, by id or name; all roles of the token by default. Raises 400 for a role that the
    token lacks."""
    scope = TokenScope(ScopeKind.PROJECT, call.caller.project_id or "")
    held = {role_id: name for role_id, name in directory.roles_of(call.caller.user_id, scope).items()
            if name in call.caller.roles}
    asked = given.get("roles")
    if not isinstance(asked, list) or not asked:
        chosen = set(held)
    else:
        wanted = [one.get("id") or one.get("name") for one in asked if isinstance(one, dict)]
        chosen = {role_id for role_id, name in held.items() if role_id in wanted or name in wanted}
        if len(chosen) < len(asked):
            raise FakeError(400, "Invalid input for field 'roles': the token does not have all of these roles.")
    return [{"id": role_id, "name": held[role_id], "domain_id": None} for role_id in sorted(chosen)]


def _shown(call: FakeCall, credential: ApplicationCredential) -> dict[str, object]:
    path = f"/v3/users/{credential['user_id']}/application_credentials/{credential['id']}"
    return {**credential, "links": {"self": call.http.application_url + path}}


_PATH = "/v3/users/{user_id}/application_credentials"
ROUTES: tuple[FakeRoute[Directory], ...] = (
    FakeRoute("POST", _PATH, create, owner, 201),
    FakeRoute("GET", _PATH, list_all, owner_or_admin),
    FakeRoute("GET", f"{_PATH}/{{credential_id}}", show, owner_or_admin),
    FakeRoute("DELETE", f"{_PATH}/{{credential_id}}", delete, owner_or_admin, 204),
)
