"""``nova-manage host drain``: move all servers that can leave a host, several at a time.

The drain is stateless: each turn reads the present state from the conductor, so a drain that was killed can be run
again and joins moves in progress. It orders ordinary operations, which end with or without it. Only an unconfirmed
cold migration would wait, and the next drain of the host finds it by its record.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator

from nova import context, errors
from nova.manage.drain_plan import ACTION, COLD, LIVE, OFFLOAD, DrainRequest, Stay, Wait, plan
from nova.model.base import Page
from nova.model.server.actions import ActionQuery, InstanceAction
from nova.model.server.migrations import (
    CONFIRMING,
    FINISHED,
    LIVE_MIGRATION,
    MIGRATING,
    POST_MIGRATING,
    PRE_MIGRATING,
    RUNNING,
    MigrationQuery,
)
from nova.model.server.server_orders import LiveMigrateServer, MigrateServer
from nova.model.server.servers import Condition, ServerDetail, ServerListQuery, ServerOrder
from nova.model.server.states import VmState
from nova.rpc.contracts.conductor import ConductorRPC

POLL_S, PAGE, TRIES = 1.0, 500, 3
NEW, WAITS, MOVES, CONFIRMS, GONE, STAYS = "new", "waits", "moves", "confirms", "gone", "stays"
ENDED = (GONE, STAYS)

#: Statuses of unfinished moves, in their order of time, so that no move is missed while they are queried.
LEAVING = (PRE_MIGRATING, MIGRATING, RUNNING, POST_MIGRATING, FINISHED, CONFIRMING)


def pages(conductor: ConductorRPC, condition: Condition) -> Iterator[ServerDetail]:
    """Yield all servers that match, of all projects, the oldest first; reads one page at a time."""
    marker = None
    while True:
        page = conductor.list_servers(ServerListQuery(
            conditions=(condition,), soft_deleted=True, sort=(("created_at", "asc"), ("id", "asc")),
            page=Page(limit=PAGE, marker=marker))).servers
        if not page:  # a short page may not be the last: [api]max_limit may be below PAGE
            return
        yield from page
        marker = page[-1].uuid


class DrainClock:
    def monotonic(self) -> float:
        """Return monotonic seconds with an arbitrary start."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait this number of seconds."""
        time.sleep(seconds)

    def stamp(self) -> str:
        """Return the local time of day for a line of output, such as 14:03:59."""
        return time.strftime("%H:%M:%S")


@dataclasses.dataclass
class Case:
    """The progress of one server. ``ours``: this drain ordered the move (and may confirm it)."""

    uuid: str
    name: str
    vm_state: str = ""
    phase: str = NEW
    how: str = ""
    ours: bool = False
    since: float | None = None  # when the move began, by the drain's clock
    tries: int = 0  # attempts to start the move
    confirms: int = 0  # attempts to confirm the move
    reason: str = ""
    skipped: bool = False

    @property
    def under_way(self) -> bool:
        """True if its move runs, or waits to be confirmed."""
        return self.phase in (MOVES, CONFIRMS)


class Drain:
    """A drain of one host: :meth:`run` calls ``tick`` until it is ``over``. ``conductor``: a client of ConductorRPC."""

    def __init__(self, conductor: ConductorRPC, request: DrainRequest, say: Callable[[str], None],
                 clock: DrainClock | None = None) -> None:
        self._conductor, self.request, self._say = conductor, request, say
        self._clock = clock or DrainClock()
        self.cases: dict[str, Case] = {}
        self.up = True
        self.interrupts = 0
        self._first, self._silent, self._interrupt_said = True, False, False
        self._began = self._clock.monotonic()
        self._request = context.current().request_id

    # -- run

    def run(self) -> None:
        try:
            self._run()
        finally:
            for case in self.cases.values():
                if case.phase not in ENDED:
                    self._stay(case, self._why_not_ended(case))

    def _run(self) -> None:
        while not self.over:
            try:
                self.tick()
                self._silent = False
            except (errors.Unavailable, errors.Invalid) as error:  # Invalid: the last server of a page was deleted
                if not self._silent:
                    self._log(f"no answer ({error.message}): retrying")
                self._silent = True
            self._say_interrupt()
            if not self.over:
                self._clock.sleep(POLL_S)

    def interrupt(self) -> None:
        """Start no more moves, and wait only for running ones; after a second call do not wait either. A signal handler
        may call this: it prints nothing."""
        self.interrupts += 1

    def _say_interrupt(self) -> None:
        if not self.interrupts or self._interrupt_said:
            return
        self._interrupt_said = True
        moving = [case for case in self.cases.values() if case.under_way]
        self._log(f"starting no more moves; {len(moving)} still run (Ctrl-C again to stop waiting for them):"
                  if moving else "starting no more moves")
        for case in moving:
            self._log(f"{case.uuid} {case.name}  {case.how}, for {self._age_s(case):.0f} s")

    @property
    def elapsed_s(self) -> float:
        """Seconds since the drain began."""
        return self._clock.monotonic() - self._began

    @property
    def over(self) -> bool:
        """True when the drain is complete: all servers have ended; after an interrupt, when running moves have ended;
        after two, or after the timeout, immediately."""
        if self.interrupts > 1 or self._late:
            return True
        if self._first:
            return False
        open_ = [case for case in self.cases.values() if case.phase not in ENDED]
        return not any(case.under_way for case in open_) if self.interrupts else not open_

    @property
    def _late(self) -> bool:
        return self.request.timeout_s is not None and self.elapsed_s >= self.request.timeout_s

    def _why_not_ended(self, case: Case) -> str:
        if case.under_way:
            return f"its {case.how} is still in progress, and continues"
        why = "the drain was interrupted" if self.interrupts else "the timeout expired"
        return f"{why} before its turn came" if case.phase == NEW else f"{why} while another task ran ({case.reason})"

    # -- one turn

    def tick(self) -> None:
        """Do one turn: read all servers of the host, update their progress, and start as many moves as may run at a
        time. Errors of the queries are raised; the next turn continues from the state at that time."""
        here = {server.uuid: server for server in pages(
            self._conductor, Condition(column="host", value=self.request.host))}
        for server in here.values():
            self.cases.setdefault(server.uuid, Case(server.uuid, server.name))
        if self._first:
            self._find_leaving(here)
            self._first = False
        away = [case.uuid for case in self.cases.values() if case.phase not in ENDED and case.uuid not in here]
        there = {server.uuid: server for server in pages(
            self._conductor, Condition(column="uuid", op="in", values=tuple(away)))} if away else {}
        for case in list(self.cases.values()):
            if case.phase not in ENDED:
                self._look(case, here.get(case.uuid) or there.get(case.uuid))
        self._begin_more(here)

    def _find_leaving(self, here: dict[str, ServerDetail]) -> None:
        """Find unfinished moves of servers that are on another host already: they still have data on this host."""
        for status in LEAVING:
            for move in self._conductor.list_migrations(MigrationQuery(
                    source_compute=self.request.host, status=status, page=Page(limit=PAGE))):
                if move.server_uuid not in here and move.server_uuid not in self.request.skip:
                    how = LIVE if move.type == LIVE_MIGRATION else COLD
                    self.cases.setdefault(move.server_uuid, Case(move.server_uuid, "", phase=WAITS, how=how))

    def _look(self, case: Case, server: ServerDetail | None) -> None:
        if server is None:
            self._end(case, "is deleted")
            return
        case.name, case.vm_state = server.name, str(server.vm_state)
        if server.host == self.request.host:
            self._look_here(case, server)
        elif server.task_state is not None:
            self._wait(case, str(server.task_state), case.how != "")
        elif server.vm_state == VmState.RESIZED:
            self._confirm(case, server)
        else:
            self._end(case, f"{self.request.host} -> {server.host or 'its image'}")

    def _look_here(self, case: Case, server: ServerDetail) -> None:
        next_ = plan(server, self.request, self.up)
        if isinstance(next_, Wait):
            self._wait(case, next_.task, next_.moving)
        elif case.phase == MOVES and case.ours:
            self._has_not_moved(case)
        elif isinstance(next_, Stay):
            self._stay(case, next_.reason, next_.skipped)
        else:
            case.phase, case.how, case.ours = NEW, next_.how, False

    def _wait(self, case: Case, task: str, moving: bool) -> None:
        """Wait for the server's task. A move in progress counts as one of the drain's, regardless of its initiator."""
        case.reason = task
        if case.phase == CONFIRMS:
            return
        if moving and case.phase != MOVES:
            case.how, case.since = case.how or "move", self._clock.monotonic()
            self._log(f"{case.uuid} {case.name}  {case.how} is already in progress ({task})")
        case.phase = MOVES if moving or case.ours else WAITS

    def _has_not_moved(self, case: Case) -> None:
        """Handle a server that is still on the host after its move was ordered: the journal has the reason, or shows
        that the move never started."""
        done = self._journal(case, ACTION[case.how])
        if done is not None and done.finished_at is None:
            return
        if done is not None and (done.message or done.fault):
            self._stay(case, done.fault or "the move failed; its host's log may have the reason")
        elif case.tries >= TRIES:
            self._stay(case, f"the {case.how} did not move it, {case.tries} times")
        else:
            case.phase = NEW

    def _confirm(self, case: Case, server: ServerDetail) -> None:
        """Confirm a cold migration of a drain; a migration that a user started is left to the user."""
        if not (case.ours or case.confirms or self._by_an_operator(case)):
            self._stay(case, f"it is on {server.host}; its disks stay here until its owner confirms or reverts the "
                             "move")
            return
        done = self._journal(case, "confirmResize") if case.confirms else None
        if done is not None and done.finished_at is None:
            return
        if done is not None or case.confirms >= TRIES:
            why = (done.fault if done else None) or "its journal has no reason"
            self._stay(case, f"it is on {server.host}, but the move could not be confirmed: {why}")
            return
        case.phase, case.how = CONFIRMS, case.how or COLD
        case.since = self._clock.monotonic() if case.since is None else case.since
        case.confirms += 1
        self._ask(case, lambda: self._conductor.order_server(ServerOrder(uuid=case.uuid, action="confirmResize")))

    def _by_an_operator(self, case: Case) -> bool:
        """True if nova-manage started the newest cold migration: then the journal has no user."""
        names = (ACTION[COLD], "resize")
        found = next((one for one in self._actions(case.uuid) if one.action in names), None)
        return found is not None and found.action == ACTION[COLD] and found.user_id is None

    # -- orders

    def _begin_more(self, here: dict[str, ServerDetail]) -> None:
        if self.interrupts or self._late:
            return
        free = self.request.parallel - sum(case.under_way for case in self.cases.values())
        for case in [case for case in self.cases.values() if case.phase == NEW and case.uuid in here]:
            if free <= 0:
                return
            self._begin(case)
            free -= case.under_way

    def _begin(self, case: Case) -> None:
        case.phase, case.ours, case.since = MOVES, True, self._clock.monotonic()
        case.tries += 1
        orders: dict[str, Callable[[], object]] = {
            LIVE: lambda: self._conductor.live_migrate_server(LiveMigrateServer(uuid=case.uuid, host=self.request.to)),
            COLD: lambda: self._conductor.migrate_server(MigrateServer(
                uuid=case.uuid, host=self.request.to, cross_cell=self.request.to is not None)),
            OFFLOAD: lambda: self._conductor.order_server(ServerOrder(uuid=case.uuid, action=ACTION[OFFLOAD]))}
        self._log(f"{case.uuid} {case.name}  {case.how} started")
        self._ask(case, orders[case.how])

    def _ask(self, case: Case, order: Callable[[], object]) -> None:
        """Send an order. A refused server stays, with the reason. Without a reply the move may have started: the next
        turn checks."""
        try:
            order()
        except errors.Unavailable as error:
            self._log(f"{case.uuid} {case.name}  no answer: {error.message}")
        except (errors.WrongState, errors.NotFound) as error:
            if case.phase == MOVES and case.tries >= TRIES:
                self._stay(case, error.message)
            elif case.phase == MOVES:
                case.phase, case.ours = NEW, False  # its state changed meanwhile: plan it again
        except errors.NovaError as error:
            self._stay(case, error.message)

    def _journal(self, case: Case, action: str) -> InstanceAction | None:
        """Return the newest operation of this name that this drain started."""
        return next((one for one in self._actions(case.uuid)
                     if one.action == action and one.request_id == self._request), None)

    def _actions(self, uuid: str) -> Iterable[InstanceAction]:
        found: Iterable[InstanceAction] = self._conductor.list_actions(ActionQuery(server_uuid=uuid, limit=20))
        return found

    # -- ends

    def _age_s(self, case: Case) -> float:
        """Return the seconds since its move started."""
        return 0.0 if case.since is None else self._clock.monotonic() - case.since

    def _end(self, case: Case, what: str) -> None:
        how = f"{case.how}  " if case.how else ""
        took = "" if case.since is None else f"  in {self._age_s(case):.1f} s"
        self._log(f"{case.uuid} {case.name}  {how}{what}{took}")
        case.phase = GONE

    def _stay(self, case: Case, reason: str, skipped: bool = False) -> None:
        case.phase, case.reason, case.skipped = STAYS, reason, skipped
        if not skipped:
            self._log(f"{case.uuid} {case.name}  stays: {reason}")

    def _log(self, text: str) -> None:
        self._say(f"{self._clock.stamp()}  {text}")
