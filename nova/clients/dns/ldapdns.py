"""DNS in an LDAP directory, as the LDAP back ends of PowerDNS and BIND read it (schema ``cosine``: dNSDomain, RFC
4524).

A domain is ``dc=<domain>,<ldap_dns_base_dn>`` with its SOA and name servers; a name is an entry below it, with its
address. Requires the library ldap3 (the extra ``ldap``). Each call has a connection of its own, with timeouts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypedDict

from nova import errors, failures
from nova.clients.dns.drivers import DnsOptions

if TYPE_CHECKING:
    import ldap3

CONNECT_S, ANSWER_S = 3.0, 3.0
CLASSES = ["top", "domain", "dcObject", "dNSDomain", "domainRelatedObject"]
RECORDS = {"A": "aRecord"}
NO_SUCH_OBJECT, ALREADY_EXISTS = 32, 68  # result codes of RFC 4511


class LdapEntry(TypedDict):
    """An entry in ldap3's form of answers."""

    dn: str
    attributes: Mapping[str, object]


class LdapDNS:
    """DNS driver for LDAP. ``connect`` returns an unbound ldap3 connection for the options (tests pass a mock)."""

    def __init__(self, options: DnsOptions, connect: Callable[[DnsOptions], ldap3.Connection] | None = None) -> None:
        self._options, self._connect = options, connect or _connection

    def get_domains(self) -> list[str]:
        """Return the names of all entries with a SOA record below the base, sorted. Raises dns.Ldap if the server
        refused."""
        with self._bound() as ldap:
            return sorted(_texts(one, "associatedDomain")[0]
                          for one in self._search(ldap, self._options.ldap_dns_base_dn, "(sOARecord=*)"))

    def create_domain(self, fqdomain: str) -> None:
        with self._bound() as ldap:
            self._change(ldap, "add", errors.dns.DomainExists(domain=fqdomain), self._domain(fqdomain), CLASSES, {
                "dc": fqdomain, "associatedDomain": fqdomain, "sOARecord": self._authority(),
                "nSRecord": list(self._options.ldap_dns_servers)})

    def delete_domain(self, fqdomain: str) -> None:
        with self._bound() as ldap:
            self._need(ldap, fqdomain)
            for entry in self._search(ldap, self._domain(fqdomain), "(aRecord=*)"):
                self._change(ldap, "delete", None, entry["dn"])
            self._change(ldap, "delete", errors.dns.NoSuchDomain(domain=fqdomain), self._domain(fqdomain))

    def create_entry(self, name: str, address: str, type: str, domain: str) -> None:
        record = RECORDS.get(type.upper())
        if record is None:
            raise errors.dns.BadType(type=type)
        with self._bound() as ldap:
            self._need(ldap, domain)
            self._change(ldap, "add", errors.dns.EntryExists(name=name,
                                                             domain=domain), self._entry(name, domain), CLASSES, {
                "dc": name, "associatedDomain": f"{name}.{domain}", record: address})
            self._raise_serial(ldap, domain)

    def delete_entry(self, name: str, domain: str) -> None:
        with self._bound() as ldap:
            self._change(ldap, "delete", errors.dns.NoSuchEntry(name=name, domain=domain), self._entry(name, domain))
            self._raise_serial(ldap, domain)

    def modify_address(self, name: str, address: str, domain: str) -> None:
        with self._bound() as ldap:
            self._change(ldap, "modify", errors.dns.NoSuchEntry(name=name, domain=domain), self._entry(name, domain),
                         {RECORDS["A"]: [("MODIFY_REPLACE", [address])]})
            self._raise_serial(ldap, domain)

    def get_entries_by_address(self, address: str, domain: str) -> list[str]:
        from ldap3.utils.conv import escape_filter_chars

        with self._bound() as ldap:
            found = self._search(ldap, self._domain(domain), f"(aRecord={escape_filter_chars(address)})")
            return sorted(_texts(one, "dc")[0] for one in found)

    def get_entries_by_name(self, name: str, domain: str) -> list[str]:
        from ldap3.utils.conv import escape_filter_chars

        with self._bound() as ldap:
            found = self._search(ldap, self._domain(domain),
                                 f"(&(dc={escape_filter_chars(name)})(aRecord=*))")
            return [address for one in found for address in _texts(one, "aRecord")]

    # -- names and records

    def _domain(self, fqdomain: str) -> str:
        return f"dc={_escaped(fqdomain)},{self._options.ldap_dns_base_dn}"

    def _entry(self, name: str, domain: str) -> str:
        return f"dc={_escaped(name)},{self._domain(domain)}"

    def _authority(self) -> str:
        """Return the SOA record's text; its serial number increases with the time."""
        mine = self._options
        words = (mine.ldap_dns_servers[0], mine.ldap_dns_soa_hostmaster.replace("@", "."), int(time.time()),
                 mine.ldap_dns_soa_refresh, mine.ldap_dns_soa_retry, mine.ldap_dns_soa_expiry,
                 mine.ldap_dns_soa_minimum)
        return " ".join(map(str, words))

    def _raise_serial(self, ldap: ldap3.Connection, domain: str) -> None:
        """Increase the serial number, so that secondary servers notice the change."""
        self._change(ldap, "modify", errors.dns.NoSuchDomain(domain=domain), self._domain(domain),
                     {"sOARecord": [("MODIFY_REPLACE", [self._authority()])]})

    # -- the server

    @contextlib.contextmanager
    def _bound(self) -> Iterator[ldap3.Connection]:
        from ldap3.core.exceptions import LDAPException

        with failures.translated(LDAPException, lambda error: errors.dns.Ldap(url=self._options.ldap_dns_url,
                what="a request", reason=str(error)[:200])):
            ldap = self._connect(self._options)
            if not ldap.bound and not ldap.bind():
                raise errors.dns.Ldap(url=self._options.ldap_dns_url, what="nova's credentials",
                                      reason=ldap.result["description"])
            try:
                yield ldap
            finally:
                ldap.unbind()

    def _search(self, ldap: ldap3.Connection, base: str, wanted: str) -> list[LdapEntry]:
        """Return the matching entries; empty if the base does not exist."""
        ldap.search(base, wanted, search_scope="SUBTREE", attributes=["dc", "associatedDomain", "aRecord"])
        if ldap.result["result"] not in (0, NO_SUCH_OBJECT):
            raise errors.dns.Ldap(url=self._options.ldap_dns_url, what="a search", reason=ldap.result["description"])
        return [one for one in ldap.response or () if one.get("type", "searchResEntry") == "searchResEntry"]

    def _need(self, ldap: ldap3.Connection, domain: str) -> None:
        if not self._search(ldap, self._domain(domain), "(sOARecord=*)"):
            raise errors.dns.NoSuchDomain(domain=domain)

    def _change(self, ldap: ldap3.Connection, method: str, exists_or_not: errors.NovaError | None,
                *args: object) -> None:
        """Change an entry. ``exists_or_not`` is raised if the entry already exists, or does not exist."""
        if getattr(ldap, method)(*args):
            return
        if ldap.result["result"] in (NO_SUCH_OBJECT, ALREADY_EXISTS):
            if exists_or_not is not None:
                raise exists_or_not
            return
        raise errors.dns.Ldap(url=self._options.ldap_dns_url, what=f"to {method} {args[0]}",
                              reason=ldap.result["description"])


def _connection(options: DnsOptions) -> ldap3.Connection:
    import ldap3

    server = ldap3.Server(options.ldap_dns_url, connect_timeout=CONNECT_S)
    return ldap3.Connection(server, options.ldap_dns_user, options.ldap_dns_password, receive_timeout=ANSWER_S,
                            raise_exceptions=False)


def _escaped(text: str) -> str:
    from ldap3.utils.dn import escape_rdn

    return str(escape_rdn(text))


def _texts(entry: LdapEntry, attribute: str) -> list[str]:
    value = {name.lower(): found for name, found in entry["attributes"].items()}.get(attribute.lower())
    values = value if isinstance(value, list) else [value]
    return [one.decode() if isinstance(one, bytes) else str(one) for one in values if one is not None]
