"""Generated keys, for clouds that configure none: copies of a key, each encrypted with another password, in a table of
settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url

from nova import errors
from nova.db.models.api import api_settings
from nova.db.models.cell import security_settings
from nova.db.sql.statements import insert_ignoring

LOCK = "host_secret_key"
COPY = f"{LOCK}/"  # prefix of the copies' names


class KeyCopies(NamedTuple):
    """Copies of one generated key in ``table``. ``lost``: the error if no password decrypts any of them."""

    table: sa.Table
    lost: type[errors.NovaError]

    def lock(self, tx: Connection) -> None:
        """Lock the key until the transaction ends."""
        row = self._named(LOCK).with_for_update()
        if tx.execute(row).first() is None:
            insert_ignoring(tx, self.table, [{"name": LOCK, "value": ""}])
            tx.execute(row).one()

    def kept(self, tx: Connection) -> dict[str, str]:
        """Return the copies, by the name of the password that encrypts each; empty if no key was generated."""
        name, value = self.table.c
        return {row.name.removeprefix(COPY): row.value
                for row in tx.execute(sa.select(name, value).where(name.like(f"{COPY}%")))}

    def keep(self, tx: Connection, copies: Mapping[str, str]) -> None:
        """Store copies, replacing copies of the same names."""
        rows = [{"name": f"{COPY}{name}", "value": value} for name, value in sorted(copies.items())]
        tx.execute(sa.delete(self.table).where(self.table.c.name.in_([row["name"] for row in rows])))
        insert_ignoring(tx, self.table, rows)

    def drop(self, tx: Connection) -> None:
        """Delete the key: it no longer encrypts anything, or no password decrypts it."""
        tx.execute(sa.delete(self.table).where(self.table.c.name.like(f"{COPY}%")))

    def _named(self, name: str) -> sa.Select[str]:
        return sa.select(self.table.c.value).where(self.table.c.name == name)


#: The key of hosts' secrets, in the cell database.
HOSTS = KeyCopies(security_settings, errors.config.GeneratedKey)
#: The key of cells' URLs, in the api database.
CELLS = KeyCopies(api_settings, errors.config.GeneratedCellKey)


def password_of(url: str) -> str:
    """Return the password in a database URL; the URL itself if it has none."""
    return str(make_url(url).password or url)
