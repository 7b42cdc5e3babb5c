"""Data of FakeKeystone: resources by kind, role assignments, application credentials and tokens."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import msgspec

from nova import decoding
from nova.devel.identity.kinds import BY_PLURAL, REFERENCES, check_change, made
from nova.devel.identity.records import ApplicationCredential, Ec2Key, IdentityRecord
from nova.devel.service import FakeError
from nova.model.base import Json, JsonValue, Time

REGION = "RegionOne"
INTERFACES = ("public", "internal", "admin")
#: Role -> implied role, as in a cloud that Keystone bootstraps.
IMPLIED = {"admin": "manager", "manager": "member", "member": "reader"}
#: Kinds that take part in role assignments.
GRANTED = ("domains", "projects", "users", "groups", "roles")


class ScopeKind:
    """Kinds of scope of a token or a role assignment."""

    PROJECT, DOMAIN, SYSTEM, UNSCOPED = "project", "domain", "system", "unscoped"


class TokenScope(NamedTuple):
    """Scope of a token. ``id``: of the project or the domain; "all" for the system."""

    kind: str
    id: str = ""


UNSCOPED = TokenScope(ScopeKind.UNSCOPED)
SYSTEM = TokenScope(ScopeKind.SYSTEM, "all")


class Membership(NamedTuple):
    group_id: str
    user_id: str


class RoleGrant(NamedTuple):
    """A role assignment. ``user_id``: of a user, or of a group, whose members have the role."""

    user_id: str
    scope: TokenScope
    role_id: str


@dataclass(frozen=True)
class IssuedToken:
    """Content of a token. Its validity is checked at each use."""

    user_id: str
    scope: TokenScope
    methods: tuple[str, ...]
    issued_at: Time
    expires_at: Time
    audit_id: str
    credential_id: str | None = None


@dataclass(frozen=True)
class Digest:
    """A hashed secret, for comparison only."""

    salt: bytes = field(repr=False)
    value: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: str) -> Digest:
        """Hash a secret with a new salt, in one round: tests create hundreds of users, and nothing is saved."""
        salt = secrets.token_bytes(16)
        return cls(salt, hashlib.sha256(salt + secret.encode()).digest())

    def is_of(self, secret: str) -> bool:
        """Return whether this is the hash of the secret."""
        return hmac.compare_digest(self.value, hashlib.sha256(self.salt + secret.encode()).digest())


class Directory:
    """All data of the service. Not thread-safe: the service holds a lock. Resources are dictionaries in the form of
    Keystone's JSON."""

    def __init__(self, token_lifetime_s: int = 3600) -> None:
        self.token_lifetime = datetime.timedelta(seconds=token_lifetime_s)
        self.things: dict[str, dict[str, IdentityRecord]] = {plural: {} for plural in BY_PLURAL}
        self.passwords: dict[str, Digest] = {}
        self.grants: set[RoleGrant] = set()
        self.memberships: set[Membership] = set()
        self.credentials: dict[str, ApplicationCredential] = {}
        self.credential_secrets: dict[str, Digest] = {}
        self.ec2_keys: dict[str, Ec2Key] = {}
        self.tokens: dict[str, IssuedToken] = {}

    def packed(self) -> bytes:
        """Return all data except tokens: clients request new ones after a restart."""
        return msgspec.msgpack.encode((self.things, self.passwords, sorted(self.grants), sorted(self.memberships),
                                       self.credentials, self.credential_secrets, self.ec2_keys))

    def restore(self, packed: bytes) -> None:
        """Load packed data."""
        found = decoding.from_msgpack(packed, _Packed)
        self.things, self.passwords = cast(dict[str, dict[str, IdentityRecord]], found.things), found.passwords
        self.credentials = cast(dict[str, ApplicationCredential], found.credentials)
        self.credential_secrets, self.ec2_keys = found.credential_secrets, cast(dict[str, Ec2Key], found.ec2_keys)
        self.grants, self.memberships, self.tokens = set(found.grants), set(found.memberships), {}

    def get(self, plural: str, thing_id: str) -> IdentityRecord:
        """Return one resource. Raises 404."""
        found = self.things[plural].get(thing_id)
        if found is None:
            raise FakeError(404, f"Could not find {BY_PLURAL[plural].singular}: {thing_id}.")
        return found

    def by_name(self, plural: str, name: str, domain_id: str | None = None) -> IdentityRecord | None:
        """Return the resource of that name, in the domain if the kind has domains."""
        return next((one for one in self.things[plural].values()
                     if one["name"] == name and one.get("domain_id") == domain_id), None)

    def add(self, plural: str, given: Mapping[str, JsonValue], thing_id: str | None = None) -> IdentityRecord:
        """Add a resource, with a new id unless one is given. Raises 400 or 409."""
        thing = made(BY_PLURAL[plural], given)
        thing["id"] = thing_id or thing["id"]
        self._check_references(thing)
        self._check_unique(plural, thing)
        self._keep_password(plural, thing)
        self.things[plural][thing["id"]] = thing
        return thing

    def change(self, plural: str, thing_id: str, given: Mapping[str, JsonValue]) -> IdentityRecord:
        """Set these members of the resource, and return it. Raises 400, 404 or 409."""
        old = self.get(plural, thing_id)
        check_change(BY_PLURAL[plural], old, given)
        new = cast(IdentityRecord, {**old, **given})
        self._check_references(given)
        self._check_unique(plural, new, beside=thing_id)
        self._keep_password(plural, new)
        self.things[plural][thing_id] = new
        return new

    def remove(self, plural: str, thing_id: str) -> None:
        """Delete the resource and its dependents. Raises 403 for an enabled domain, or 404."""
        thing = self.get(plural, thing_id)
        if plural == "domains":
            if thing["enabled"]:
                raise FakeError(403, "Cannot delete a domain that is enabled, please disable it first.")
            for below in ("projects", "users", "groups"):
                for one in [one for one in self.things[below].values() if one["domain_id"] == thing_id]:
                    self.remove(below, one["id"])
        if plural == "services":
            for one in [one for one in self.things["endpoints"].values() if one["service_id"] == thing_id]:
                self.remove("endpoints", one["id"])
        del self.things[plural][thing_id]
        if plural not in GRANTED:
            return
        self.passwords.pop(thing_id, None)
        self.grants = {one for one in self.grants if thing_id not in (one.user_id, one.scope.id, one.role_id)}
        self.memberships = {one for one in self.memberships if thing_id not in one}
        for key in [key for key, one in self.credentials.items() if thing_id in (one["user_id"], one["project_id"])]:
            self.remove_credential(key)
        self.ec2_keys = {key: one for key, one in self.ec2_keys.items()
                         if thing_id not in (one["user_id"], one["project_id"])}

    def remove_credential(self, credential_id: str) -> None:
        """Delete the credential, which also invalidates its tokens."""
        self.credentials.pop(credential_id, None)
        self.credential_secrets.pop(credential_id, None)

    def set_password(self, user_id: str, password: str) -> None:
        """Replace the user's password, and revoke the user's tokens."""
        self.passwords[user_id] = Digest.of(password)
        self.tokens = {text: one for text, one in self.tokens.items() if one.user_id != user_id}

    def roles_of(self, user_id: str, scope: TokenScope, implied: bool = True) -> dict[str, str]:
        """Return a user's roles in the scope: names by id. ``implied``: include implied roles and those of the user's
        groups."""
        who = self._as(user_id) if implied else {user_id}
        ids = {one.role_id for one in self.grants if one.user_id in who and one.scope == scope}
        return self.with_implied(ids) if implied else {one: self.things["roles"][one]["name"] for one in ids}

    def with_implied(self, role_ids: Iterable[str]) -> dict[str, str]:
        """Return these roles and the roles that they imply: names by id."""
        found: dict[str, str] = {}
        waiting = list(role_ids)
        while waiting:
            role = self.things["roles"].get(waiting.pop())
            if role is not None and role["id"] not in found:
                found[role["id"]] = role["name"]
                implied = self.by_name("roles", IMPLIED.get(role["name"], "")) if role["domain_id"] is None else None
                waiting += [implied["id"]] if implied else []
        return found

    def scopes_of(self, user_id: str, kind: str) -> Sequence[TokenScope]:
        """Return the scopes, enabled or not, in which a user, or a group of the user, has a role."""
        who = self._as(user_id)
        return sorted({one.scope for one in self.grants if one.user_id in who and one.scope.kind == kind})

    def _as(self, user_id: str) -> set[str]:
        """Return the ids of the user and the user's groups."""
        return {user_id, *(one.group_id for one in self.memberships if one.user_id == user_id)}

    def catalog(self, project_id: str | None) -> Iterator[tuple[IdentityRecord, list[IdentityRecord]]]:
        """Yield each enabled service with its endpoints. Without a project, endpoints with a project in their URL are
        left out."""
        for service in self.things["services"].values():
            if service["enabled"]:
                found: list[IdentityRecord] = [{**one, "url": url} for one in self.things["endpoints"].values()
                         if one["service_id"] == service["id"] and one["enabled"]
                         and (url := _address(one["url"], project_id)) is not None]
                yield service, found

    def _check_references(self, thing: Mapping[str, object]) -> None:
        """Raise 400 if a member refers to a missing resource. A project's parent may be its domain."""
        for name, plural in REFERENCES.items():
            wanted = thing.get(name)
            known = wanted in self.things[plural] or (name == "parent_id" and wanted in self.things["domains"])
            if wanted is not None and not known:
                raise FakeError(400, f"Invalid input for field '{name}': no {BY_PLURAL[plural].singular} has "
                                     "that id.")

    def _check_unique(self, plural: str, thing: Mapping[str, object], beside: str | None = None) -> None:
        """Raise 409 if a resource other than ``beside`` has the same unique members."""
        kind = BY_PLURAL[plural]
        stored: Mapping[str, Mapping[str, object]] = self.things[plural]
        for thing_id, one in stored.items():
            if kind.unique and thing_id != beside and all(one[name] == thing[name] for name in kind.unique):
                raise FakeError(409, f"Conflict occurred attempting to store {kind.singular} - Duplicate entry found "
                                     f"with {kind.unique[-1]} {thing[kind.unique[-1]]}.")

    def _keep_password(self, plural: str, thing: IdentityRecord) -> None:
        password = thing.pop("password", None)
        if plural == "users" and password is not None:
            self.set_password(thing["id"], password)


Things = dict[str, dict[str, Json]]  # what is loaded, whose members are not checked


class _Packed(msgspec.Struct, array_like=True):
    """Saved data. Members that older releases did not write are empty."""

    things: dict[str, Things]
    passwords: dict[str, Digest]
    grants: list[RoleGrant]
    memberships: list[Membership]
    credentials: Things
    credential_secrets: dict[str, Digest]
    ec2_keys: Things = {}


def _address(template: str, project_id: str | None) -> str | None:
    """Return an endpoint's URL with the project filled in, if it has a placeholder for it."""
    for place in ("$(project_id)s", "%(project_id)s", "$(tenant_id)s", "%(tenant_id)s"):
        if place in template:
            if project_id is None:
                return None
            template = template.replace(place, project_id)
    return template
