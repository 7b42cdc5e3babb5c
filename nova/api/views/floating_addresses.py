"""Floating addresses, their pools and their names as the API showed them up to 2.35."""

from __future__ import annotations

from nova.api.view import Out, View
from nova.model.network.floating import DnsDomain, DnsEntry, FloatingAddress, FloatingPool

POOL = View(Out("name", "name"), of=FloatingPool)

FLOATING = View(
    Out("id", "id"),
    Out("ip", "address"),
    Out("pool", "pool"),
    Out("fixed_ip", "fixed_address"),
    Out("instance_id", "server_uuid"),
    of=FloatingAddress,
)

IN_BULK = View(
    Out("address", "address"),
    Out("pool", "pool"),
    Out("interface", lambda one, req: one.interface or req.options.public_interface, type="string"),
    Out("project_id", "project_id"),
    Out("instance_uuid", "server_uuid"),
    Out("fixed_ip", "fixed_address"),
    of=FloatingAddress,
)

DOMAIN = View(
    Out("domain", "domain"),
    Out("scope", "scope"),
    Out("availability_zone", "availability_zone"),
    Out("project", "project_id"),
    of=DnsDomain,
)

_ENTRY = (
    Out("domain", "domain"),
    Out("name", "name"),
    Out("ip", "address"),
    Out("id", lambda entry, req: None, type="null"),
)
ENTRY = View(*_ENTRY, Out("type", lambda entry, req: None, type="null"), of=DnsEntry)
PUT_ENTRY = View(*_ENTRY, Out("type", "type"), of=DnsEntry)
