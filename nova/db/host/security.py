"""The cloud's security mode."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import enrolments, security_settings
from nova.db.sql.statements import insert_ignoring
from nova.model.security.security_modes import SecurityMode

MODE = "mode"


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


def _value(name: str) -> sa.Select[str]:
    return sa.select(security_settings.c.value).where(security_settings.c.name == name)
