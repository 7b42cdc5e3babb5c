"""Budgets of the parts in seconds of a processor, normalized to the speed and the load of the machine."""

from __future__ import annotations

import json
import time

WORK_S = 0.165  # processor time of `work` on the machine where the budgets were measured
ROUNDS = 5
TOLERANCE = 1.25  # a higher share of the budget prints a warning
LIMIT = 2.0  # a higher share fails: load by other processes costs a part half as much again, but not more


def work() -> int:
    """Do work similar to tests: objects, texts, dictionaries. They exceed a processor's cache, so that the effect of
    processes that share the cache is measured, too."""
    records = [{f"name{key}": [number, key, {"of": str(key)}] for key in range(6)} for number in range(20_000)]
    return sum(len(json.loads(json.dumps(record))) + len(sorted(record)) for record in reversed(records[::3]))


def slowness() -> float:
    """Return this machine's time for `work`, relative to the machine of the budgets; the best of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
    return min(taken) / WORK_S


def verdict(name: str, used_s: float, budget_s: float, slower: float) -> tuple[bool, str]:
    """Return whether a part keeps its budget, and a line to print."""
    share = used_s / slower / budget_s
    line = (f"-- {name}: {used_s:.0f} s of processors, {share:.0%} of its budget "
            f"({budget_s:.0f} s; this machine takes {slower:.2f} times as long)")
    if share > TOLERANCE:
        line += ": too much. Make it cheaper, or raise BUDGETS_S in bin/testlib/parts.py and give the reason"
    return share <= LIMIT, line
