"""Purge of old rows: in small batches, each in its own transaction, for a part of each minute.

One conductor at a time does it, by a lease. The lease does not fence: two concurrent purges delete each row once.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.db import certificates, flavors
from nova.db.host import host_cleanups, services
from nova.db.operation import action_retention
from nova.db.operation.action_retention import Retention
from nova.db.quota import ledger, usage_audits
from nova.db.server import servers
from nova.db.sql.engine import Connection
from nova.db.upkeep import orphans
from nova.model.base import utcnow
from nova.model.quota import periods

LOG = logging.getLogger(__name__)

WALK, BATCH = "old rows", 200
WORK_S = 20.0  # longest work of a turn: a third of the time between two turns
UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
LEASE_S = 50  # longer than WORK_S, and shorter than the time between two turns of a process


class OldRows(NamedTuple):
    """A kind of rows that is deleted ``deleted_retention`` after its end. ``remove`` deletes one batch and returns the
    number of deleted rows."""

    what: str
    schema: str
    remove: Callable[[Connection, ConductorSettings], int]


def _audits(tx: Connection, settings: ConductorSettings) -> int:
    """Delete old usage audits, but keep those of the last complete period at any age: without them its notifications
    would be sent again."""
    ended = periods.last_complete(settings.instance_usage_audit_period, utcnow())[0]
    return usage_audits.purge(tx, ended, settings.deleted_retention_s, BATCH)


KINDS = (
    OldRows("deleted servers", "cell", lambda tx, settings: servers.purge(tx, settings.deleted_retention_s, BATCH)),
    OldRows("ledger rows of deleted servers", "api",
            lambda tx, settings: ledger.purge(tx, settings.deleted_retention_s, BATCH)),
    OldRows("deleted flavors", "api", lambda tx, settings: flavors.purge(tx, settings.deleted_retention_s, BATCH)),
    OldRows("ended certificates", "api",
            lambda tx, settings: certificates.purge(tx, settings.deleted_retention_s, BATCH)),
    OldRows("ended orphans", "cell",
            lambda tx, settings: orphans.purge(tx, settings.deleted_retention_s, BATCH)),
    OldRows("usage audits", "cell", _audits),
    OldRows("replaced services", "cell", lambda tx, _settings: services.purge(tx, BATCH)),
    OldRows("cleanups of removed hosts", "cell", lambda tx, _settings: host_cleanups.purge(tx, BATCH)))


def run(deps: Deps, work_s: float = WORK_S) -> int:
    """Run one turn and return the number of deleted rows (of servers: the number of servers). 0 if another conductor
    has the turn."""
    mark = deps.cell.transact(lambda tx: orphans.take_turn(tx, WALK, LEASE_S))
    if mark is None:
        return 0
    until = time.monotonic() + work_s
    total = 0
    if deps.settings.deleted_retention_s:
        total += sum(_remove(deps, kind, until) for kind in KINDS)
        for database in (deps.api, deps.cell):
            database.give_back()
    if deps.settings.instance_actions_retention_s:
        total += _trim(deps, mark, until)
    return total


def _remove(deps: Deps, kind: OldRows, until: float) -> int:
    """Delete batches while they are full and time is left; at least one, so that no kind waits for another."""
    database = deps.api if kind.schema == "api" else deps.cell
    count = last = database.transact(lambda tx: kind.remove(tx, deps.settings))
    while last >= BATCH and time.monotonic() < until:
        last = database.transact(lambda tx: kind.remove(tx, deps.settings))
        count += last
    if count:
        LOG.info("removed %d %s that were older than %s", count, kind.what, _span(deps.settings.deleted_retention_s))
    return count


def _trim(deps: Deps, mark: str, until: float) -> int:
    """Delete batches of servers' old actions and moves. Each batch's mark is written in its transaction, so that a
    crash leaves neither or both."""
    rule = Retention(deps.settings.instance_actions_retention_s, deps.settings.instance_actions_kept)
    count = 0
    while True:
        done = deps.cell.transact(functools.partial(_trim_some, mark=mark, rule=rule))
        mark, count = done.mark, count + done.removed
        if not done.more or time.monotonic() >= until:
            break
    if count:
        LOG.info("removed %d instance actions and migrations that were older than %s", count, _span(rule.seconds))
    return count


def _span(seconds: int) -> str:
    """Return a duration as text, in the largest unit of which it is a whole number."""
    size, unit = next((size, unit) for size, unit in UNITS if seconds % size == 0)
    return f"{seconds // size} {unit}"


def _trim_some(tx: Connection, mark: str, rule: Retention) -> action_retention.Trimmed:
    done = action_retention.trim(tx, mark, rule, BATCH)
    if done.mark != mark:
        orphans.go_on(tx, WALK, done.mark)
    return done
