"""States of servers as their hosts report them: power states, guests that changed without an operation, progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import servers
from nova.db.sql.statements import by_key
from nova.db.sql.types import later, utc_now
from nova.model.server.servers import TERMINATE
from nova.model.server.states import TaskState

QUIET_S = 60  # no report is in transit for longer: after this time a report with an older epoch is not a late one


class Power(NamedTuple):
    """A host's report on one guest. ``epoch``: the newest epoch that the host had seen at that time."""

    state: int
    epoch: int
    now: str  # the vm_state that fits the guest; empty if the report implies none


#: vm_state of a server whose guest should be off but runs -> the action that stops it.
STRAYS = {"stopped": "stop", "soft-delete": "stop_deleted"}
#: The state that a guest enters without an operation -> the vm_states of servers that follow it. A running guest of a
#: stopped or deleted server is different: it is stopped again.
_TURNS = {"stopped": ("active", "paused"), "paused": ("active",), "suspended": ("active",),
          "active": ("paused", "suspended")}


def note_power(tx: Connection, host: str, reported: Mapping[str, Power]) -> tuple[str, ...]:
    """Record the power states reported by a host; idle servers follow guests that changed state without an operation.
    Returns the servers whose guests run but should be off: pass them to :func:`set_running`.

    A report that was in transit while an operation ended is older than the server's epoch, and is ignored. Known values
    change no row, so that ``updated_at`` reflects changes only.
    """
    mine = _reported(host, reported)
    power = by_key(servers.c.uuid, {uuid: one.state for uuid, one in reported.items()}, servers.c.power_state)
    for after, before in _TURNS.items():
        turned = [uuid for uuid, one in reported.items() if one.now == after]
        if turned:
            tx.execute(sa.update(servers).where(mine, servers.c.uuid.in_(turned), servers.c.vm_state.in_(before))
                       .values(vm_state=after, power_state=power, updated_at=utc_now()))
    on = [uuid for uuid, one in reported.items() if one.now == "active"]
    strays = sa.select(servers.c.uuid).where(mine, servers.c.uuid.in_(on), servers.c.vm_state.in_(STRAYS))
    found = tuple(tx.execute(strays).scalars()) if on else ()
    rest = [uuid for uuid in reported if uuid not in found]
    if rest:
        tx.execute(sa.update(servers).where(mine, servers.c.uuid.in_(rest), servers.c.power_state != power)
                   .values(power_state=power, updated_at=utc_now()))
    return found


def ending(tx: Connection, host: str, reported: Mapping[str, Power]) -> tuple[str, ...]:
    """Return the active servers to delete because their guests shut themselves down. Locked servers are excluded."""
    if not reported:
        return ()
    found = tx.execute(sa.select(servers.c.uuid, servers.c.memo).where(
        _reported(host, reported), servers.c.uuid.in_(reported), servers.c.vm_state == "active",
        servers.c.locked_by.is_(None), servers.c.memo.is_not(None)))
    return tuple(row.uuid for row in found if row.memo.shutdown_behavior == TERMINATE)


def set_running(tx: Connection, host: str, uuid: str, power: Power) -> str | None:
    """Record that a guest runs although its server should be off; return the action that stops it. None if that is no
    longer the case.

    A stopped server becomes active, so that it can be stopped; a deleted one stays deleted.
    """
    for was, action in STRAYS.items():
        shown = {"vm_state": "active"} if was == "stopped" else {}
        mine = sa.and_(_reported(host, {uuid: power}), servers.c.uuid == uuid, servers.c.vm_state == was)
        if tx.execute(sa.update(servers).where(mine).values(**shown, power_state=power.state, updated_at=utc_now())
                      ).rowcount:
            return action
    return None


def _reported(host: str, reported: Mapping[str, Power]) -> sa.ColumnElement[bool]:
    """Return the condition for idle servers of this host for which the report is recent enough to count."""
    epochs = {uuid: one.epoch for uuid, one in reported.items()}
    current = sa.or_(servers.c.epoch <= by_key(servers.c.uuid, epochs, servers.c.epoch),
                     servers.c.updated_at < later(-QUIET_S))
    return sa.and_(servers.c.host == host, servers.c.deleted == 0, servers.c.task_state.is_(None), current)


def note_progress(tx: Connection, host: str, uuid: str, epoch: int, percent: int) -> bool:
    """Record the progress of a migration to or from this host, in percent. False if the server is not migrating, or has
    another epoch."""
    mine = sa.and_(servers.c.uuid == uuid, servers.c.host == host, servers.c.epoch == epoch, servers.c.deleted == 0,
                   servers.c.task_state == TaskState.MIGRATING.value)
    return tx.execute(sa.update(servers).where(mine).values(
        progress=max(0, min(100, percent)), updated_at=utc_now())).rowcount > 0
