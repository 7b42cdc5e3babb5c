"""The fake conductor's part for floating addresses and their names in DNS."""

from __future__ import annotations

import msgspec

from nova import context, errors
from nova.model import address_ranges
from nova.model.base import Scope
from nova.model.floating import (
    DnsDomain,
    DnsEntry,
    FloatingAddress,
    FloatingAssociation,
    FloatingPool,
    FloatingQuery,
    FloatingRange,
)

replace = msgspec.structs.replace


class FloatingOfFake:
    """``floating``: by address. ``dns_entries``: by (domain, name)."""

    def __init__(self) -> None:
        super().__init__()
        self.floating: dict[str, FloatingAddress] = {}
        self.floating_limit = 10
        self.domains: dict[str, DnsDomain] = {}
        self.dns_entries: dict[tuple[str, str], DnsEntry] = {}

    def add_floating(self, address: str, pool: str = "nova", **fields: str | None) -> FloatingAddress:
        self.floating[address] = FloatingAddress(id=str(len(self.floating) + 1), address=address, pool=pool, **fields)
        return self.floating[address]

    def _owned(self, address: str) -> FloatingAddress:
        found = self.floating.get(address)
        if found is None or found.project_id is None:
            raise errors.NotFound(f"Floating IP not found for address {address}.")
        who = context.current()
        if not who.is_admin and who.project_id != found.project_id:
            raise errors.Forbidden("It is another project's.")
        return found

    def list_floating_pools(self, scope: Scope) -> tuple[FloatingPool, ...]:
        return tuple(FloatingPool(name=name) for name in sorted({one.pool for one in self.floating.values()}))

    def list_floating_addresses(self, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
        return tuple(one for one in self.floating.values()
                     if (query.all_rows or one.project_id is not None)
                     and query.scope.project_id in (None, one.project_id) and query.host in (None, one.host))

    def get_floating_address(self, id: str, scope: Scope) -> FloatingAddress:
        if not id.isdigit():
            raise errors.Invalid(f"Invalid ID received {id}.")
        for one in self.floating.values():
            if one.id == id and one.project_id is not None and scope.project_id in (None, one.project_id):
                return one
        raise errors.NotFound(f"Floating IP not found for ID {id}")

    def allocate_floating_address(self, project_id: str, pool: str | None) -> FloatingAddress:
        if sum(one.project_id == project_id for one in self.floating.values()) >= self.floating_limit:
            raise errors.OverQuota("Maximum number of floating IPs exceeded")
        for one in self.floating.values():
            if one.project_id is None and one.pool == (pool or "nova"):
                self.floating[one.address] = replace(one, project_id=project_id)
                return self.floating[one.address]
        raise errors.NotFound(f"No more floating IPs in pool {pool}.")

    def release_floating_address(self, id: str, scope: Scope) -> None:
        found = self.get_floating_address(id, Scope())
        if scope.project_id not in (None, found.project_id):
            raise errors.Forbidden("It is another project's.")
        self.floating[found.address] = replace(found, project_id=None, server_uuid=None, fixed_address=None)

    def associate_floating_address(self, association: FloatingAssociation) -> None:
        found = self._owned(association.address)
        self.floating[found.address] = replace(found, server_uuid=association.server_uuid,
                                               fixed_address=association.fixed_address or "10.0.0.3")

    def disassociate_floating_address(self, association: FloatingAssociation) -> None:
        found = self._owned(association.address)
        if found.server_uuid != association.server_uuid:
            raise errors.Conflict(f"Floating IP {found.address} is not associated with the instance.")
        self.floating[found.address] = replace(found, server_uuid=None, fixed_address=None)

    def create_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        addresses = address_ranges.usable(range.ip_range)
        for address in addresses:
            if address in self.floating:
                raise errors.Conflict(f"Floating IP {address} already exists.")
        for address in addresses:
            self.add_floating(address, range.pool or "nova", interface=range.interface)
        return addresses

    def delete_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        gone = tuple(one for one in address_ranges.usable(range.ip_range)
                     if one in self.floating and self.floating[one].project_id is None)
        for one in gone:
            del self.floating[one]
        return gone

    def list_dns_domains(self, scope: Scope) -> tuple[DnsDomain, ...]:
        return tuple(one for one in self.domains.values()
                     if scope.project_id is None or one.project_id in (None, scope.project_id))

    def put_dns_domain(self, domain: DnsDomain) -> DnsDomain:
        self.domains[domain.domain] = domain
        return domain

    def delete_dns_domain(self, domain: str) -> None:
        if self.domains.pop(domain, None) is None:
            raise errors.NotFound(f"The DNS domain {domain} could not be found.")

    def list_dns_entries(self, domain: str, name: str | None, address: str | None) -> tuple[DnsEntry, ...]:
        return tuple(one for one in self.dns_entries.values() if one.domain == domain
                     and name in (None, one.name) and address in (None, one.address))

    def put_dns_entry(self, entry: DnsEntry) -> DnsEntry:
        self.dns_entries[entry.domain, entry.name] = entry
        return entry

    def delete_dns_entry(self, domain: str, name: str) -> None:
        if self.dns_entries.pop((domain, name), None) is None:
            raise errors.NotFound(f"The DNS entry {name} could not be found.")
