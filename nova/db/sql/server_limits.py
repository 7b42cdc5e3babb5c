"""Connection limits of database servers."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from nova.db.sql.engine import Database


class ServerLimit(NamedTuple):
    """A server's connection limit. ``server`` is equal for two databases of one server; ``connections`` excludes those
    reserved for superusers."""

    server: str
    connections: int


_MARIADB = "SELECT CONCAT('MariaDB on ', @@hostname, ' (', @@datadir, ')'), @@max_connections"
_ASKED = {
    "mysql": _MARIADB, "mariadb": _MARIADB,
    "postgresql": "SELECT CONCAT('PostgreSQL ', system_identifier), current_setting('max_connections')::int - "
                  "current_setting('superuser_reserved_connections')::int FROM pg_control_system()"}


def limit_of(database: Database) -> ServerLimit | None:
    """Return the server's connection limit, in one statement; None if it has none, as with SQLite. Raises
    Unavailable."""
    if database.dialect not in _ASKED:
        return None
    with database.reading() as tx:
        row = tx.execute(sa.text(_ASKED[database.dialect])).one()
    return ServerLimit(str(row[0]), int(row[1]))
