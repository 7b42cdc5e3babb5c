"""Memory of the daemons while operations come and go: a curve, whose lines are after so many operations.

Each round creates servers, half of them by one request and half by single ones, reads them with details, and deletes
them one by one. What is printed is the proportional set size of each daemon's processes: shared pages count once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import requests

from tests.bench import calls
from tests.bench.load import processes
from tests.bench.meters import pss_mb
from tests.functional.cloud import Cloud

OPERATIONS, LINES = 1_000_000, 40
ROUND = 200  # servers: twice as many operations
DAEMONS = ("api", "conductor", "scheduler", "compute1")
#: Two workers of each, deleted rows that go soon, and heartbeats as in a cloud.
OPTIONS = {"DEFAULT": {"osapi_compute_workers": 2, "deleted_retention": "60s", "report_interval": 30,
                       "service_down_time": 90}, "conductor": {"workers": 2}, "scheduler": {"workers": 2}}
SETTLED_S = 2.0


class Line(NamedTuple):
    """PSS in MB by daemon, after this number of operations and seconds."""

    operations: int
    seconds: float
    mb: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.mb.values())

    def __str__(self) -> str:
        return (f"{self.operations:>12}{self.seconds:>10.0f}" + "".join(f"{mb:>12.1f}" for mb in self.mb.values())
                + f"{self.total:>12.1f}")


HEADER = f"{'operations':>12}{'seconds':>10}" + "".join(f"{f'{name} MB':>12}" for name in (*DAEMONS, "all"))


def curve(cloud: Cloud, operations: int = OPERATIONS, lines: int = LINES) -> Iterator[Line]:
    """Yield a line when idle, and after each ``1/lines`` of the operations, some seconds after the last one."""
    started, done = time.monotonic(), 0
    yield _line(cloud, 0, started)
    while done < operations:
        until = done + operations / lines
        while done < until:
            done += _round(cloud)
        time.sleep(SETTLED_S)
        yield _line(cloud, done, started)


def _line(cloud: Cloud, done: int, started: float) -> Line:
    pids = processes(cloud)
    return Line(done, time.monotonic() - started, {name: pss_mb(pids[name]) for name in DAEMONS})


def _round(cloud: Cloud) -> int:
    """Create, read and delete some servers; return the number of operations."""
    body = {"server": {**calls.SERVER, "min_count": ROUND // 2, "max_count": ROUND // 2}}
    answer = requests.post(f"{cloud.url}/servers", json=body, headers=calls.HEADERS, timeout=60)
    assert answer.status_code == 202, answer.text
    calls.each(calls.posting(cloud), ROUND - ROUND // 2)
    uuids = calls.all_up(cloud, ROUND)
    calls.each(calls.deleting(cloud, uuids), len(uuids))
    calls.none_left(cloud)
    return 2 * ROUND


def say_curve(cloud: Cloud, say: Callable[[str], None], operations: int) -> None:
    """Print the curve."""
    say(f"\nMemory (PSS)\n{HEADER}")
    for line in curve(cloud, operations):
        say(str(line))
