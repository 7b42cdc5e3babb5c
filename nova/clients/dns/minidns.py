"""DNS in a file below ``state_path``: for tests and small clouds, whose operators feed it to a name server.

Each line is an entry: ``<address>   <name>.<domain>   <type>``; a domain's own line begins with ``domain``. The file is
read and written as a whole, under a lock of the host: several conductors on one host may use it, and readers never see
a partial file.
"""

from __future__ import annotations

from typing import NamedTuple

from nova import errors
from nova.clients.dns.drivers import DnsOptions
from nova.privileged.files import locked, write_whole

FILE, LOCK = "dnstest.txt", "dnstest.lock"
TYPES = ("A", "AAAA")
DOMAIN = "domain"


class Line(NamedTuple):
    address: str  # ``domain`` for a domain's own line
    name: str  # qualified, in lower case
    type: str


class MiniDNS:
    def __init__(self, options: DnsOptions) -> None:
        self.path, self._lock = options.state_path / FILE, options.state_path / LOCK

    def get_domains(self) -> list[str]:
        """Names of all domains, in the order of the file."""
        return [line.name for line in self._read() if line.address == DOMAIN]

    def create_domain(self, fqdomain: str) -> None:
        with locked(self._lock):
            lines = self._read()
            if any(line == _domain(fqdomain) for line in lines):
                raise errors.dns.DomainExists(domain=fqdomain)
            self._write([*lines, _domain(fqdomain)])

    def delete_domain(self, fqdomain: str) -> None:
        with locked(self._lock):
            lines = self._read()
            if _domain(fqdomain) not in lines:
                raise errors.dns.NoSuchDomain(domain=fqdomain)
            self._write([line for line in lines
                         if line != _domain(fqdomain) and _domain_of(line, lines) != fqdomain.lower()])

    def create_entry(self, name: str, address: str, type: str, domain: str) -> None:
        if type.upper() not in TYPES:
            raise errors.dns.BadType(type=type)
        with locked(self._lock):
            lines = self._read()
            whole = qualified(name, domain)
            if any(line.name == whole for line in lines if line.address != DOMAIN):
                raise errors.dns.EntryExists(name=name, domain=domain)
            self._write([*lines, Line(address, whole, type.upper())])

    def delete_entry(self, name: str, domain: str) -> None:
        with locked(self._lock):
            lines = self._read()
            kept = [line for line in lines if line.address == DOMAIN or line.name != qualified(name, domain)]
            if len(kept) == len(lines):
                raise errors.dns.NoSuchEntry(name=name, domain=domain)
            self._write(kept)

    def modify_address(self, name: str, address: str, domain: str) -> None:
        with locked(self._lock):
            lines, whole = self._read(), qualified(name, domain)
            if not any(line.name == whole for line in lines if line.address != DOMAIN):
                raise errors.dns.NoSuchEntry(name=name, domain=domain)
            self._write([line._replace(address=address) if line.name == whole and line.address != DOMAIN else line
                         for line in lines])

    def get_entries_by_address(self, address: str, domain: str) -> list[str]:
        lines, suffix = self._read(), domain.lower()
        return [line.name.removesuffix(f".{suffix}") for line in lines
                if line.address == address and _domain_of(line, lines) == suffix]

    def get_entries_by_name(self, name: str, domain: str) -> list[str]:
        return [line.address for line in self._read()
                if line.address != DOMAIN and line.name == qualified(name, domain)]

    def _read(self) -> list[Line]:
        try:
            words = (line.split() for line in self.path.read_text().splitlines())
        except FileNotFoundError:
            return []
        return [Line(*found) for found in words if len(found) == 3]

    def _write(self, lines: list[Line]) -> None:
        write_whole(self.path, "".join(f"{line.address}   {line.name}   {line.type}\n" for line in lines))


def qualified(name: str, domain: str) -> str:
    """Return ``name.domain`` in lower case, as in lines of the file."""
    return f"{name}.{domain}".lower()


def _domain(name: str) -> Line:
    return Line(DOMAIN, name.lower(), DOMAIN)


def _domain_of(line: Line, lines: list[Line]) -> str:
    """Return an entry's own domain: the longest domain that its name ends with (domains may be nested)."""
    if line.address == DOMAIN:
        return ""
    within = [one.name for one in lines if one.address == DOMAIN and line.name.endswith(f".{one.name}")]
    return max(within, key=len, default="")


__all__ = ["FILE", "MiniDNS"]
