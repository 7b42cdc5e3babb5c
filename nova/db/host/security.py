"""The cloud's security mode, and the generated key that encrypts host secrets."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url

from nova.db.models.cell import enrolments, security_settings
from nova.db.sql.statements import insert_ignoring
from nova.model.security.security_modes import SecurityMode

MODE = "mode"
#: The name prefix of the generated key's copies, each encrypted with a different password.
KEY = "host_secret_key/"


def mode(tx: Connection) -> SecurityMode | None:
    """Return the recorded mode. A cloud of an earlier release has enrolled hosts but no record: its mode is BOUNDED.
    None if no conductor has run yet."""
    found = tx.execute(_value(MODE)).scalar_one_or_none()
    if found is not None:
        return SecurityMode(found)
    enrolled = tx.execute(sa.select(enrolments.c.id).limit(1)).first()
    return SecurityMode.BOUNDED if enrolled is not None else None


def record_first(tx: Connection, wanted: SecurityMode) -> SecurityMode:
    """Record a mode unless there is one; return the recorded mode."""
    found = mode(tx) or wanted
    insert_ignoring(tx, security_settings, [{"name": MODE, "value": found.value}])
    return SecurityMode(tx.execute(_value(MODE)).scalar_one())


def change_mode(tx: Connection, wanted: SecurityMode) -> None:
    """Record another mode."""
    record_first(tx, wanted)
    tx.execute(sa.update(security_settings).where(security_settings.c.name == MODE).values(value=wanted.value))


def key_copies(tx: Connection) -> dict[str, str]:
    """Return the generated key's copies, by the name of the key that wraps each; empty if none was generated."""
    name, value = security_settings.c
    return {row.name.removeprefix(KEY): row.value
            for row in tx.execute(sa.select(name, value).where(name.like(f"{KEY}%")))}


def keep_key_copies(tx: Connection, copies: Mapping[str, str]) -> None:
    """Store copies of a generated key, replacing copies of the same names."""
    names = [f"{KEY}{name}" for name in copies]
    tx.execute(sa.delete(security_settings).where(security_settings.c.name.in_(names)))
    insert_ignoring(tx, security_settings, [{"name": f"{KEY}{name}", "value": value}
                                            for name, value in sorted(copies.items())])


def drop_key(tx: Connection) -> None:
    """Delete the generated key: it no longer wraps any secret."""
    tx.execute(sa.delete(security_settings).where(security_settings.c.name.like(f"{KEY}%")))


def lock(tx: Connection) -> None:
    """Lock the key generation to one conductor. The mode must be recorded."""
    tx.execute(_value(MODE).with_for_update()).one()


def password_of(url: str) -> str:
    """Return the password in a database URL; the URL itself if it has none."""
    return str(make_url(url).password or url)


def _value(name: str) -> sa.Select[str]:
    return sa.select(security_settings.c.value).where(security_settings.c.name == name)
