"""DNS names of floating addresses: domains, and entries in them."""

from __future__ import annotations

import contextlib
import ipaddress

from nova import errors
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views.floating_addresses import DOMAIN, ENTRY, PUT_ENTRY
from nova.model.network.floating import DnsDomain, DnsEntry

#: Scope of a domain -> (key of its owner, nova's field, key that it must not have)
OWNERS = {"private": ("availability_zone", "availability_zone", "project"),
          "public": ("project", "project_id", "availability_zone")}


@answers({"domain_entries": [DOMAIN]})
def index(req: Request) -> dict[str, object]:
    """List the DNS domains that the caller may see. The list is not paged."""
    return {"domain_entries": DOMAIN.all(req.conductor.list_dns_domains(req.scope()), req)}


@answers({"domain_entry": DOMAIN})
def update(req: Request, domain: str) -> dict[str, object]:
    """Create a domain, or change its owner."""
    asked = req.body["domain_entry"]
    key, field, other = OWNERS[asked["scope"]]
    if asked.get(other) is not None:
        kind = errors.api.Unprocessable if req.legacy else errors.Invalid
        raise kind(errors.dns.WrongOwner(scope=asked["scope"], may=key, may_not=other).message)
    made = req.conductor.put_dns_domain(DnsDomain(domain=domain, scope=asked["scope"], **{field: asked.get(key)}))
    return {"domain_entry": DOMAIN(made, req)}


def delete(req: Request, domain: str) -> None:
    """Delete a DNS domain with its entries. Raises dns.NoSuchDomain (404)."""
    req.conductor.delete_dns_domain(domain)


@answers({"dns_entry?": ENTRY, "dns_entries?": [ENTRY]})
def show_entry(req: Request, domain: str, name: str) -> dict[str, object]:
    """Show the entry with this name, or all entries with this address."""
    _known(req, domain)
    by_address = _is_address(name)
    found = req.conductor.list_dns_entries(domain, None if by_address else name, name if by_address else None)
    if not found:
        raise errors.dns.NoEntries()
    return {"dns_entries": ENTRY.all(found, req)} if by_address else {"dns_entry": ENTRY(found[0], req)}


@answers({"dns_entry": PUT_ENTRY})
def update_entry(req: Request, domain: str, name: str) -> dict[str, object]:
    """Create a DNS entry, or change its address. Raises dns.NoSuchDomain (404); dns.NotYourDomain, dns.NotYourName
    (403); dns.BadName, dns.BadEntry (400)."""
    _check_may_write(req, domain)
    asked = req.body["dns_entry"]
    made = req.conductor.put_dns_entry(DnsEntry(domain=domain, name=name, address=asked["ip"],
                                                type=asked["dns_type"]))
    return {"dns_entry": PUT_ENTRY(made, req)}


def delete_entry(req: Request, domain: str, name: str) -> None:
    """Delete a DNS entry by its name. Raises dns.NoSuchDomain, dns.NoSuchEntry (404); dns.NotYourDomain,
    dns.NotYourName (403)."""
    _check_may_write(req, domain)
    req.conductor.delete_dns_entry(domain, name)


def _known(req: Request, domain: str) -> DnsDomain:
    """Return the domain. Raises dns.NoSuchDomain if it does not exist, or belongs to another project."""
    for one in req.conductor.list_dns_domains(req.scope()):
        if one.domain == domain:
            return one
    raise errors.dns.NoSuchDomain(domain=domain)


def _check_may_write(req: Request, domain: str) -> None:
    if _known(req, domain).scope == "private" and not req.context.is_admin:
        raise errors.dns.NotYourDomain(domain=domain)


def _is_address(text: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(text)
        return True
    return False
