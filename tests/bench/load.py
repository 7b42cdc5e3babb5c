"""Requests a second at concurrency 8, the CPU each costs in each process, and where the API's and conductor's go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import requests

from tests.bench.meters import children
from tests.bench.where import Sampling, in_words
from tests.functional.client import IMAGE
from tests.functional.cloud import Cloud

CLIENTS, SECONDS = 8, 6
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
SAMPLED = ("api", "conductor")

Call = Callable[[requests.Session], None]


def posting(cloud: Cloud) -> Call:
    """A server without a network, as ``speed.md`` counts them."""
    headers = {"X-Auth-Token": "admin:bench", "X-OpenStack-Nova-API-Version": "2.96"}
    body = {"server": {"name": "load", "flavorRef": "1", "imageRef": IMAGE, "networks": "none"}}

    def call(session: requests.Session) -> None:
        answer = session.post(f"{cloud.url}/servers", json=body, headers=headers, timeout=60)
        assert answer.status_code == 202, answer.text
    return call


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


def for_a_while(call: Call, clients: int, seconds: float) -> tuple[int, float]:
    """(requests done, seconds it took) by clients side by side."""
    import concurrent.futures

    until = time.monotonic() + seconds

    def one(_number: int) -> int:
        done = 0
        with requests.Session() as session:
            while time.monotonic() < until:
                call(session)
                done += 1
        return done
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        done = sum(pool.map(one, range(clients)))
    return done, time.monotonic() - started


def measure(cloud: Cloud, name: str, call: Call, say: Callable[[str], None], seconds: float = SECONDS) -> None:
    """Three lines: the rate and latency, CPU a request by process, where the sampled daemons' time goes."""
    for_a_while(call, 1, 0.3)
    lone, lone_s = for_a_while(call, 1, seconds / 3)
    pids = processes(cloud)
    before = {who: cpu_ms(mine) for who, mine in pids.items()}
    done, took = for_a_while(call, CLIENTS, seconds)
    used = {who: (cpu_ms(mine) - before[who]) / done for who, mine in pids.items()}
    say(f"\n{name}\n  {done / took:.0f} a second with {CLIENTS} clients, {1000 * lone_s / lone:.1f} ms with one")
    say("  CPU ms a request: " + ", ".join(f"{who} {ms:.2f}" for who, ms in used.items() if ms >= 0.05)
        + f"; together {sum(used.values()):.2f}")
    samplings = {who: Sampling(pids[who][0], int(seconds)) for who in SAMPLED}
    time.sleep(0.5)
    for_a_while(call, CLIENTS, seconds)
    for who, sampling in samplings.items():
        say(f"  {who}: {in_words(sampling.shares())}")
