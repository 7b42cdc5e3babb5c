"""What a part may cost in seconds of a processor, whatever the machine's speed and whoever else uses it."""

from __future__ import annotations

import json
import time

WORK_S = 0.165  # of a processor: what `work` takes where the budgets were written
ROUNDS = 5
TOLERANCE = 1.25  # what is above it is said
LIMIT = 2.0  # what is above it fails: a busy neighbour costs a part half as much again, but not that much


def work() -> int:
    """Somewhat like what tests do: objects, texts, dictionaries; more of them than a processor's cache holds, so that
    who shares it is felt here, too."""
    records = [{f"name{key}": [number, key, {"of": str(key)}] for key in range(6)} for number in range(20_000)]
    return sum(len(json.loads(json.dumps(record))) + len(sorted(record)) for record in reversed(records[::3]))


def slowness() -> float:
    """How much longer this machine takes than the one where the budgets were written; the best of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
    return min(taken) / WORK_S


def verdict(name: str, used_s: float, budget_s: float, slower: float) -> tuple[bool, str]:
    """(whether it is kept, a line to print)."""
    share = used_s / slower / budget_s
    line = (f"-- {name}: {used_s:.0f} s of processors, {share:.0%} of its budget "
            f"({budget_s:.0f} s; this machine takes {slower:.2f} times as long)")
    if share > TOLERANCE:
        line += ": too much. Make it cheaper, or raise BUDGETS_S in bin/testlib/parts.py and say why"
    return share <= LIMIT, line
