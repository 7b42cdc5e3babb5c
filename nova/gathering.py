"""Sharing of short work by concurrent callers (group commit): callers that arrive while the work of another one is in
progress are served together by the next execution.

A caller that finds no work in progress executes its own. A green thread lets other ready threads run first, for a
moment, and takes their items along. Under load, several callers share the cost of an execution: a transaction, a
statement or a message.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, ParamSpec, TypeVar

from nova import concurrency, errors, failures, metrics

I = TypeVar("I")  # noqa: E741 - an item, as R is a result
R = TypeVar("R")
P = ParamSpec("P")
T = TypeVar("T")

MOST = 100  # weight of the items of one execution
#: Seconds that a caller waits for an execution in progress, such as one that waits for a lock, before it no longer
#: waits and executes what has arrived so far.
PATIENCE_S = 0.05
#: Times that a green thread which finds no work in progress lets all others that are ready run, which takes 0.03 ms if
#: there are none; and seconds after which it stops. Native threads need no turns, and would lose up to 10 ms by them.
TURNS, TURNS_S = 10, 0.02


class _Call(Generic[I, R]):
    """A caller's item, and its outcome. ``turn``: it has an outcome, or is to execute ``batch``."""

    def __init__(self, item: I, weight: int = 1) -> None:
        self.item, self.weight = item, weight
        self.turn = threading.Event()
        self.batch: list[_Call[I, R]] | None = None
        self.result: R | errors.NovaError | None = None
        self.error: Exception | None = None
        self.alone = True  # until there is an outcome: the caller repeats its part

    def outcome(self, act: Callable[[Sequence[I]], Sequence[R | errors.NovaError]]) -> R:
        """Return the result, or raise the error. Without a result, the shared execution has failed, or an interrupt has
        ended it."""
        if self.error is not None:
            raise self.error
        result = act([self.item])[0] if self.alone else self.result
        if isinstance(result, errors.NovaError):
            raise result
        return result  # type: ignore[return-value]  # set by every execution without an error


class _Queue(Generic[I, R]):
    """The callers of one key that wait, and the number of executions in progress."""

    def __init__(self) -> None:
        self.waiting: collections.deque[_Call[I, R]] = collections.deque()
        self.executions = 0

    def fill(self, batch: list[_Call[I, R]], most: int) -> None:
        """Move the first waiting calls to the batch, up to this weight of all; at least one call to an empty batch."""
        weight = sum(call.weight for call in batch)
        while self.waiting:
            weight += self.waiting[0].weight
            if batch and weight > most:
                break
            batch.append(self.waiting.popleft())


class Gathering(Generic[I, R]):
    """Work of one kind that concurrent callers share.

    ``act`` does the work of some items and returns a result or an error for each, in their order. It must change
    nothing if it raises, or be repeatable: each caller then repeats its own part alone, so that one failure fails no
    other caller. ``final``: whether an error is that of all callers, and no part is repeated: it may have been done.
    ``weigh``: the weight of an item, of which an execution gets at most MOST. ``name``: label of metrics.
    """

    def __init__(self, name: str, act: Callable[[Sequence[I]], Sequence[R | errors.NovaError]],
                 final: Callable[[Exception], bool], weigh: Callable[[I], int] = lambda item: 1, *,
                 patience_s: float = PATIENCE_S, most: int = MOST) -> None:
        self._act, self._final, self._weigh, self._patience_s, self._most = act, final, weigh, patience_s, most
        self._size = metrics.SHARED_WORK.labels(name)
        self._lock = threading.Lock()
        self._queues: dict[Hashable, _Queue[I, R]] = {}  # with executions in progress

    def __call__(self, item: I, key: Hashable = None) -> R:
        """Return the item's result, once its execution has ended. Only items of one ``key`` are executed together.
        Raises the item's error."""
        mine: _Call[I, R] = _Call(item, self._weigh(item))
        with self._lock:
            queue = self._queues.get(key)
            if queue is not None:
                queue.waiting.append(mine)
            else:
                queue = self._queues[key] = _Queue()
                queue.executions, mine.batch = 1, [mine]
        with failures.on_failure(lambda: self._abandon(key, queue, mine), on=BaseException):
            if mine.batch is not None:
                self._let_others_come(queue, mine.batch)
            elif not mine.turn.wait(self._patience_s):
                self._lose_patience(queue, mine)
        if mine.batch is not None:
            self._execute(key, queue, mine.batch)
        return mine.outcome(self._act)

    def _let_others_come(self, queue: _Queue[I, R], batch: list[_Call[I, R]]) -> None:
        """Let the green threads that are ready run, and add the calls that they made to the batch of one call."""
        if concurrency.mode() != "eventlet":
            return
        until = time.monotonic() + TURNS_S
        for _ in range(TURNS):
            time.sleep(0)
            if time.monotonic() > until:
                break
        with self._lock:
            queue.fill(batch, self._most)

    def _lose_patience(self, queue: _Queue[I, R], mine: _Call[I, R]) -> None:
        """Execute the waiting calls without the execution in progress, unless it has taken this one."""
        with self._lock:
            if mine in queue.waiting:
                queue.executions += 1
                queue.waiting.remove(mine)
                mine.batch = [mine]
                queue.fill(mine.batch, self._most)
        if mine.batch is None:
            mine.turn.wait()

    def _abandon(self, key: Hashable, queue: _Queue[I, R], mine: _Call[I, R]) -> None:
        """Leave: the caller was interrupted. If it was to execute others, each of them repeats its part alone."""
        with self._lock:
            if mine in queue.waiting:
                queue.waiting.remove(mine)
        if mine.batch is not None:
            self._end(key, queue, mine.batch)

    def _execute(self, key: Hashable, queue: _Queue[I, R], batch: Sequence[_Call[I, R]]) -> None:
        try:
            self._size.observe(len(batch))
            error = failures.failure_of(self._serve, batch)
            if error is not None and (len(batch) == 1 or self._final(error)):
                for call in batch:
                    call.error = error
        finally:
            self._end(key, queue, batch)

    def _end(self, key: Hashable, queue: _Queue[I, R], batch: Sequence[_Call[I, R]]) -> None:
        try:
            self._hand_over(key, queue)
        finally:
            for call in batch:
                call.turn.set()

    def _serve(self, batch: Sequence[_Call[I, R]]) -> None:
        for call, result in zip(batch, self._act([call.item for call in batch]), strict=True):
            call.result, call.alone = result, False

    def _hand_over(self, key: Hashable, queue: _Queue[I, R]) -> None:
        """Let the first waiting caller execute the calls that have arrived meanwhile."""
        with self._lock:
            batch: list[_Call[I, R]] = []
            queue.fill(batch, self._most)
            if not batch:
                queue.executions -= 1
                if not queue.executions:
                    del self._queues[key]
                return
            batch[0].batch = batch
        batch[0].turn.set()


def in_own_context(work: Callable[P, T]) -> Callable[P, T]:
    """Return the work with the context of its caller, whose request its log lines name, for execution by another
    caller's thread."""
    run: Callable[P, T] = functools.partial(contextvars.copy_context().run, work)
    return run


__all__ = ["Gathering", "in_own_context"]
