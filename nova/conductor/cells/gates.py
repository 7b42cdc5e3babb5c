"""Turns of this process's calls on a cell, in a bounded number. No call waits for a cell that is away: a thread of its
own tries the cell again every few seconds."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from nova import concurrency, errors, failures
from nova.conductor.engine.deps import Deps
from nova.db.sql.engine import DatabaseUnavailable

LOG = logging.getLogger(__name__)

AT_ONCE = 16  # calls of this process that may work on one cell; as many others wait for their turn
TURN_S = 2.0  # longest wait for a turn
SLOW_S = 15.0  # a cell with a longer call may be away; patterns may take 10 s
RETRY_S = 2.0  # time between attempts to reach a cell that may be away
LATE_S = 60.0  # time for which an unanswered question keeps a cell away, although its database answers


class Gate:
    """The turns of calls on one cell. ``live``: whether the cell is still served; then it is tried again."""

    def __init__(self, cell: Deps, live: Callable[[], bool]) -> None:
        self._cell, self._live = cell, live
        self.pool = concurrency.WorkerPool(AT_ONCE, f"cell-{cell.cell_uuid[:8]}")
        self.away = False
        self._changed = threading.Condition()
        self._begun: dict[object, float] = {}  # of the calls that have a turn
        self._waiting = 0
        self._late: dict[concurrent.futures.Future[object], float] = {}
        self._watched = False

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Count a call on the cell. Raises cell.Busy if the cell is away, or too many calls wait for it."""
        call = object()
        if not self._enter(call):
            raise errors.cell.Busy(cell=self._cell.cell_uuid)
        try:
            with failures.reported_to(lambda error: self.suspect(), on=DatabaseUnavailable):
                yield
        finally:
            with self._changed:
                del self._begun[call]
                self._changed.notify()

    def _enter(self, call: object) -> bool:
        with self._changed:
            if len(self._begun) >= AT_ONCE and not self.away and self._waiting < AT_ONCE:
                self._waiting += 1
                self._changed.wait_for(lambda: self.away or len(self._begun) < AT_ONCE, TURN_S)
                self._waiting -= 1
            free = len(self._begun) < AT_ONCE
            if free and not self.away:
                self._begun[call] = time.monotonic()
                return True
            hangs = not free and self._slow()
        if hangs:
            self.suspect()
        return False

    def _slow(self) -> bool:
        """Return whether the cell has not ended a call for long."""
        return time.monotonic() - min(self._begun.values(), default=float("inf")) > SLOW_S

    def suspect(self, late: concurrent.futures.Future[object] | None = None) -> None:
        """Find out whether the cell answers, in a thread. With a question that is ``late``, the cell is away until the
        question is answered, or long ago."""
        with self._changed:
            if late is not None:
                self._late[late] = time.monotonic()
                self._set_away(True)
            if self._watched:
                return
            self._watched = True
        concurrency.spawn(self._watch, name=f"cell-{self._cell.cell_uuid[:8]}-watch")

    def _watch(self) -> None:
        while self._live():
            answers = self._cell.cell.answers()
            now = time.monotonic()
            with self._changed:
                self._late = {one: since for one, since in self._late.items()
                              if not one.done() and now - since < LATE_S}
                self._set_away(not answers or bool(self._late))
                if not self.away:
                    self._watched = False
                    return
            time.sleep(RETRY_S)

    def _set_away(self, away: bool) -> None:
        if away and not self.away:
            LOG.warning("cell %s does not answer; its servers are not available", self._cell.cell_uuid)
        elif self.away and not away:
            LOG.info("cell %s answers again", self._cell.cell_uuid)
        self.away = away
        self._changed.notify_all()
