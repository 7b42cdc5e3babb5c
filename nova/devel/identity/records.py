"""Records of FakeKeystone, in the form of the Identity API's JSON."""

from __future__ import annotations

from typing import TypedDict


class IdentityRecord(TypedDict, total=False):
    """A domain, project, user, group, role, region, service or endpoint: it has the members of its kind, and further
    members, which are stored unread."""

    id: str
    name: str
    domain_id: str | None
    description: str | None
    enabled: bool
    parent_id: str | None
    is_domain: bool
    default_project_id: str | None
    password: str | None
    type: str
    service_id: str
    interface: str
    url: str
    region: str | None
    region_id: str | None


class RoleReference(TypedDict):
    """A role of an application credential."""

    id: str
    name: str
    domain_id: str | None


class ApplicationCredential(TypedDict):
    """An application credential without its secret."""

    id: str
    name: str
    description: str | None
    user_id: str
    project_id: str
    system: None
    roles: list[RoleReference]
    expires_at: str | None
    unrestricted: bool


class Ec2Key(TypedDict):
    """An EC2 credential. ``id``: at ``/v3/credentials``."""

    id: str
    access: str
    secret: str
    user_id: str
    project_id: str
