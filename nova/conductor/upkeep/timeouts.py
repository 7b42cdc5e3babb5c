"""Timeouts of servers: actions that are ordered automatically, and states that no operation maintains any more.

Each turn reads one page by one statement, and orders the due actions. Several conductors may do so at the same time. An
order begins in a transaction that locks the server and requires the epoch that was read. So it begins once, and never
for a server that has changed since.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nova import context, errors
from nova.conductor.actions.by_name import begin_order
from nova.conductor.engine.begin import begin
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.engine.operation import ResetState
from nova.db.host.services import as_time
from nova.db.operation import timeouts
from nova.db.operation.timeouts import IdleServer, OwnerlessServer, TimedServer
from nova.db.server import states
from nova.db.sql.engine import Connection
from nova.model.base import Time
from nova.model.server.servers import Fault, ServerMemo, ServerOrder
from nova.model.server.states import VmState

LOG = logging.getLogger(__name__)

BATCH = 50  # servers read in one turn
TURN_S = 60.0  # longest pause between two turns; a shorter timeout is checked correspondingly more often
SELDOM_S = 300.0
LOGGED = 1000  # servers whose logged refusal is remembered
FORCED = {"delete": {"force": "true"}}  # permanently: it was soft-deleted before
AGAIN_S = 600.0  # seconds after a failed try: the host may be down for long

Job = tuple[float, Callable[[Deps], object], str]


class TimeoutRule(NamedTuple):
    """An action that is due after some time in a state. ``option``: its name in nova.conf; ``came``: the actions that
    lead into the state; ``since``: the time of entry from the memo, if the memo has it."""

    option: str
    vm_state: VmState
    came: tuple[str, ...]
    action: str
    since: Callable[[ServerMemo], Time | None] = lambda memo: None
    poll: str = ""  # the option with the polling interval, if there is one

    def wait_s(self, settings: ConductorSettings) -> int:
        """Return the timeout in seconds; 0 or less means never."""
        return int(getattr(settings, self.option))


RULES = (
    TimeoutRule("reclaim_instance_interval", VmState.SOFT_DELETED, ("soft_delete",), "delete",
                lambda memo: memo.soft_deleted_at),
    TimeoutRule("resize_confirm_window", VmState.RESIZED, ("resize", "migrate"), "confirmResize"),
    TimeoutRule("rescue_timeout", VmState.RESCUED, ("rescue",), "unrescue"),
    TimeoutRule("shelved_offload_time", VmState.SHELVED, ("shelve",), "shelveOffload", lambda memo: memo.shelved_at,
                "shelved_poll_interval"),
)


class TimeoutSweep:
    """The turns of one rule. Pages are read one after another, so that no due server waits behind others for ever."""

    def __init__(self, rule: TimeoutRule) -> None:
        self.rule = rule
        self._after: timeouts.Place | None = None
        self._logged: set[str] = set()

    def __call__(self, deps: Deps) -> int:
        """Run one turn and return the number of ordered actions."""
        wait_s = self.rule.wait_s(deps.settings)
        if wait_s <= 0 or self.rule.action not in deps.runner.workflows:
            return 0
        what = timeouts.IdleServersQuery(self.rule.vm_state, self.rule.came, self.rule.action, self._after)
        with deps.cell.reading() as tx:
            page = timeouts.idle_servers(tx, what, BATCH)
        self._after = (page[-1].updated_at, page[-1].id) if len(page) == BATCH else None
        return sum(self._order(deps, row, wait_s) for row in page if self._due(row, wait_s))

    def _due(self, row: IdleServer, wait_s: int) -> bool:
        """True if the server has been in the state long enough. After a failed try it is left alone for ``AGAIN_S``."""
        age_s = self._age_s(row)
        tried_s = _ago_s(row, row.tried) if row.tried else None
        return age_s >= wait_s and (tried_s is None or tried_s > age_s or tried_s >= AGAIN_S)

    def _age_s(self, row: IdleServer) -> float:
        """Return the seconds since the memo's or the journal's time. A state that neither has (a reset) counts from the
        last change."""
        return _ago_s(row, (self.rule.since(row.memo) if row.memo else None) or row.since or row.updated_at)

    def _refused(self, uuid: str, error: errors.NovaError) -> None:
        """Log a refusal once for each server: later turns meet it again, and continue with the other servers."""
        if uuid not in self._logged:
            LOG.warning("cannot order '%s': %s", self.rule.action, error.message, extra={"server": uuid})
        self._logged = {*list(self._logged)[-LOGGED:], uuid}

    def _order(self, deps: Deps, row: IdleServer, wait_s: int) -> bool:
        with context.entered(context.internal()):
            try:
                entry = deps.cell.transact(lambda tx: _begin(tx, deps, row, self.rule.action))
            except errors.Unavailable:
                raise  # the database is away, for the other servers too
            except errors.NovaError as error:
                self._refused(row.uuid, error)
                return False
            if entry is None:
                return False
            LOG.info("ordered '%s': the server was %s for %d s (%s is %d)", self.rule.action,
                     self.rule.vm_state.value, self._age_s(row), self.rule.option, wait_s, extra={"server": row.uuid})
            deps.runner.start([entry])
            return True


def _ago_s(row: IdleServer, moment: Time) -> float:
    """Return the seconds since ``moment``, by the database's clock as read with the row."""
    return (as_time(row.clock) - as_time(moment)).total_seconds()


def _begin(tx: Connection, deps: Deps, row: IdleServer, action: str) -> states.Entry | None:
    """Begin an action on a server in the state that was read; None if an action began or ended since. Raises
    WrongState."""
    if not timeouts.unchanged(tx, row.uuid, row.epoch):
        return None
    return begin_order(deps, tx, ServerOrder(uuid=row.uuid, action=action, arguments=FORCED.get(action, {})))


def fail_stuck_builds(deps: Deps) -> int:
    """Set servers that take too long to build to ERROR; their delete undoes the partial builds."""
    wait_s = deps.settings.instance_build_timeout
    if wait_s <= 0:
        return 0
    with deps.cell.reading() as tx:
        rows = timeouts.building(tx, wait_s, BATCH)
    message = f"The server was not built within {wait_s} s (instance_build_timeout)."
    return sum(_reset(deps, row, VmState.ERROR, message) for row in rows)


def clear_stale_tasks(deps: Deps) -> int:
    """Clear tasks that no operation runs: their host or database was lost and restored from an older copy.

    Each operation has a journal row, so this does not happen normally; this job is the safety net.
    """
    with deps.cell.reading() as tx:
        rows = timeouts.ownerless(tx, BATCH)
    return sum(_clear(deps, row) for row in rows)


def _clear(deps: Deps, row: OwnerlessServer) -> bool:
    half = row.vm_state == VmState.BUILDING.value
    message = f"Task '{row.task_state}' was lost: no operation is open for the server."
    after = VmState.ERROR if half else VmState(row.vm_state)
    return _reset(deps, row, after, message if half else None, lost_task=row.task_state)


def _reset(deps: Deps, row: TimedServer | OwnerlessServer, after: VmState, fault: str | None,
           lost_task: str | None = None) -> bool:
    """Reset the state like an administrator, unless the server has changed since it was read."""
    def write(tx: Connection) -> bool:
        if lost_task and timeouts.is_worked_on(tx, row.uuid):
            return False
        if not timeouts.unchanged(tx, row.uuid, row.epoch):
            return False
        entry = begin(deps, tx, "reset_state", row.uuid, ResetState(state=after.value))
        values = {"fault": Fault(code=500, message=fault, created_at=as_time(timeouts.clock(tx)))} if fault else {}
        states.finish(tx, [states.StateChange([entry], {"vm_state": after.value, **values})], "success")
        return True
    with context.entered(context.internal()):
        try:
            if not deps.cell.transact(write):
                return False
        except errors.server.HalfDestroyed:  # only ERROR is possible until a user deletes it
            return _reset(deps, row, VmState.ERROR, fault, lost_task)
        LOG.warning("%s; set its state to %s", f"cleared the task '{lost_task}', because no operation is open"
                    if lost_task else fault, after.value, extra={"server": row.uuid})
    return True


def close_abandoned_moves(deps: Deps) -> int:
    """Close moves that no operation works on, and unconfirmed moves of deleted servers."""
    with deps.cell.reading() as tx:
        found = timeouts.abandoned(tx, BATCH)
    return sum(_close(deps, move) for move in found)


def _close(deps: Deps, move: timeouts.Abandoned) -> bool:
    if not deps.cell.transact(lambda tx: timeouts.close(tx, move)):
        return False
    LOG.warning("migration %s was '%s', set it to '%s': no operation is open for it", move.uuid, move.status,
                move.becomes, extra={"server": move.server_uuid})
    return True


def jobs(settings: ConductorSettings) -> Sequence[Job]:
    """Return (seconds, job, name) of the enabled jobs, for the first worker of each conductor."""
    found: list[Job] = [(_turn_s(rule, settings), TimeoutSweep(rule), rule.option) for rule in RULES
                        if rule.wait_s(settings) > 0 and _turn_s(rule, settings) > 0]
    if settings.instance_build_timeout > 0:
        found.append((min(TURN_S, settings.instance_build_timeout), fail_stuck_builds, "instance_build_timeout"))
    return (*found, (TURN_S, clear_stale_tasks, "tasks without an operation"),
            (SELDOM_S, close_abandoned_moves, "moves without an operation"))


def _turn_s(rule: TimeoutRule, settings: ConductorSettings) -> float:
    """Return the seconds between two turns; negative means never."""
    if rule.poll:
        pause = float(getattr(settings, rule.poll))
        return pause or TURN_S
    return min(TURN_S, float(rule.wait_s(settings)))
