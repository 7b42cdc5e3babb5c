"""TLS of connections to MariaDB whose URL has no option for it: used if the server offers it, as by MySQL's own
clients, without a check of its certificate.

PyMySQL prepares each such connection with all of the system's certificates, which it does not use: 25 ms of CPU time
and 4 MB. Here only the first one of an engine is prepared so. It tells what the server offers, and the others use its
context.
"""

from __future__ import annotations

import contextlib

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
    """The TLS that the server offers. ``options``: PyMySQL's for it; None: not known yet."""

    def __init__(self, engine: Engine) -> None:
        self.options: dict[str, object] | None = None
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "connect", self._connected)

    def _connect(self, dialect: sa.Dialect, _record: ConnectionPoolEntry, arguments: tuple[object, ...],
                 options: dict[str, object]) -> DBAPIConnection | None:
        """Return a connection as the server is known to want it; None: PyMySQL finds out."""
        if self.options is None:
            return None
        with failures.parked(self._refused, on=dialect.loaded_dbapi.OperationalError):
            return dialect.connect(*arguments, **{**options, **self.options})
        return None

    def _refused(self, error: Exception) -> None:
        if error.args[0] not in CHANGED:
            raise error
        self.options = None

    def _connected(self, connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        """Keep the context of the first connection with TLS, for the others."""
        if self.options is None:
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
                row = cursor.fetchone()
            self.options = {"ssl": connection.ctx} if row and row[1] else {"ssl_disabled": True}
