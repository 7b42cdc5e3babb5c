"""Bodies of floating addresses and their names."""

from __future__ import annotations

from nova.web.schema import ACCEPT, BODY, Body, Spec, row
from nova.web.specs import Rules

_ADDRESS = (Spec(format="ipv4", max_length=15, pattern=r"^[0-9.]*$"),
            Spec(format="ipv6", max_length=45, pattern=r"^[0-9A-Fa-f:.]*$"))
_NAME: Rules = {"min_length": 1, "max_length": 255}

CREATE = Body(row(BODY, ("object", "null"), unknown=ACCEPT), row("pool", ("string", "null")))

ADD = Body(
    row("addFloatingIp", "object", required=True),
    row("addFloatingIp.address", "string", one_of=_ADDRESS, required=True),
    row("addFloatingIp.fixed_address", "string", one_of=_ADDRESS))
REMOVE = Body(
    row("removeFloatingIp", "object", required=True),
    row("removeFloatingIp.address", "string", one_of=_ADDRESS, required=True))

BULK_CREATE = Body(
    row("floating_ips_bulk_create", "object", required=True),
    row("floating_ips_bulk_create.ip_range", "string", min_length=1, max_length=64, required=True),
    row("floating_ips_bulk_create.pool", "string", **_NAME),
    row("floating_ips_bulk_create.interface", "string", min_length=1, max_length=15, pattern=r"^[A-Za-z0-9_.:@-]*$"))
BULK_DELETE = Body(row("ip_range", "string", min_length=1, max_length=64, required=True))

PUT_DOMAIN = Body(
    row("domain_entry", "object", required=True),
    row("domain_entry.scope", "string", allowed=("private", "public"), required=True),
    row("domain_entry.availability_zone", "string", **_NAME),
    row("domain_entry.project", "string", **_NAME))
PUT_ENTRY = Body(
    row("dns_entry", "object", required=True),
    row("dns_entry.ip", "string", one_of=_ADDRESS, required=True),
    row("dns_entry.dns_type", "string", allowed=("A", "AAAA"), required=True))
