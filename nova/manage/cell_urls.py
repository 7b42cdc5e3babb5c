"""URLs of cells: what the configuration says, templates filled from it, and how they are shown."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from nova.conf.base import Options

#: The database of cell0 as deployment tools expect it: the configuration's, with this behind its name.
SUFFIX = "_cell0"
CELL0_NAME = "cell0"  # of a template: what rows of older releases have for that URL
NO_TRANSPORT = "none:///"
#: A user's, for each of several hosts; up to the last @, which a password may have unescaped.
PASSWORD = re.compile(r"(//|,)([^:@/,]*):[^,]*@")
BRACE = re.compile(r"[{}]")
#: Where a database server listens whose URL does not say.
PORTS = {"mysql": "3306", "postgres": "5432"}
_USER = r"(?:(?P<username>[^:@]*)(?::(?P<password>.*))?@)?"
_HOST = re.compile(_USER + r"(?P<hostname>\[[^\]]*\]|[^:@]*)(?::(?P<port>\d+))?")


class CellUrls(NamedTuple):
    """Empty where nothing is set."""

    transport_url: str
    database_connection: str


def configured(options: Options) -> CellUrls:
    """Those that the daemons connect to."""
    from nova.rpc import transport

    broker = transport.has_broker(options)  # it declares transport_url, too, which the library gives a default
    return CellUrls(options.transport_url if broker else "", options.database.connection or "")


def filled(recorded: str | None, url: str) -> str:
    """``recorded``, a URL or a template: ``{scheme}``, ``{username}``, ``{password}``, ``{hostname}``, ``{port}``,
    ``{path}``, ``{query}`` and ``{fragment}`` stand for parts of the configuration's ``url``; of several hosts the
    first four have a number, from 0 on. None: ``url`` itself. A template that does not fit is shown as it is."""
    if recorded is None:
        return url
    try:
        parts = {**_parts(url), CELL0_NAME: with_suffix(url)}
        return recorded.format_map(parts) if BRACE.search(recorded) else recorded
    except (KeyError, ValueError, IndexError, AttributeError):
        return recorded


def as_template(url: str, configured: str) -> str | None:
    """``url`` with ``{password}`` (``{password1}`` and so on) where it has a password of ``configured``: no row keeps
    what nova.conf has, and another password there needs no other row. What is a template already stays. None: it is not
    plain what of the URL is a password."""
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
    """Whether both URLs lead to the same database, whatever the driver, the user and the parameters."""
    return bool(one) and _address(one) == _address(other)


def _address(url: str) -> tuple[str, str, str]:
    parts = _parts(url)
    kind = parts["scheme"].partition("+")[0].replace("mariadb", "mysql").replace("postgresql", "postgres")
    return kind, f"{parts.get('hostname', '').lower()}:{parts.get('port') or PORTS.get(kind, '')}", parts["path"]


def with_suffix(url: str) -> str:
    """The URL of cell0's database beside that of ``url``; empty when that is."""
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
    """Where it is not plain what is a password, users and earlier hosts go with it."""
    masked = PASSWORD.sub(r"\1\2:****@", url)
    if masked.count("@") == masked.count(":****@"):
        return masked
    return f"{url.partition('://')[0]}://****@{url.rpartition('@')[2]}"
