"""Interface of DNS drivers, and their lookup by name."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from nova import errors, failures

NOOP = "nova.network.noop_dns_driver.NoopDNSDriver"


class DnsDriver(Protocol):
    """Interface of a driver. Calls may raise any exception; callers handle those of this module specifically."""

    def get_domains(self) -> list[str]:
        """Return the names of all domains."""

    def create_domain(self, fqdomain: str) -> None:
        """Create a domain. Raises dns.DomainExists."""

    def delete_domain(self, fqdomain: str) -> None:
        """Delete a domain with its entries. Raises dns.NoSuchDomain."""

    def create_entry(self, name: str, address: str, type: str, domain: str) -> None:
        """Create an entry. Raises dns.EntryExists if the name already has an address; dns.BadType if the type is not
        supported."""

    def delete_entry(self, name: str, domain: str) -> None:
        """Delete an entry. Raises dns.NoSuchEntry."""

    def modify_address(self, name: str, address: str, domain: str) -> None:
        """Change the address of an entry. Raises dns.NoSuchEntry."""

    def get_entries_by_address(self, address: str, domain: str) -> list[str]:
        """Return the names of an address."""

    def get_entries_by_name(self, name: str, domain: str) -> list[str]:
        """Return the addresses of a name."""


@dataclasses.dataclass(frozen=True)
class DnsOptions:
    """Options of nova's drivers, by their names in nova.conf. ``ldap_dns_password`` appears in no log."""

    state_path: Path = Path("/var/lib/nova")
    ldap_dns_url: str = "ldap://ldap.example.com:389"
    ldap_dns_user: str = "uid=admin,ou=people,dc=example,dc=org"
    ldap_dns_password: str = dataclasses.field(default="", repr=False)
    ldap_dns_soa_hostmaster: str = "hostmaster@example.org"
    ldap_dns_servers: tuple[str, ...] = ("dns.example.org",)
    ldap_dns_base_dn: str = "ou=hosts,dc=example,dc=org"
    ldap_dns_soa_refresh: str = "1800"
    ldap_dns_soa_retry: str = "3600"
    ldap_dns_soa_expiry: str = "86400"
    ldap_dns_soa_minimum: str = "7200"


class NoopDNSDriver:
    """Driver without DNS: it stores nothing and finds nothing."""

    def get_domains(self) -> list[str]:
        return []

    def create_domain(self, fqdomain: str) -> None: ...

    def delete_domain(self, fqdomain: str) -> None: ...

    def create_entry(self, name: str, address: str, type: str, domain: str) -> None: ...

    def delete_entry(self, name: str, domain: str) -> None: ...

    def modify_address(self, name: str, address: str, domain: str) -> None: ...

    def get_entries_by_address(self, address: str, domain: str) -> list[str]:
        return []

    def get_entries_by_name(self, name: str, domain: str) -> list[str]:
        return []


#: Names of nova's drivers in nova.conf -> (module, class)
OURS = {NOOP: (__name__, "NoopDNSDriver"),
        "nova.network.minidns.MiniDNS": ("nova.clients.dns.minidns", "MiniDNS"),
        "nova.network.ldapdns.LdapDNS": ("nova.clients.dns.ldapdns", "LdapDNS")}


def load(option: str, name: str, options: DnsOptions) -> DnsDriver:
    """Return the driver of that class path. Raises dns.NoDriver if it does not exist, or cannot be created."""
    module, _dot, kind = name.rpartition(".")
    module, kind = OURS.get(name, (module, kind))
    with failures.replaced((ImportError, AttributeError, ValueError), lambda error: errors.dns.NoDriver(option=option,
            reason=f"there is no such class ({type(error).__name__}). Nova provides {', '.join(OURS)}")):
        found: Callable[..., Any] = getattr(importlib.import_module(module), kind)
    # an operator's own class may raise anything
    with failures.translated(Exception,
            lambda error: errors.dns.NoDriver(option=option, reason=f"{type(error).__name__}: {error}")):
        made: DnsDriver = found(options) if _takes_options(found) else found()
    return made


def _takes_options(kind: Callable[..., object]) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        return any(one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
                   for one in inspect.signature(kind).parameters.values())
    return False
