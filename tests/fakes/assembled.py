"""Groups of a wanted size: callers of :class:`nova.gathering.Gathering` wait for each other, for a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest

from nova.gathering import Gathering, _Call, _Queue

HOLD_S = 0.15  # without the wanted number of callers: an execution of as many as there are


def assemble(monkeypatch: pytest.MonkeyPatch, size: int, hold_s: float = HOLD_S) -> Counter[int]:
    """Let callers wait until ``size`` of them share an execution. Returns how often executions of each size were
    made."""
    made: Counter[int] = Counter()

    def call(self: Gathering[Any, Any], item: Any, key: Hashable = None) -> Any:
        mine: _Call[Any, Any] = _Call(item)
        with self._lock:
            queue = self._queues.setdefault(key, _Queue())
            queue.waiting.append(mine)
            if len(queue.waiting) >= size:
                queue.executions += 1
                queue.waiting.remove(mine)
                mine.batch = [mine]
                queue.fill(mine.batch, size)
        if mine.batch is None and not mine.turn.wait(hold_s):
            self._lose_patience(queue, mine)
        if mine.batch is not None:
            made[len(mine.batch)] += 1
            self._execute(key, queue, mine.batch)
        return mine.outcome(self._act)

    monkeypatch.setattr(Gathering, "__call__", call)
    return made
