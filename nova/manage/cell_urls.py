"""URLs of cells: the configured ones, templates filled from them, and their display."""

from __future__ import annotations

import contextlib
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from nova.conf._options import Options, oslo_conf

#: Suffix that deployment tools expect: the configured database's name plus this is cell0's database.
SUFFIX = "_cell0"
CELL0_NAME = "cell0"  # template name that rows of older releases have for cell0's URL
NO_TRANSPORT = "none:///"
#: The password of a user, for each of several hosts; up to the last @, which a password may contain unescaped.
PASSWORD = re.compile(r"(//|,)([^:@/,]*):[^,]*@")
BRACE = re.compile(r"[{}]")
#: Default ports of database servers.
PORTS = {"mysql": "3306", "postgres": "5432"}
_USER = r"(?:(?P<username>[^:@]*)(?::(?P<password>.*))?@)?"
_HOST = re.compile(_USER + r"(?P<hostname>\[[^\]]*\]|[^:@]*)(?::(?P<port>\d+))?")


class CellUrls(NamedTuple):
    """The URLs of a cell; empty if not set."""

    transport_url: str
    database_connection: str


def configured(options: Options) -> CellUrls:
    """Return the URLs that services connect to."""
    from nova.rpc import transport

    broker = transport.has_broker(options)  # also declares transport_url, for which the library has a default
    return CellUrls(oslo_conf(options).transport_url if broker else "", options.database.connection or "")


def filled(recorded: str | None, url: str) -> str:
    """Return the URL of ``recorded``, a URL or a template; None: ``url`` itself. In a template ``{scheme}``,
    ``{username}``, ``{password}``, ``{hostname}``, ``{port}``, ``{path}``, ``{query}`` and ``{fragment}`` stand for
    parts of the configured ``url``; for several hosts, user, password, host name and port have a number, from 0 on. A
    template that cannot be filled is returned unchanged."""
    if recorded is None:
        return url
    with contextlib.suppress(KeyError, ValueError, IndexError, AttributeError):
        parts = {**_parts(url), CELL0_NAME: with_suffix(url)}
        return recorded.format_map(parts) if BRACE.search(recorded) else recorded
    return recorded


def as_template(url: str, configured: str) -> str | None:
    """Return ``url`` with ``{password}`` (``{password1}`` and so on) in place of the passwords of ``configured``: rows
    do not store the passwords of nova.conf, so a password change there needs no change of rows. Templates are returned
    unchanged. None: it is ambiguous which part of the URL is a password."""
    if "{" in url:
        return url
    parts, names = _parts(configured), dict[str, str]()
    for name in sorted(name for name in parts if name.startswith("password")):
        names.setdefault(parts[name].replace("}", "}}"), name)
    scheme, mark, rest = url.replace("}", "}}").partition("://")
    authority, slash, tail = rest.partition("/")
    hosts = []
    for host in authority.split(","):
        match = _HOST.fullmatch(host)
        if match is None:
            return None
        password = match["password"]
        hosts.append(f"{match['username']}:{{{names[password]}}}{host[match.end('password'):]}"
                     if password and password in names else host)
    made = f"{scheme}{mark}{','.join(hosts)}{slash}{tail}"
    return made if "{" in made else url


def of_one_database(one: str, other: str) -> bool:
    """True if both URLs name the same database, regardless of the driver, the user and the parameters."""
    return bool(one) and _address(one) == _address(other)


def _address(url: str) -> tuple[str, str, str]:
    parts = _parts(url)
    kind = parts["scheme"].partition("+")[0].replace("mariadb", "mysql").replace("postgresql", "postgres")
    return kind, f"{parts.get('hostname', '').lower()}:{parts.get('port') or PORTS.get(kind, '')}", parts["path"]


def with_suffix(url: str) -> str:
    """Return the URL of cell0's database next to that of ``url``; empty if ``url`` is empty."""
    address, mark, query = url.partition("?")
    return f"{address}{SUFFIX}{mark}{query}" if url else ""


def _parts(url: str) -> dict[str, str]:
    whole = urlsplit(url)
    found = {"scheme": whole.scheme, "path": whole.path.lstrip("/"), "query": whole.query, "fragment": whole.fragment}
    for number, host in enumerate(whole.netloc.split(",")):
        match = _HOST.fullmatch(host)
        named = {name: value or "" for name, value in match.groupdict().items()} if match else {}
        found |= {f"{name}{number}": value for name, value in named.items()} | (named if number == 0 else {})
    return found


def without_passwords(url: str) -> str:
    """Return the URL with masked passwords. If the password is ambiguous, users and earlier hosts are masked too."""
    masked = PASSWORD.sub(r"\1\2:****@", url)
    if masked.count("@") == masked.count(":****@"):
        return masked
    return f"{url.partition('://')[0]}://****@{url.rpartition('@')[2]}"
