"""Servers whose time is over: what is ordered for them by itself, and what is cleared where nobody works any more.

Each turn looks at one page by one statement, and orders what is due. Several conductors may do so at once: the order is
begun in a transaction that locks the server and finds the very epoch that was looked at, so that it is begun once, and
never for a server to which anything happened meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nova import context, errors
from nova.conductor.actions.by_name import begin_order
from nova.conductor.engine.begin import begin
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.engine.operation import ResetState
from nova.db.host.services import as_time
from nova.db.operation import timeouts
from nova.db.server import states
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn, AnyRow
from nova.model.base import Time
from nova.model.server.servers import Fault, ServerMemo, ServerOrder
from nova.model.server.states import VmState

LOG = logging.getLogger(__name__)

BATCH = 50  # servers that one turn looks at
TURN_S = 60.0  # the longest pause between two turns; a shorter wait is looked at that much more often
SELDOM_S = 300.0
LOGGED = 1000  # servers whose refusal is remembered as logged
FORCED = {"delete": {"force": "true"}}  # for good: it was deleted before
AGAIN_S = 600.0  # after one that failed: its host may be down for long

Job = tuple[float, Callable[[Deps], Any], str]


class TimeoutRule(NamedTuple):
    """After ``seconds`` in a state: an action. ``option`` names both in nova.conf; ``came``: the actions that lead into
    the state; ``since``: the memo's own word for when that was, where it has one."""

    option: str
    vm_state: VmState
    came: tuple[str, ...]
    action: str
    since: Callable[[ServerMemo], Time | None] = lambda memo: None
    poll: str = ""  # the option that says how often it is looked at, where there is one

    def wait_s(self, settings: ConductorSettings) -> int:
        """0 or less: never."""
        return int(getattr(settings, self.option))


RULES = (
    TimeoutRule("reclaim_instance_interval", VmState.SOFT_DELETED, ("soft_delete",), "delete",
                lambda memo: memo.soft_deleted_at),
    TimeoutRule("resize_confirm_window", VmState.RESIZED, ("resize", "migrate"), "confirmResize"),
    TimeoutRule("rescue_timeout", VmState.RESCUED, ("rescue",), "unrescue"),
    TimeoutRule("shelved_offload_time", VmState.SHELVED, ("shelve",), "shelveOffload", lambda memo: memo.shelved_at,
                "shelved_poll_interval"),
)


class Look:
    """One rule's turns. Pages are read one after another, so that none that is due waits behind others for ever."""

    def __init__(self, rule: TimeoutRule) -> None:
        self.rule = rule
        self._after: timeouts.Place | None = None
        self._logged: set[str] = set()

    def __call__(self, deps: Deps) -> int:
        """How many were ordered."""
        wait_s = self.rule.wait_s(deps.settings)
        if wait_s <= 0 or self.rule.action not in deps.runner.workflows:
            return 0
        what = timeouts.Resting(self.rule.vm_state, self.rule.came, self.rule.action, self._after)
        with deps.cell.reading() as tx:
            page = timeouts.resting(tx, what, BATCH)
        self._after = (page[-1].updated_at, page[-1].id) if len(page) == BATCH else None
        return sum(self._order(deps, row, wait_s) for row in page if self._due(row, wait_s))

    def _due(self, row: AnyRow, wait_s: int) -> bool:
        """Long enough in the state; and one for which it was tried and failed is left in peace for a while."""
        age_s = self._age_s(row)
        tried_s = _ago_s(row, row.tried) if row.tried else None
        return age_s >= wait_s and (tried_s is None or tried_s > age_s or tried_s >= AGAIN_S)

    def _age_s(self, row: AnyRow) -> float:
        """Since the memo's or the journal's time; a state that neither tells of (a reset) counts from the last change.
        """
        return _ago_s(row, (self.rule.since(row.memo) if row.memo else None) or row.since or row.updated_at)

    def _refused(self, uuid: str, error: errors.NovaError) -> None:
        """Logged once: the next turns find it so again, and the others' turn comes all the same."""
        if uuid not in self._logged:
            LOG.warning("'%s' cannot be ordered: %s", self.rule.action, error.message, extra={"server": uuid})
        self._logged = {*list(self._logged)[-LOGGED:], uuid}

    def _order(self, deps: Deps, row: AnyRow, wait_s: int) -> bool:
        with context.entered(context.internal()):
            try:
                entry = deps.cell.transact(lambda tx: _begin(tx, deps, row, self.rule.action))
            except errors.Unavailable:
                raise  # the database is away: for the others, too
            except errors.NovaError as error:
                self._refused(row.uuid, error)
                return False
            if entry is None:
                return False
            LOG.info("'%s' is ordered: the server was %s for %d s (%s is %d)", self.rule.action,
                     self.rule.vm_state.value, self._age_s(row), self.rule.option, wait_s, extra={"server": row.uuid})
            deps.runner.start([entry])
            return True


def _ago_s(row: AnyRow, moment: AnyColumn) -> float:
    """By the database's clock, as it was read with the row."""
    return (as_time(row.clock) - as_time(moment)).total_seconds()


def _begin(tx: Connection, deps: Deps, row: AnyRow, action: str) -> states.Entry | None:
    """Begin an action on a server as it was seen. None: something began or ended on it since. WrongState."""
    if not timeouts.unchanged(tx, row.uuid, row.epoch):
        return None
    return begin_order(deps, tx, ServerOrder(uuid=row.uuid, action=action, arguments=FORCED.get(action, {})))


def give_up_builds(deps: Deps) -> int:
    """Servers that are built for too long turn to ERROR; what their builds left is undone by their delete."""
    wait_s = deps.settings.instance_build_timeout
    if wait_s <= 0:
        return 0
    with deps.cell.reading() as tx:
        rows = timeouts.building(tx, wait_s, BATCH)
    message = f"The server was not built within {wait_s} s (instance_build_timeout)."
    return sum(_reset(deps, row, VmState.ERROR, message) for row in rows)


def clear_ownerless(deps: Deps) -> int:
    """Servers that say a task runs, and there is none: their host or database was lost and brought back older.

    With a journal row for each operation there are none; this is the net below that.
    """
    with deps.cell.reading() as tx:
        rows = timeouts.ownerless(tx, BATCH)
    return sum(_clear(deps, row) for row in rows)


def _clear(deps: Deps, row: AnyRow) -> bool:
    half = row.vm_state == VmState.BUILDING.value
    message = f"Its task '{row.task_state}' was lost: no operation is open for it."
    after = VmState.ERROR if half else VmState(row.vm_state)
    return _reset(deps, row, after, message if half else None, lost_task=row.task_state)


def _reset(deps: Deps, row: AnyRow, after: VmState, fault: str | None, lost_task: str | None = None) -> bool:
    """As an administrator's reset of the state, unless anything happened to the server since it was looked at."""
    def write(tx: Connection) -> bool:
        if lost_task and timeouts.is_worked_on(tx, row.uuid):
            return False
        if not timeouts.unchanged(tx, row.uuid, row.epoch):
            return False
        entry = begin(deps, tx, "reset_state", row.uuid, ResetState(state=after.value))
        values = {"fault": Fault(code=500, message=fault, created_at=as_time(timeouts.clock(tx)))} if fault else {}
        states.finish(tx, [entry], {"vm_state": after.value, **values}, "success")
        return True
    with context.entered(context.internal()):
        try:
            if not deps.cell.transact(write):
                return False
        except errors.server.HalfDestroyed:  # it can be nothing but an error, until somebody deletes it
            return _reset(deps, row, VmState.ERROR, fault, lost_task)
        LOG.warning("%s; its state is %s now", f"the task '{lost_task}' is cleared, for no operation is open"
                    if lost_task else fault, after.value, extra={"server": row.uuid})
    return True


def close_abandoned_moves(deps: Deps) -> int:
    """Moves that say they are under way, and nobody works on them; moves to confirm, of servers that are gone."""
    with deps.cell.reading() as tx:
        found = timeouts.abandoned(tx, BATCH)
    return sum(_close(deps, move) for move in found)


def _close(deps: Deps, move: timeouts.Abandoned) -> bool:
    if not deps.cell.transact(lambda tx: timeouts.close(tx, move)):
        return False
    LOG.warning("migration %s was left '%s' and is '%s' now: no operation is open for it", move.uuid, move.status,
                move.becomes, extra={"server": move.server_uuid})
    return True


def jobs(settings: ConductorSettings) -> Sequence[Job]:
    """(seconds, job, name) of what is switched on, for the first worker of each conductor."""
    found: list[Job] = [(_turn_s(rule, settings), Look(rule), rule.option) for rule in RULES
                        if rule.wait_s(settings) > 0 and _turn_s(rule, settings) > 0]
    if settings.instance_build_timeout > 0:
        found.append((min(TURN_S, settings.instance_build_timeout), give_up_builds, "instance_build_timeout"))
    return (*found, (TURN_S, clear_ownerless, "tasks without an operation"),
            (SELDOM_S, close_abandoned_moves, "moves without an operation"))


def _turn_s(rule: TimeoutRule, settings: ConductorSettings) -> float:
    """Seconds between two turns; negative: never."""
    if rule.poll:
        pause = float(getattr(settings, rule.poll))
        return pause or TURN_S
    return min(TURN_S, float(rule.wait_s(settings)))
