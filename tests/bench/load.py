"""Requests a second at concurrency 8, the CPU each costs in each process, and where the API's and conductor's go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.calls import CLIENTS, Call, for_a_while
from tests.bench.meters import children
from tests.bench.where import Sampling, in_words
from tests.functional.cloud import Cloud

SECONDS = 6
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
SAMPLED = ("api", "conductor")

def processes(cloud: Cloud) -> dict[str, list[int]]:
    """What may work for a request: our daemons, the broker, the database."""
    found = {name: children(daemon.process.pid) for name, daemon in cloud.daemons.items() if daemon.process}
    found["broker"] = children(cloud.backends.broker.node.pid)
    found["database"] = children(cloud.backends.database(cloud.plan.database).process.pid)
    return found


def cpu_ms(pids: list[int]) -> float:
    """CPU that processes have used since their start."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total * TICK_MS


def measure(cloud: Cloud, name: str, call: Call, say: Callable[[str], None], seconds: float = SECONDS) -> None:
    """Three lines: the rate and latency, CPU a request by process, where the sampled daemons' time goes."""
    for_a_while(call, 1, 0.3)
    lone, _ = for_a_while(call, 1, seconds / 3)
    pids = processes(cloud)
    before = {who: cpu_ms(mine) for who, mine in pids.items()}
    times, took = for_a_while(call, CLIENTS, seconds)
    done = len(times)
    used = {who: (cpu_ms(mine) - before[who]) / done for who, mine in pids.items()}
    say(f"\n{name}\n  {done / took:.0f} a second with {CLIENTS} clients, {sum(lone) / len(lone):.1f} ms with one")
    say("  CPU ms a request: " + ", ".join(f"{who} {ms:.2f}" for who, ms in used.items() if ms >= 0.05)
        + f"; together {sum(used.values()):.2f}")
    samplings = {who: Sampling(pids[who][0], int(seconds)) for who in SAMPLED}
    time.sleep(0.5)
    for_a_while(call, CLIENTS, seconds)
    for who, sampling in samplings.items():
        say(f"  {who}: {in_words(sampling.shares())}")
