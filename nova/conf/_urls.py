"""URLs as options. The libraries that use these URLs accept every value accepted here. No error repeats a part of the
value: a URL may contain a password."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from oslo_config import types

from nova import failures

WEB = ("http", "https")
BROKERS = ("rabbit", "kombu", "kafka", "fake")
#: Dialect -> the driver names allowed, and the Python module of each. Empty name: the driver that nova ships.
_MYSQL = {"": "pymysql", "pymysql": "pymysql", "mysqldb": "MySQLdb", "mysqlconnector": "mysql"}
_POSTGRESQL = {"": "psycopg", "psycopg": "psycopg", "psycopg2": "psycopg2", "pg8000": "pg8000"}
DATABASES = {"mysql": _MYSQL, "mariadb": {**_MYSQL, "mariadbconnector": "mariadb"}, "postgresql": _POSTGRESQL,
             "postgres": {"": "psycopg"}, "sqlite": {"": "sqlite3", "pysqlite": "sqlite3"}}

NO_SCHEME = "it is not a URL: it must begin with a scheme and ://"
ESCAPES = "in a user name or password, write @ as %40, / as %2F, : as %3A, # as %23, ? as %3F and [ as %5B"


class Url(types.ConfigType):
    """A URL with one of the schemes; empty is accepted. Its value is the text. ``example`` shows operators the form."""

    def __init__(self, schemes: Collection[str], example: str) -> None:
        super().__init__(type_name="URL")
        self.schemes, self.example = tuple(schemes), example

    def __call__(self, value: object) -> str:
        """Check a value. Raises ValueError with a complete sentence."""
        text = str(value).strip()
        if text:
            self._check(text)
        return text

    def _check(self, text: str) -> None:
        parts = _split(text, self.schemes)
        if not _host(parts.netloc):
            raise ValueError("it has no host")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = types.ConfigType.__hash__

    def _formatter(self, value: str) -> str:
        """Return the value as written in a file."""
        return value


class WebUrl(Url):
    """The URL of a service over HTTP."""

    def __init__(self) -> None:
        super().__init__(WEB, "https://HOST:PORT/PATH")


class BrokerUrl(Url):
    """The URL of a message broker, as oslo.messaging reads it: several hosts with commas, or none for its defaults.
    ``more``: additional schemes of nova."""

    def __init__(self, more: Collection[str] = ()) -> None:
        super().__init__((*BROKERS, *more), "rabbit://USER:PASSWORD@BROKER:5672/VHOST")

    def _check(self, text: str) -> None:
        _split(text, self.schemes)


class DatabaseUrl(Url):
    """The URL of a database, as SQLAlchemy reads it; the driver's name may follow the scheme with a plus sign."""

    def __init__(self) -> None:
        super().__init__(DATABASES, "mysql+pymysql://USER:PASSWORD@HOST/DATABASE")

    def _check(self, text: str) -> None:
        scheme, separator, rest = text.partition("://")
        dialect, _, driver = scheme.partition("+")
        _check_scheme(bool(separator), dialect, self.schemes)
        modules = DATABASES[dialect]
        if driver not in modules:
            raise ValueError(f"its driver must be one of {', '.join(filter(None, modules))}")
        if importlib.util.find_spec(modules[driver]) is None:
            raise ValueError(f"its driver is not installed: install the Python module {modules[driver]}")
        if dialect == "sqlite":
            if rest and not rest.startswith("/"):
                raise ValueError("a path must follow sqlite:///")
            return
        before, at, behind = rest.partition("@")
        authority = (behind if at else rest).partition("/")[0]
        host = authority.partition("?")[0]
        if "@" in host or "@" in authority and ":" not in before:  # without a password the last @ ends the name
            raise ValueError(f"it has a second @: {ESCAPES}")
        _check_host(host)


def _split(text: str, schemes: Collection[str]) -> SplitResult:
    """Split the URL and check hosts and ports. Raises ValueError that names the wrong part."""
    with failures.replaced(ValueError, lambda _: ValueError(
            f"it is not a URL, because its brackets do not match: {ESCAPES}")):
        parts = urlsplit(text)
    _check_scheme("://" in text, parts.scheme, schemes)
    for one in parts.netloc.split(","):
        _check_host(one.rpartition("@")[2])
    return parts


def _check_scheme(separated: bool, scheme: str, schemes: Collection[str]) -> None:
    if not separated or not scheme:
        raise ValueError(NO_SCHEME)
    if scheme not in schemes:
        raise ValueError(f"its scheme must be one of {', '.join(schemes)}")


def _check_host(text: str) -> None:
    """Check HOST, HOST:PORT or [ADDRESS]:PORT."""
    colon, port = text.rpartition("]")[2].partition(":")[1:]
    if colon and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"its port must be a number below 65536; {ESCAPES}")
    if text.startswith("[") != ("]" in text):
        raise ValueError(f"it is not a URL, because its brackets do not match: {ESCAPES}")


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2].partition(":")[0]


__all__ = ["WEB", "BrokerUrl", "DatabaseUrl", "Url", "WebUrl"]
