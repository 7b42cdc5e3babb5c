"""What FakeKeystone knows: its things by kind, who has which role where, application credentials and tokens."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from nova import decoding
from nova.devel.identity.kinds import BY_PLURAL, REFERENCES, check_change, made
from nova.devel.service import FakeError
from nova.model.base import Json, Time

REGION = "RegionOne"
INTERFACES = ("public", "internal", "admin")
#: Who has a role has this one, too, as a cloud that Keystone bootstraps.
IMPLIED = {"admin": "manager", "manager": "member", "member": "reader"}
#: Kinds that a role is given of, to or for.
GRANTED = ("domains", "projects", "users", "groups", "roles")


class ScopeKind:
    """What a token or a role is for."""

    PROJECT, DOMAIN, SYSTEM, UNSCOPED = "project", "domain", "system", "unscoped"


class TokenScope(NamedTuple):
    """``id`` of the project or the domain; "all" of the system."""

    kind: str
    id: str = ""


UNSCOPED = TokenScope(ScopeKind.UNSCOPED)
SYSTEM = TokenScope(ScopeKind.SYSTEM, "all")


class Membership(NamedTuple):
    group_id: str
    user_id: str


class RoleGrant(NamedTuple):
    """``user_id``: a user's, or that of a group, whose members have the role."""

    user_id: str
    scope: TokenScope
    role_id: str


@dataclass(frozen=True)
class IssuedToken:
    """What a token stands for. Whether that is still so is looked up at each use."""

    user_id: str
    scope: TokenScope
    methods: tuple[str, ...]
    issued_at: Time
    expires_at: Time
    audit_id: str
    credential_id: str | None = None


@dataclass(frozen=True)
class Digest:
    """A secret that is kept to compare with, and not to be read."""

    salt: bytes = field(repr=False)
    value: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: str) -> Digest:
        """A new one. One round: tests make users by the hundred, and nothing is kept."""
        salt = secrets.token_bytes(16)
        return cls(salt, hashlib.sha256(salt + secret.encode()).digest())

    def is_of(self, secret: str) -> bool:
        """Whether it was made of this secret."""
        return hmac.compare_digest(self.value, hashlib.sha256(self.salt + secret.encode()).digest())


class Directory:
    """Not thread-safe: its service holds a lock. Things are dictionaries, as Keystone's JSON has them."""

    def __init__(self, token_lifetime_s: int = 3600) -> None:
        self.token_lifetime = datetime.timedelta(seconds=token_lifetime_s)
        self.things: dict[str, dict[str, dict[str, Json]]] = {plural: {} for plural in BY_PLURAL}
        self.passwords: dict[str, Digest] = {}
        self.grants: set[RoleGrant] = set()
        self.memberships: set[Membership] = set()
        self.credentials: dict[str, dict[str, Json]] = {}
        self.credential_secrets: dict[str, Digest] = {}
        self.ec2_keys: dict[str, dict[str, Json]] = {}
        self.tokens: dict[str, IssuedToken] = {}

    def packed(self) -> bytes:
        """All but tokens: who comes back after a restart asks for a new one."""
        return msgspec.msgpack.encode(_Packed(self.things, self.passwords, sorted(self.grants),
                                              sorted(self.memberships), self.credentials, self.credential_secrets,
                                              self.ec2_keys))

    def restore(self, packed: bytes) -> None:
        """Become what was packed."""
        found = decoding.from_msgpack(packed, _Packed)
        self.things, self.passwords, self.credentials = found.things, found.passwords, found.credentials
        self.credential_secrets, self.ec2_keys = found.credential_secrets, found.ec2_keys
        self.grants, self.memberships, self.tokens = set(found.grants), set(found.memberships), {}

    def get(self, plural: str, thing_id: str) -> dict[str, Json]:
        """One thing. 404."""
        found = self.things[plural].get(thing_id)
        if found is None:
            raise FakeError(404, f"Could not find {BY_PLURAL[plural].singular}: {thing_id}.")
        return found

    def by_name(self, plural: str, name: str, domain_id: str | None = None) -> dict[str, Json] | None:
        """The thing of that name, in the domain where the kind has domains."""
        return next((one for one in self.things[plural].values()
                     if one["name"] == name and one.get("domain_id") == domain_id), None)

    def add(self, plural: str, given: Mapping[str, Json], thing_id: str | None = None) -> dict[str, Json]:
        """A new thing, of a new id where none is said. 400, 409."""
        thing = made(BY_PLURAL[plural], given)
        thing["id"] = thing_id or thing["id"]
        self._check_references(thing)
        self._check_unique(plural, thing)
        self._keep_password(plural, thing)
        self.things[plural][thing["id"]] = thing
        return thing

    def change(self, plural: str, thing_id: str, given: Mapping[str, Json]) -> dict[str, Json]:
        """The thing with these members set. 400, 404, 409."""
        old = self.get(plural, thing_id)
        check_change(BY_PLURAL[plural], old, given)
        new = {**old, **given}
        self._check_references(given)
        self._check_unique(plural, new, beside=thing_id)
        self._keep_password(plural, new)
        self.things[plural][thing_id] = new
        return new

    def remove(self, plural: str, thing_id: str) -> None:
        """The thing goes, with what makes no sense without it. 403 for a domain that is enabled; 404."""
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
        for one in [one for one in self.credentials.values() if thing_id in (one["user_id"], one["project_id"])]:
            self.remove_credential(one["id"])
        self.ec2_keys = {key: one for key, one in self.ec2_keys.items()
                         if thing_id not in (one["user_id"], one["project_id"])}

    def remove_credential(self, credential_id: str) -> None:
        """It opens nothing any more, and neither do tokens that it opened."""
        self.credentials.pop(credential_id, None)
        self.credential_secrets.pop(credential_id, None)

    def set_password(self, user_id: str, password: str) -> None:
        """The only one from now on; the user's tokens end."""
        self.passwords[user_id] = Digest.of(password)
        self.tokens = {text: one for text, one in self.tokens.items() if one.user_id != user_id}

    def roles_of(self, user_id: str, scope: TokenScope, implied: bool = True) -> dict[str, str]:
        """The names of the roles that a user has there, by id. ``implied``: with those of the user's groups, too."""
        who = self._as(user_id) if implied else {user_id}
        ids = {one.role_id for one in self.grants if one.user_id in who and one.scope == scope}
        return self.with_implied(ids) if implied else {one: self.things["roles"][one]["name"] for one in ids}

    def with_implied(self, role_ids: Iterable[str]) -> dict[str, str]:
        """These roles and those that they imply: names by id."""
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
        """Where a user, or a group of the user, has a role, enabled or not."""
        who = self._as(user_id)
        return sorted({one.scope for one in self.grants if one.user_id in who and one.scope.kind == kind})

    def _as(self, user_id: str) -> set[str]:
        """Whose roles a user has."""
        return {user_id, *(one.group_id for one in self.memberships if one.user_id == user_id)}

    def catalog(self, project_id: str | None) -> Iterator[tuple[dict[str, Json], list[dict[str, Json]]]]:
        """Each service that is enabled, with its endpoints. One whose address has a project in it is left out where
        there is no project."""
        for service in self.things["services"].values():
            if service["enabled"]:
                found = [{**one, "url": url} for one in self.things["endpoints"].values()
                         if one["service_id"] == service["id"] and one["enabled"]
                         and (url := _address(one["url"], project_id)) is not None]
                yield service, found

    def _check_references(self, thing: Mapping[str, Json]) -> None:
        """400: a member names nothing. A project's parent may be its domain."""
        for name, plural in REFERENCES.items():
            wanted = thing.get(name)
            known = wanted in self.things[plural] or (name == "parent_id" and wanted in self.things["domains"])
            if wanted is not None and not known:
                raise FakeError(400, f"Invalid input for field '{name}': there is no {BY_PLURAL[plural].singular} of "
                                     "that id.")

    def _check_unique(self, plural: str, thing: Mapping[str, Json], beside: str | None = None) -> None:
        """409: another thing, ``beside`` this one, has what is to be unique."""
        kind = BY_PLURAL[plural]
        for thing_id, one in self.things[plural].items():
            if kind.unique and thing_id != beside and all(one[name] == thing[name] for name in kind.unique):
                raise FakeError(409, f"Conflict occurred attempting to store {kind.singular} - Duplicate entry found "
                                     f"with {kind.unique[-1]} {thing[kind.unique[-1]]}.")

    def _keep_password(self, plural: str, thing: dict[str, Json]) -> None:
        password = thing.pop("password", None)
        if plural == "users" and password is not None:
            self.set_password(thing["id"], password)


Things = dict[str, dict[str, Json]]


class _Packed(msgspec.Struct, array_like=True):
    """What older releases have not written is empty."""

    things: dict[str, Things]
    passwords: dict[str, Digest]
    grants: list[RoleGrant]
    memberships: list[Membership]
    credentials: Things
    credential_secrets: dict[str, Digest]
    ec2_keys: Things = {}


def _address(template: str, project_id: str | None) -> str | None:
    """An endpoint's address with the project in it where it has a place for one."""
    for place in ("$(project_id)s", "%(project_id)s", "$(tenant_id)s", "%(tenant_id)s"):
        if place in template:
            if project_id is None:
                return None
            template = template.replace(place, project_id)
    return template
