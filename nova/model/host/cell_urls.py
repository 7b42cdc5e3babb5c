"""URLs of cells: templates filled from the configuration, comparisons of databases and brokers, and display."""

from __future__ import annotations

import contextlib
import re
import string
from typing import NamedTuple
from urllib.parse import urlsplit

#: Suffix that deployment tools expect: the configured database's name plus this is cell0's database.
SUFFIX = "_cell0"
CELL0_NAME = "cell0"  # template name that rows of older releases have for cell0's URL
NO_BROKER, NO_TRANSPORT = "none:", "none:///"  # the scheme, and the transport URL that cell0 gets
#: The password of a user, for each of several hosts; up to the last @, which a password may contain unescaped.
PASSWORD = re.compile(r"(//|,)([^:@/,]*):[^,]*@")
PLACEHOLDER = re.compile(rf"(username|password|hostname|port)\d*|scheme|path|query|fragment|{CELL0_NAME}")
#: Default ports of database servers and brokers.
PORTS = {"mysql": "3306", "postgres": "5432", "rabbit": "5672"}
_USER = r"(?:(?P<username>[^:@]*)(?::(?P<password>.*))?@)?"
_HOST = re.compile(_USER + r"(?P<hostname>\[[^\]]*\]|[^:@]*)(?::(?P<port>\d+))?")


class CellUrls(NamedTuple):
    """The URLs of a cell; empty if not set."""

    transport_url: str
    database_connection: str


def filled(recorded: str | None, url: str) -> str:
    """Return the URL of ``recorded``, a URL or a template; None: ``url`` itself. In a template ``{scheme}``,
    ``{username}``, ``{password}``, ``{hostname}``, ``{port}``, ``{path}``, ``{query}`` and ``{fragment}`` stand for
    parts of the configured ``url``; for several hosts, user, password, host name and port have a number, from 0 on. A
    template that cannot be filled is returned unchanged."""
    if recorded is None:
        return url
    if is_template(recorded):
        with contextlib.suppress(KeyError, ValueError, AttributeError):
            return recorded.format_map({**_parts(url), CELL0_NAME: with_suffix(url)})
    return recorded


def is_template(text: str) -> bool:
    """Return whether the text has placeholders, all of which :func:`filled` knows: a URL's password may have braces."""
    with contextlib.suppress(ValueError):  # a brace without its other half
        names = [name for _before, name, _format, _how in string.Formatter().parse(text) if name is not None]
        return bool(names) and all(PLACEHOLDER.fullmatch(name) for name in names)
    return False


def of_one_database(one: str, other: str) -> bool:
    """True if both URLs name the same database, regardless of the driver, the user and the parameters."""
    with contextlib.suppress(ValueError):  # not a URL
        return bool(one) and _address(one) == _address(other)
    return False


def of_one_broker(one: str, other: str) -> bool:
    """True if both URLs name the same vhost of the same broker, regardless of users and parameters. One common node
    is enough: a cluster's nodes may be listed in part. False for URLs without a broker."""
    if one == other:
        return bool(one) and not one.startswith(NO_BROKER)
    with contextlib.suppress(ValueError):  # not a URL
        return _parts(one)["path"] == _parts(other)["path"] and not _nodes(one).isdisjoint(_nodes(other))
    return False


def _address(url: str) -> tuple[str, str, str]:
    parts = _parts(url)
    kind = _kind(parts["scheme"])
    return kind, f"{parts.get('hostname', '').lower()}:{parts.get('port') or PORTS.get(kind, '')}", parts["path"]


def _nodes(url: str) -> set[str]:
    """Return the nodes of a broker, as HOST:PORT."""
    parts = _parts(url)
    default = PORTS.get(_kind(parts["scheme"]), "")
    hosts = {name.removeprefix("hostname"): host.lower() for name, host in parts.items() if name.startswith("hostname")}
    return {f"{host}:{parts.get(f'port{number}') or default}" for number, host in hosts.items() if host}


def _kind(scheme: str) -> str:
    """Return the product of a URL's scheme, without the driver."""
    return scheme.partition("+")[0].replace("mariadb", "mysql").replace("postgresql", "postgres")


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
