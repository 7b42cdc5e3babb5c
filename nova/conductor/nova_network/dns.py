"""DNS names: of floating addresses, in public domains and at users' request; of servers, in one private domain.

A driver's error never fails a server's boot or delete: it is logged, and the periodic job writes the names again.
Users' own requests fail with the driver's reason.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import time
from collections.abc import Iterable, Sequence

from nova import context, errors, failures
from nova.clients.dns import DeadlineDriver, Managers
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.db.network import dns_domains, floating
from nova.db.network.dns_domains import NamedServer
from nova.db.server.server_row import ServerRow
from nova.model.base import Scope
from nova.model.network.floating import DnsDomain, DnsEntry, FloatingQuery

LOG = logging.getLogger(__name__)

PRIVATE, PUBLIC = "private", "public"
TYPES = {"A": 4, "AAAA": 6}
LABEL_LENGTH = 63
BUDGET_S = 10.0  # for all names of one operation: longest wait of a batch of boots for a slow DNS server
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*")


class DnsNames:
    """The DNS calls of FloatingCalls, and the names of servers from boot to delete."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    @property
    def managers(self) -> Managers:
        """The two DNS drivers from nova.conf: for servers' names, and for floating addresses' names."""
        return self.deps.settings.floating.dns

    def _of_scope(self, scope: str) -> DeadlineDriver:
        return self.managers.instances if scope == PRIVATE else self.managers.floating

    # -- domains

    def list_dns_domains(self, scope: Scope) -> tuple[DnsDomain, ...]:
        """Return a project's own domains and the ones without a project, including private ones; for an administrator,
        all."""
        with self.deps.cell.reading() as tx:
            found = dns_domains.select(tx)
        return tuple(one for one in found if scope.project_id is None
                     or one.project_id in (None, scope.project_id))

    def put_dns_domain(self, domain: DnsDomain) -> DnsDomain:
        """Create a domain. If the DNS server has it already, only its owner changes. Raises dns.BadName; dns.Away if
        the DNS server does not answer."""
        _check_name(domain.domain)
        with failures.expected(LOG, "domain %s exists already; changed its owner", domain.domain,
                on=errors.dns.DomainExists):
            self._of_scope(domain.scope).create_domain(domain.domain)
        self.deps.cell.transact(lambda tx: dns_domains.put(tx, domain))
        return domain

    def delete_dns_domain(self, domain: str) -> None:
        """Delete a domain. Raises dns.NoSuchDomain if nova has no record of it; dns.Away."""
        known = self._domain(domain)
        with failures.expected(LOG, "domain %s was already missing from the DNS server", domain,
                on=errors.dns.NoSuchDomain):
            self._of_scope(known.scope).delete_domain(domain)
        self.deps.cell.transact(lambda tx: dns_domains.delete(tx, domain))

    def _domain(self, domain: str) -> DnsDomain:
        with self.deps.cell.reading() as tx:
            for one in dns_domains.select(tx, domain):
                return one
        raise errors.dns.NoSuchDomain(domain=domain)

    # -- entries

    def list_dns_entries(self, domain: str, name: str | None, address: str | None) -> tuple[DnsEntry, ...]:
        """Return entries by address, or by name without an address. Raises dns.NoSuchDomain, dns.Away."""
        driver = self._of_scope(self._domain(domain).scope)
        if address is not None:
            return tuple(DnsEntry(domain=domain, name=one, address=address, type=_type(address))
                         for one in driver.get_entries_by_address(address, domain))
        return tuple(DnsEntry(domain=domain, name=str(name), address=one, type=_type(one))
                     for one in driver.get_entries_by_name(str(name), domain))

    def put_dns_entry(self, entry: DnsEntry) -> DnsEntry:
        """Write an entry; an existing name gets the new address. Raises dns.BadName, dns.BadEntry, dns.NoSuchDomain,
        dns.NotYourName, dns.Away."""
        _check_name(entry.name)
        if _type(entry.address) != entry.type.upper():
            raise errors.dns.BadEntry(type=entry.type[:20], address=entry.address[:60])
        driver = self._writable(entry.domain, entry.name, entry.address)
        try:
            driver.create_entry(entry.name, entry.address, entry.type.upper(), entry.domain)
        except errors.dns.EntryExists:
            driver.modify_address(entry.name, entry.address, entry.domain)
        return entry

    def delete_dns_entry(self, domain: str, name: str) -> None:
        """Delete an entry. Raises dns.NoSuchDomain, dns.NoSuchEntry, dns.NotYourName, dns.Away."""
        self._writable(domain, name).delete_entry(name, domain)

    def _writable(self, domain: str, name: str, *addresses: str) -> DeadlineDriver:
        """Return the domain's driver, if the caller may write the name. A public domain without a project is shared by
        all projects. In it, a project may only write names whose old and new addresses are its own floating addresses.
        Administrators may write all. Raises Forbidden."""
        known, who = self._domain(domain), context.current()
        driver = self._of_scope(known.scope)
        if known.scope == PUBLIC and known.project_id is None and not who.is_admin:
            named = {*addresses, *driver.get_entries_by_name(name, domain)}
            with self.deps.cell.reading() as tx:
                own = {one.address for one in floating.select(tx, FloatingQuery(scope=Scope(
                    project_id=who.project_id or "")))}
            for address in sorted(named - own):
                raise errors.dns.NotYourName(address=address, domain=domain)
        return driver

    # -- names of addresses and servers

    def forget_floating(self, address: str) -> None:
        """Delete the names of a released floating address."""
        if not self.managers.floating.silent:
            with self.deps.cell.reading() as tx:
                domains = [one.domain for one in dns_domains.select(tx) if one.scope == PUBLIC]
            for domain in domains:
                _quietly(self.managers.floating, "forget", [(None, address)], domain, BUDGET_S)

    def write_servers(self, ops: Iterable[Op]) -> None:
        """Write two names for each server, its display name and its UUID, in the domain of its zone."""
        self._for_servers([op.server for op in ops], BUDGET_S)

    def note_names(self, op: Op) -> None:
        """Note the names that go with a server's addresses, before the addresses are released."""
        if self._wanted and (pairs := names_of(op.server)):
            op.note(dns_names=tuple(pairs))

    def forget_servers(self, ops: Iterable[Op]) -> None:
        """Delete the servers' own names only: another server may have the address by now."""
        pairs = [(name, address) for op in ops for name, address in op.progress.dns_names]
        if pairs and self._wanted:
            _quietly(self.managers.instances, "forget", pairs, self.deps.settings.floating.instance_dns_domain,
                     BUDGET_S)

    def write_all(self) -> int:
        """Write the names of all live servers again (``dns_update_periodic_interval``), and return the number of
        servers."""
        if not self._wanted:
            return 0
        with self.deps.cell.reading() as tx:
            found = dns_domains.named_servers(tx)
        self._for_servers(found, float("inf"))
        return len(found)

    @property
    def _wanted(self) -> bool:
        return bool(self.deps.settings.floating.instance_dns_domain) and not self.managers.instances.silent

    def _for_servers(self, servers: Sequence[ServerRow | NamedServer], budget_s: float) -> None:
        domain = self.deps.settings.floating.instance_dns_domain
        if not self._wanted or not servers:
            return
        try:
            zone = self._domain(domain).availability_zone
        except errors.dns.NoSuchDomain:
            zone = None  # a domain in the DNS server that nova did not create
        except errors.NovaError as error:
            LOG.warning("could not write the names of %d servers to DNS: %s", len(servers), error.message)
            return
        pairs = [pair for server in servers if zone in (None, server.availability_zone) for pair in names_of(server)]
        _quietly(self.managers.instances, "write", pairs, domain, budget_s)


def names_of(server: ServerRow | NamedServer) -> list[tuple[str | None, str]]:
    """Return (name, address) pairs of a server's first IPv4 address: two, or one if its own name is not a valid DNS
    label."""
    address = next((one.address for interface in server.interfaces or () for one in interface.addresses
                    if one.version == 4), None)
    return [] if address is None else [(name, address) for name in (label(server.name or ""), server.uuid) if name]


def label(name: str) -> str | None:
    """Return a server's name as a DNS label; None if no valid character is left."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:LABEL_LENGTH].rstrip("-") or None


def _quietly(driver: DeadlineDriver, act: str, pairs: Sequence[tuple[str | None, str]], domain: str, budget_s: float
             ) -> None:
    """``write`` each name, or ``forget`` each name that still has the address (without a name: all names of the
    address). The first failure, or the end of the time budget, ends it and is logged."""
    until = time.monotonic() + budget_s
    for number, (name, address) in enumerate(pairs):
        if time.monotonic() > until:
            LOG.warning("DNS is slow: did not change %d names in the domain %s", len(pairs) - number, domain)
            return
        try:
            {"forget": _forget, "write": _write}[act](driver, name, address, domain)
        except errors.NovaError as error:
            LOG.warning("could not change names in the DNS domain %s: %s", domain, error.message)
            return


def _forget(driver: DeadlineDriver, name: str | None, address: str, domain: str) -> None:
    for found in driver.get_entries_by_address(address, domain):
        if name in (None, found):
            with failures.expected(LOG, "%s was already missing from %s", found, domain, on=errors.dns.NoSuchEntry,
                    level=logging.DEBUG):
                driver.delete_entry(found, domain)


def _write(driver: DeadlineDriver, name: str | None, address: str, domain: str) -> None:
    if name is None:
        return
    try:
        driver.create_entry(name, address, "A", domain)
    except errors.dns.EntryExists:
        if address not in driver.get_entries_by_name(name, domain):
            LOG.warning("the name %s in the DNS domain %s belongs to another address; left it unchanged", name, domain)


def _check_name(name: str) -> None:
    if len(name) > 253 or not _NAME.fullmatch(name) or any(len(one) > LABEL_LENGTH for one in name.split(".")):
        raise errors.dns.BadName(name=name[:60])


def _type(address: str) -> str:
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return ""
    return next(name for name, number in TYPES.items() if number == version)


__all__ = ["PRIVATE", "PUBLIC", "DnsNames", "label", "names_of"]
