"""Kinds of Keystone's resources, as tables: members, uniqueness, and filters."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple, cast

from nova.devel.identity.records import IdentityRecord
from nova.devel.service import FakeError
from nova.model.base import JsonValue

DEFAULT_DOMAIN = "default"
REQUIRED = object()  # no default: a request must have the member
LONGEST = 255  # characters of a name
TEXT, NULL_TEXT, YES_NO, OBJECT, LIST = (str,), (str, type(None)), (bool,), (dict,), (list,)
#: Names of the types in messages.
SHOWN = {str: "a string", type(None): "null", bool: "a boolean", dict: "an object", list: "an array"}


class Member(NamedTuple):
    """A member of a resource's JSON: its valid types, and its default for a new resource."""

    types: tuple[type, ...] = TEXT
    default: object = REQUIRED
    may_change: bool = True


class IdentityKind(NamedTuple):
    """A kind of resource. ``unique``: members that no two resources share; ``found_by``: filters of lists. Other
    members are stored unchanged."""

    plural: str
    singular: str
    members: Mapping[str, Member]
    unique: tuple[str, ...] = ()
    found_by: tuple[str, ...] = ()


_NAME, _ENABLED, _OPTIONS = Member(), Member(YES_NO, True), Member(OBJECT, {})
_DOMAIN = Member(TEXT, DEFAULT_DOMAIN, may_change=False)

KINDS = (
    IdentityKind("domains", "domain", {
        "name": _NAME, "description": Member(NULL_TEXT, ""), "enabled": _ENABLED, "tags": Member(LIST, []),
        "options": _OPTIONS}, ("name",), ("name", "enabled")),
    IdentityKind("projects", "project", {
        "name": _NAME, "domain_id": _DOMAIN, "description": Member(NULL_TEXT, ""), "enabled": _ENABLED,
        "parent_id": Member(NULL_TEXT, None, may_change=False), "is_domain": Member(YES_NO, False, may_change=False),
        "tags": Member(LIST, []), "options": _OPTIONS}, ("domain_id", "name"),
        ("name", "domain_id", "enabled", "parent_id", "is_domain")),
    IdentityKind("users", "user", {
        "name": _NAME, "domain_id": _DOMAIN, "enabled": _ENABLED, "password": Member(NULL_TEXT, None),
        "default_project_id": Member(NULL_TEXT, None), "password_expires_at": Member(NULL_TEXT, None, may_change=False),
        "options": _OPTIONS}, ("domain_id", "name"), ("name", "domain_id", "enabled")),
    IdentityKind("roles", "role", {
        "name": _NAME, "domain_id": Member(NULL_TEXT, None, may_change=False), "description": Member(NULL_TEXT, None),
        "options": _OPTIONS}, ("domain_id", "name"), ("name", "domain_id")),
    IdentityKind("regions", "region", {
        "id": Member(TEXT, None, may_change=False), "description": Member(TEXT, ""),
        "parent_region_id": Member(NULL_TEXT, None)}, ("id",), ("parent_region_id",)),
    IdentityKind("services", "service", {
        "type": Member(), "name": Member(TEXT, ""), "description": Member(NULL_TEXT, ""), "enabled": _ENABLED},
        (), ("type", "name")),
    IdentityKind("endpoints", "endpoint", {
        "service_id": Member(), "interface": Member(), "url": Member(), "region_id": Member(NULL_TEXT, None),
        "region": Member(NULL_TEXT, None), "enabled": _ENABLED},
        (), ("service_id", "interface", "region_id", "enabled")),
    IdentityKind("groups", "group", {
        "name": _NAME, "domain_id": _DOMAIN, "description": Member(NULL_TEXT, "")}, ("domain_id", "name"),
        ("name", "domain_id")),
)
BY_PLURAL = {kind.plural: kind for kind in KINDS}
#: Members that refer to a resource of another kind.
REFERENCES = {"domain_id": "domains", "service_id": "services", "region_id": "regions", "parent_region_id": "regions",
              "parent_id": "projects"}


def made(kind: IdentityKind, given: Mapping[str, JsonValue]) -> IdentityRecord:
    """Return a new resource from a client's request. Raises 400, which names the member."""
    check(kind, given)
    missing = [name for name, member in kind.members.items() if member.default is REQUIRED and name not in given]
    if missing:
        raise FakeError(400, f"'{missing[0]}' is a required property of a new {kind.singular}.")
    defaults = {name: _fresh(member.default) for name, member in kind.members.items() if member.default is not REQUIRED}
    own_id = given.get("id") if "id" in kind.members else None
    return cast(IdentityRecord, {**defaults, **given, "id": own_id or uuid.uuid4().hex})


def check(kind: IdentityKind, given: Mapping[str, JsonValue]) -> None:
    """Check types and names. Raises 400, which names the member."""
    for key, value in given.items():
        member = kind.members.get(key)
        if member is not None and not isinstance(value, member.types):
            allowed = " or ".join(SHOWN[one] for one in member.types)
            raise FakeError(400, f"Invalid input for field '{key}': {allowed} is required.")
    name = str(given.get("name", "x"))
    if "name" in kind.unique and not (name.strip() and len(name) <= LONGEST):
        raise FakeError(400, f"Invalid input for field 'name': 1 to {LONGEST} characters are required.")


def check_change(kind: IdentityKind, old: Mapping[str, object], given: Mapping[str, JsonValue]) -> None:
    """Check an update. Raises 400, which names the member."""
    check(kind, given)
    for name, value in given.items():
        fixed = name == "id" or (name in kind.members and not kind.members[name].may_change)
        if fixed and value != old.get(name):
            raise FakeError(400, f"Invalid input for field '{name}': it cannot be changed.")


def _fresh(default: object) -> object:
    return default.copy() if isinstance(default, (dict, list)) else default
