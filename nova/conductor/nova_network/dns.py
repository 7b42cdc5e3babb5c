"""Names in DNS: of floating addresses, in public domains and as users say; of servers, in one private domain.

What a driver does not take never fails a server's boot or delete: it is logged, and the periodic job writes the names
again. What users ask of it themselves does fail, with the driver's reason.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import time
from collections.abc import Iterable, Sequence

from nova import context, errors
from nova.clients.dns import Managers, Patient
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.db.network import dns_domains, floating
from nova.db.server.server_row import AnyServer
from nova.model.base import Scope
from nova.model.network.floating import DnsDomain, DnsEntry, FloatingQuery

LOG = logging.getLogger(__name__)

PRIVATE, PUBLIC = "private", "public"
TYPES = {"A": 4, "AAAA": 6}
LABEL_LENGTH = 63
BUDGET_S = 10.0  # of all names of one order: a batch of boots waits no longer for a slow DNS server
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*")


class DnsNames:
    """The DNS part of FloatingCalls, and servers' names as they come and go."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    @property
    def managers(self) -> Managers:
        """The two DNS drivers that nova.conf names: of servers' names, and of floating addresses'."""
        return self.deps.settings.floating.dns

    def _of_scope(self, scope: str) -> Patient:
        return self.managers.instances if scope == PRIVATE else self.managers.floating

    # -- domains

    def list_dns_domains(self, scope: Scope) -> tuple[DnsDomain, ...]:
        """A project's own, and those of nobody, among them the private ones; an administrator's: all."""
        with self.deps.cell.reading() as tx:
            found = dns_domains.select(tx)
        return tuple(one for one in found if scope.project_id is None
                     or one.project_id in (None, scope.project_id))

    def put_dns_domain(self, domain: DnsDomain) -> DnsDomain:
        """A domain that the DNS server has already changes hands only. dns.BadName; dns.Away: the DNS server does not
        answer."""
        _check_name(domain.domain)
        try:
            self._of_scope(domain.scope).create_domain(domain.domain)
        except errors.dns.DomainExists:
            LOG.info("domain %s is there already: whose it is changes", domain.domain)
        self.deps.cell.transact(lambda tx: dns_domains.put(tx, domain))
        return domain

    def delete_dns_domain(self, domain: str) -> None:
        """dns.NoSuchDomain: we know none of that name; dns.Away."""
        known = self._domain(domain)
        try:
            self._of_scope(known.scope).delete_domain(domain)
        except errors.dns.NoSuchDomain:
            LOG.info("domain %s was gone from the DNS server already", domain)
        self.deps.cell.transact(lambda tx: dns_domains.delete(tx, domain))

    def _domain(self, domain: str) -> DnsDomain:
        with self.deps.cell.reading() as tx:
            for one in dns_domains.select(tx, domain):
                return one
        raise errors.dns.NoSuchDomain(domain=domain)

    # -- entries

    def list_dns_entries(self, domain: str, name: str | None, address: str | None) -> tuple[DnsEntry, ...]:
        """By the address; by the name where no address is given. dns.NoSuchDomain, dns.Away."""
        driver = self._of_scope(self._domain(domain).scope)
        if address is not None:
            return tuple(DnsEntry(domain=domain, name=one, address=address, type=_type(address))
                         for one in driver.get_entries_by_address(address, domain))
        return tuple(DnsEntry(domain=domain, name=str(name), address=one, type=_type(one))
                     for one in driver.get_entries_by_name(str(name), domain))

    def put_dns_entry(self, entry: DnsEntry) -> DnsEntry:
        """A name that is there gets the new address. dns.BadName, dns.BadEntry, dns.NoSuchDomain, dns.NotYourName,
        dns.Away."""
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
        """dns.NoSuchDomain, dns.NoSuchEntry, dns.NotYourName, dns.Away."""
        self._writable(domain, name).delete_entry(name, domain)

    def _writable(self, domain: str, name: str, *addresses: str) -> Patient:
        """The domain's driver. Forbidden in a public domain that is no project's, which all share, but for who has the
        floating addresses: those that the name shall have, and those that it has. Administrators may."""
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

    # -- what goes with addresses

    def forget_floating(self, address: str) -> None:
        """A floating address is nobody's: so are its names."""
        if not self.managers.floating.silent:
            with self.deps.cell.reading() as tx:
                domains = [one.domain for one in dns_domains.select(tx) if one.scope == PUBLIC]
            for domain in domains:
                _quietly(self.managers.floating, "forget", [(None, address)], domain, BUDGET_S)

    def write_servers(self, ops: Iterable[Op]) -> None:
        """The servers' two names each: what users call them, and their uuids. In the domain of their zone."""
        self._for_servers([op.server for op in ops], BUDGET_S)

    def note_names(self, op: Op) -> None:
        """Before a server's addresses are given back: which names go with them."""
        if self._wanted and (pairs := names_of(op.server)):
            op.note(dns_names=tuple(pairs))

    def forget_servers(self, ops: Iterable[Op]) -> None:
        """The servers' own names: by now, somebody else may have the address."""
        pairs = [(name, address) for op in ops for name, address in op.progress.dns_names]
        if pairs and self._wanted:
            _quietly(self.managers.instances, "forget", pairs, self.deps.settings.floating.instance_dns_domain,
                     BUDGET_S)

    def write_all(self) -> int:
        """Write the names of all live servers again (``dns_update_periodic_interval``); how many servers."""
        if not self._wanted:
            return 0
        with self.deps.cell.reading() as tx:
            found = dns_domains.named_servers(tx)
        self._for_servers(found, float("inf"))
        return len(found)

    @property
    def _wanted(self) -> bool:
        return bool(self.deps.settings.floating.instance_dns_domain) and not self.managers.instances.silent

    def _for_servers(self, servers: Sequence[AnyServer], budget_s: float) -> None:
        domain = self.deps.settings.floating.instance_dns_domain
        if not self._wanted or not servers:
            return
        try:
            zone = self._domain(domain).availability_zone
        except errors.dns.NoSuchDomain:
            zone = None  # one that the DNS server has, and we have not made
        except errors.NovaError as error:
            LOG.warning("names of %d servers are not written to DNS: %s", len(servers), error.message)
            return
        pairs = [pair for server in servers if zone in (None, server.availability_zone) for pair in names_of(server)]
        _quietly(self.managers.instances, "write", pairs, domain, budget_s)


def names_of(server: AnyServer) -> list[tuple[str | None, str]]:
    """(name, address) of a server's first IPv4 address: two names, or one where its own cannot stand in DNS."""
    address = next((one.address for interface in server.interfaces or () for one in interface.addresses
                    if one.version == 4), None)
    return [] if address is None else [(name, address) for name in (label(server.name or ""), server.uuid) if name]


def label(name: str) -> str | None:
    """A server's name as a label in DNS; None where nothing of it can stand."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:LABEL_LENGTH].rstrip("-") or None


def _quietly(driver: Patient, act: str, pairs: Sequence[tuple[str | None, str]], domain: str, budget_s: float) -> None:
    """``write`` each name, or ``forget`` each where it is the address's (without a name: every one that it has). The
    first failure ends it, or the budget's end, and is logged."""
    until = time.monotonic() + budget_s
    for number, (name, address) in enumerate(pairs):
        if time.monotonic() > until:
            LOG.warning("DNS is slow: %d names in the domain %s were not changed", len(pairs) - number, domain)
            return
        try:
            {"forget": _forget, "write": _write}[act](driver, name, address, domain)
        except errors.NovaError as error:
            LOG.warning("names in the DNS domain %s were not changed: %s", domain, error.message)
            return


def _forget(driver: Patient, name: str | None, address: str, domain: str) -> None:
    for found in driver.get_entries_by_address(address, domain):
        if name in (None, found):
            try:
                driver.delete_entry(found, domain)
            except errors.dns.NoSuchEntry:
                LOG.debug("%s was gone from %s already", found, domain)


def _write(driver: Patient, name: str | None, address: str, domain: str) -> None:
    if name is None:
        return
    try:
        driver.create_entry(name, address, "A", domain)
    except errors.dns.EntryExists:
        if address not in driver.get_entries_by_name(name, domain):
            LOG.warning("the name %s in the DNS domain %s is another address's, and stays so", name, domain)


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
