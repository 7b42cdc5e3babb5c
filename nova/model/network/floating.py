"""Floating addresses, their pools, and their names in DNS."""

from __future__ import annotations

from nova.model.base import Scope, Value


class FloatingPool(Value):
    name: str


class FloatingAddress(Value):
    """A floating address. ``id`` is the API's: a number as text for nova-network, a uuid for Neutron."""

    id: str
    address: str
    pool: str
    project_id: str | None = None
    fixed_address: str | None = None
    server_uuid: str | None = None
    interface: str | None = None
    host: str | None = None
    auto_assigned: bool = False


class FloatingQuery(Value):
    """Query for all floating addresses of a scope. ``host`` and ``all_rows`` (including unallocated addresses) are for
    administrators."""

    scope: Scope = Scope()
    host: str | None = None
    all_rows: bool = False


class FloatingAssociation(Value):
    """A request to associate a floating address. ``fixed_address`` None: the server's first IPv4 address."""

    server_uuid: str
    address: str
    fixed_address: str | None = None


class FloatingRange(Value):
    """Addresses to create: one address, or a CIDR, of which only the usable hosts count."""

    ip_range: str
    pool: str | None = None
    interface: str | None = None


class FloatingOnHost(Value):
    """A floating address that a network host translates, its fixed address, and the device that has it."""

    address: str
    fixed_address: str
    interface: str | None = None


class DnsDomain(Value):
    """A DNS domain. ``scope``: private (of an availability zone) or public (of a project)."""

    domain: str
    scope: str
    availability_zone: str | None = None
    project_id: str | None = None


class DnsEntry(Value):
    domain: str
    name: str
    address: str
    type: str = "A"
