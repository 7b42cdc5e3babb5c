"""TLS of connections to MariaDB whose URL has no option for it: used if the server offers it, as by MySQL's own
clients, without a check of its certificate.

PyMySQL prepares each such connection with all of the system's certificates, which it does not use: 25 ms of CPU time
and 4 MB. Here only the first one of an engine is prepared so; it tells what the server offers.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from nova import failures

#: Errors of a server whose TLS has changed: PyMySQL's own, a refused user (who may need TLS), and MariaDB's and MySQL's
#: require_secure_transport.
CHANGED = (2026, 1045, 4151, 3159)


def arrange(engine: Engine) -> None:
    """Let new connections of the engine use TLS as its first one did; no effect if its URL has options of TLS, or for
    other drivers."""
    if engine.driver == "pymysql" and not any(name.startswith(("ssl", "read_default_"))
                                              for name in engine.url.query):
        _OfferedTls(engine)


class _OfferedTls:
    """What the server offers. ``offered`` None: not known yet."""

    def __init__(self, engine: Engine) -> None:
        self.offered: bool | None = None
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "connect", self._connected)

    def _connect(self, dialect: sa.Dialect, _record: ConnectionPoolEntry, arguments: tuple[Any, ...],
                 options: dict[str, Any]) -> DBAPIConnection | None:
        """Return a connection as the server is known to want it; None: PyMySQL finds out."""
        if self.offered is None:
            return None
        how = {"ssl": _without_check()} if self.offered else {"ssl_disabled": True}
        with failures.parked(self._refused, on=dialect.loaded_dbapi.OperationalError):
            return dialect.connect(*arguments, **{**options, **how})
        return None

    def _refused(self, error: Exception) -> None:
        if error.args[0] not in CHANGED:
            raise error
        self.offered = None

    def _connected(self, connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        if self.offered is None:
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
                row = cursor.fetchone()
            self.offered = bool(row and row[1])


def _without_check() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made
