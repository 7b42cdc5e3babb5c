"""Tokens of FakeKeystone: login and validation. Each use of a token checks the current data."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Mapping, Set

from keystoneauth1 import fixture

from nova.devel.identity.directory import INTERFACES, SYSTEM, UNSCOPED, Directory, IssuedToken, ScopeKind, TokenScope
from nova.devel.identity.kinds import DEFAULT_DOMAIN
from nova.devel.identity.records import ApplicationCredential, IdentityRecord
from nova.devel.identity.requests import object_of, text_of
from nova.devel.service import FakeAnswer, FakeCall, FakeError, TokenOwner
from nova.model.base import JsonValue, Time, utcnow

#: Time after its expiry in which services can still validate a token (``allow_expired``), so that work in progress can
#: end.
KEPT_EXPIRED = datetime.timedelta(hours=48)
#: Number of such tokens to keep, the newest: each client command logs in, in a CI hundreds of thousands of times.
MOST_EXPIRED = 1000
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
VALIDATORS = {"admin", "service"}
EC2 = "ec2credential"  # method of tokens issued for a signature
NO = "The request you have made requires authentication."


def issue(directory: Directory, call: FakeCall) -> FakeAnswer:
    """POST /v3/auth/tokens: issue a token. Raises 400, which names the member, or 401 without details."""
    auth = call.member("auth")
    identity = object_of(auth, "identity")
    methods = identity.get("methods")
    method = methods[0] if isinstance(methods, list) and len(methods) == 1 else None
    if not isinstance(method, str) or method not in METHODS:
        raise FakeError(400, f"Invalid input for field 'methods': one of {', '.join(METHODS)} is required.")
    proven = METHODS[method](directory, object_of(identity, method))
    scope = _scope(directory, auth, proven)
    now = utcnow()
    issued = IssuedToken(proven.user_id, scope, proven.methods, now, min(proven.expires_at, now + (
        directory.token_lifetime)), secrets.token_urlsafe(16), proven.credential_id)
    text = _keep(directory, issued)
    return FakeAnswer(201, token_body(directory, issued, "nocatalog" not in call.http.GET), {"X-Subject-Token": text})


def issue_for(directory: Directory, user_id: str, scope: TokenScope, methods: tuple[str, ...]
              ) -> tuple[str, dict[str, object]]:
    """Issue a token for a user who was authenticated otherwise, and return it with its JSON. Raises 401 if the user,
    the project or the roles do not exist any more."""
    if not _is_enabled(directory, user_id) or not _is_open(directory, scope):
        raise FakeError(401, NO)
    now = utcnow()
    issued = IssuedToken(user_id, scope, methods, now, now + directory.token_lifetime, secrets.token_urlsafe(16))
    return _keep(directory, issued), token_body(directory, issued)


def _keep(directory: Directory, issued: IssuedToken) -> str:
    """Return a new text for the token. Raises 401 if the token would have no role."""
    if issued.scope != UNSCOPED and not _roles(directory, issued):
        raise FakeError(401, NO)
    text, now = secrets.token_urlsafe(32), issued.issued_at
    if len(directory.tokens) >= 2 * MOST_EXPIRED:
        directory.tokens = _worth_keeping(directory.tokens, now)
    directory.tokens[text] = issued
    return text


def _worth_keeping(tokens: Mapping[str, IssuedToken], now: Time) -> dict[str, IssuedToken]:
    """Return the valid tokens, and the newest of the recently expired ones."""
    ended = [text for text, one in tokens.items() if one.expires_at <= now]
    forgotten = {*ended[:-MOST_EXPIRED], *(text for text in ended if tokens[text].expires_at + KEPT_EXPIRED <= now)}
    return {text: one for text, one in tokens.items() if text not in forgotten}


def validate(directory: Directory, call: FakeCall) -> FakeAnswer:
    """GET or HEAD /v3/auth/tokens: show a token to services and to its owner. Raises 404 for an invalid one."""
    text, issued = _subject(directory, call, VALIDATORS)
    return FakeAnswer(200, token_body(directory, issued, "nocatalog" not in call.http.GET), {"X-Subject-Token": text})


def revoke(directory: Directory, call: FakeCall) -> None:
    """DELETE /v3/auth/tokens: revoke a token, either the caller's or, for administrators, any."""
    text, _issued = _subject(directory, call, {"admin"})
    del directory.tokens[text]


def identify(directory: Directory, text: str) -> TokenOwner | None:
    """Return the current owner of a token; None if it is invalid."""
    issued = _valid(directory, text)
    if issued is None:
        return None
    scope, credential = issued.scope, directory.credentials.get(issued.credential_id or "")
    return TokenOwner(issued.user_id, scope.id if scope.kind == ScopeKind.PROJECT else None,
                      frozenset(_roles(directory, issued).values()),
                      scope.id if scope.kind == ScopeKind.DOMAIN else None,
                      EC2 in issued.methods or credential is not None and not credential["unrestricted"])


def token_body(directory: Directory, issued: IssuedToken, with_catalog: bool = True) -> dict[str, object]:
    """Return the JSON of a token."""
    user = directory.things["users"][issued.user_id]
    domain = directory.things["domains"][user["domain_id"] or ""]
    token = fixture.V3Token(user_id=user["id"], user_name=user["name"], user_domain_id=domain["id"],
                            user_domain_name=domain["name"], methods=list(issued.methods), audit_id=issued.audit_id,
                            issued=issued.issued_at.strftime(TIME), expires=issued.expires_at.strftime(TIME))
    token.root["user"]["password_expires_at"] = None
    _say_scope(directory, token, issued.scope)
    if issued.scope.kind != ScopeKind.UNSCOPED:
        for role_id, name in _roles(directory, issued).items():
            token.add_role(name, role_id)
        if with_catalog:
            token.root["catalog"] = catalog_body(directory, issued.scope)
    credential = directory.credentials.get(issued.credential_id or "")
    if credential is not None:
        token.root["application_credential"] = {"id": credential["id"], "name": credential["name"],
                                                "restricted": not credential["unrestricted"]}
    return dict(token)


def catalog_body(directory: Directory, scope: TokenScope) -> list[dict[str, object]]:
    """Return services with their endpoints, in a token's form."""
    project_id = scope.id if scope.kind == ScopeKind.PROJECT else None
    return [{"id": service["id"], "type": service["type"], "name": service["name"], "endpoints": [
                {"id": one["id"], "interface": one["interface"], "region": one["region"], "region_id": one["region_id"],
                 "url": one["url"]}
                for one in sorted(endpoints, key=lambda one: INTERFACES.index(one["interface"])
                                  if one["interface"] in INTERFACES else len(INTERFACES))]}
            for service, endpoints in directory.catalog(project_id)]


def token_scope(directory: Directory, call: FakeCall) -> TokenScope:
    """Return the scope of the caller's token."""
    issued = _valid(directory, call.token)
    return issued.scope if issued else UNSCOPED


class _Proven:
    """Authenticated user, with the limits of the token."""

    def __init__(self, user_id: str, methods: tuple[str, ...], expires_at: Time = Time.max,
                 credential: ApplicationCredential | None = None) -> None:
        self.user_id, self.methods, self.expires_at = user_id, methods, expires_at
        self.credential_id: str | None = credential["id"] if credential else None
        self.project_id: str | None = credential["project_id"] if credential else None


def _by_password(directory: Directory, given: Mapping[str, JsonValue]) -> _Proven:
    named = object_of(given, "user")
    user = _user(directory, named)
    digest = directory.passwords.get(user["id"])
    if digest is None or not digest.is_of(text_of(named, "password")):
        raise FakeError(401, NO)
    return _Proven(user["id"], ("password",))


def _by_token(directory: Directory, given: Mapping[str, JsonValue]) -> _Proven:
    """Authenticate by a token; the new one expires with it. Tokens of application credentials are refused: the new
    token would have more rights than the credential."""
    issued = _valid(directory, text_of(given, "id"))
    if issued is None:
        raise FakeError(401, NO)
    if issued.credential_id or EC2 in issued.methods:
        raise FakeError(403, "A token of an application or EC2 credential cannot be exchanged for another.")
    return _Proven(issued.user_id, tuple(dict.fromkeys(("token", *issued.methods))), issued.expires_at)


def _by_credential(directory: Directory, given: Mapping[str, JsonValue]) -> _Proven:
    """Authenticate by credential: id, or name and user."""
    secret = text_of(given, "secret")
    if "id" in given:
        found = directory.credentials.get(text_of(given, "id"))
    else:
        name, user = text_of(given, "name"), _user(directory, object_of(given, "user"))
        found = next((one for one in directory.credentials.values()
                      if (one["user_id"], one["name"]) == (user["id"], name)), None)
    if found is None or not directory.credential_secrets[found["id"]].is_of(secret):
        raise FakeError(401, NO)
    ends = datetime.datetime.fromisoformat(found["expires_at"]) if found["expires_at"] else Time.max
    if ends <= utcnow() or not _is_enabled(directory, found["user_id"]):
        raise FakeError(401, NO)
    return _Proven(found["user_id"], ("application_credential",), ends, found)


METHODS: dict[str, Callable[[Directory, Mapping[str, JsonValue]], _Proven]] = {
    "password": _by_password, "token": _by_token, "application_credential": _by_credential}


def _scope(directory: Directory, auth: Mapping[str, JsonValue], proven: _Proven) -> TokenScope:
    """Return the requested scope. By default it is the user's own project, if the user has a role there."""
    wanted = auth.get("scope")
    if proven.project_id is not None:
        if wanted:
            raise FakeError(401, "Application credentials cannot request a scope.")
        return TokenScope(ScopeKind.PROJECT, proven.project_id)
    if wanted is None:
        project_id = directory.things["users"][proven.user_id]["default_project_id"]
        own = TokenScope(ScopeKind.PROJECT, project_id or "")
        return own if directory.roles_of(proven.user_id, own) and _is_open(directory, own) else UNSCOPED
    if wanted in ("unscoped", {"unscoped": {}}):
        return UNSCOPED
    if not isinstance(wanted, dict) or len(wanted) != 1 or next(iter(wanted)) not in ("project", "domain", "system"):
        raise FakeError(400, "Invalid input for field 'scope': project, domain, system or unscoped is required.")
    if "system" in wanted:
        return SYSTEM
    kind, named = next(iter(wanted)), object_of(wanted, next(iter(wanted)))
    found = _named(directory, f"{kind}s", named)
    scope = TokenScope(kind, found["id"] if found else "")
    if not _is_open(directory, scope):
        raise FakeError(401, NO)
    return scope


def _is_open(directory: Directory, scope: TokenScope) -> bool:
    """Return whether a token may have that scope: it exists and is enabled, as is a project's domain."""
    if scope.kind not in (ScopeKind.PROJECT, ScopeKind.DOMAIN):
        return True
    found = directory.things[f"{scope.kind}s"].get(scope.id)
    if found is None or not found["enabled"]:
        return False
    return scope.kind == ScopeKind.DOMAIN or _is_open(directory, TokenScope(ScopeKind.DOMAIN, found["domain_id"] or ""))


def _is_enabled(directory: Directory, user_id: str) -> bool:
    user = directory.things["users"].get(user_id)
    return user is not None and user["enabled"] and _is_open(directory, TokenScope(ScopeKind.DOMAIN,
                                                                                   user["domain_id"] or ""))


def _roles(directory: Directory, issued: IssuedToken) -> dict[str, str]:
    """Return the roles: names by id. An application credential has its own roles, as far as its user still has them."""
    held = directory.roles_of(issued.user_id, issued.scope)
    if issued.credential_id is None:
        return held
    credential = directory.credentials.get(issued.credential_id)
    roles = credential["roles"] if credential is not None else []
    given = directory.with_implied(one["id"] for one in roles if one["id"] in held)
    return {role_id: name for role_id, name in given.items() if role_id in held}


def _valid(directory: Directory, text: str, or_expired: bool = False) -> IssuedToken | None:
    """Return the token if it is valid now."""
    issued = directory.tokens.get(text)
    if issued is None or not _is_enabled(directory, issued.user_id) or not _is_open(directory, issued.scope):
        return None
    if issued.expires_at + (KEPT_EXPIRED if or_expired else datetime.timedelta()) <= utcnow():
        return None
    if issued.credential_id is not None and issued.credential_id not in directory.credentials:
        return None
    return issued if issued.scope == UNSCOPED or _roles(directory, issued) else None


def _subject(directory: Directory, call: FakeCall, roles: Set[str]) -> tuple[str, IssuedToken]:
    """Return the token in the request: any token for these roles, own tokens for other callers. Raises 401, 403 or
    404."""
    text = call.http.headers.get("X-Subject-Token", "")
    caller = call.caller
    asks_for_others = bool(roles & caller.roles)
    issued = _valid(directory, text, asks_for_others and call.http.GET.get("allow_expired") in ("1", "true", "True"))
    if not asks_for_others and (issued is None or issued.user_id != caller.user_id):
        raise FakeError(403, "You are not authorized to perform the requested action: identity:validate_token.")
    if issued is None:
        raise FakeError(404, "Could not find token.")
    return text, issued


def _say_scope(directory: Directory, token: fixture.V3Token, scope: TokenScope) -> None:
    if scope.kind == ScopeKind.SYSTEM:
        token.set_system_scope()
    elif scope.kind == ScopeKind.DOMAIN:
        token.set_domain_scope(scope.id, directory.things["domains"][scope.id]["name"])
    elif scope.kind == ScopeKind.PROJECT:
        project = directory.things["projects"][scope.id]
        domain = directory.things["domains"][project["domain_id"] or ""]
        token.set_project_scope(project["id"], project["name"], domain["id"], domain["name"], is_domain=False)


def _user(directory: Directory, named: Mapping[str, JsonValue]) -> IdentityRecord:
    """Return the user. Raises 401 as for a wrong password, so that callers cannot find out which users exist."""
    found = _named(directory, "users", named)
    if found is None or not _is_enabled(directory, found["id"]):
        raise FakeError(401, NO)
    return found


def _named(directory: Directory, plural: str, named: Mapping[str, JsonValue]) -> IdentityRecord | None:
    """Return the resource with that id, or with that name and (except for domains) domain. Raises 400, which names the
    member."""
    if "id" in named:
        return directory.things[plural].get(text_of(named, "id"))
    name = text_of(named, "name")
    if plural == "domains":
        return directory.by_name(plural, name)
    domain = _named(directory, "domains", object_of(named, "domain") if "domain" in named else {"id": DEFAULT_DOMAIN})
    return directory.by_name(plural, name, domain["id"]) if domain else None
