"""Single requests beside one request for many servers: figures with their targets, as ratios of one run, and CPU time.

CPU time is the processes' own: a busy machine makes it longer only by what its caches lose. It is divided by the
machine's slowness (``bin/testlib/budgets.py``), so that figures of different machines can be compared.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import requests

from tests.bench import calls
from tests.bench.load import cpu_ms, processes
from tests.bench.meters import percentile
from tests.functional.cloud import Cloud

LAST_RELEASE = Path(__file__).with_name("last_release.csv")
WORSE = 1.2  # times the last release's figure: a fifth
MANY, LONE, LISTED = 200, 60, 1000
APART_S = 0.05  # between lone requests: each has ended when the next one comes
SETTLED_S = 2.0  # after the last request, until its operation has ended
IDLE_S = 5.0
SECONDS = 6.0
RATES = {"show": "/servers/{first}", "list of 100": "/servers?limit=100"}


class Figure(NamedTuple):
    """One measured figure. ``most``: the target, None without one."""

    name: str
    value: float
    most: float | None = None

    @property
    def missed(self) -> bool:
        return self.most is not None and self.value > self.most


def figures(cloud: Cloud, slowness: float, quick: bool = False) -> Iterator[Figure]:
    """Measure one figure after another, in a cloud without servers."""
    many, lone, listed = (40, 10, 100) if quick else (MANY, LONE, LISTED)
    seconds = SECONDS / 6 if quick else SECONDS
    yield from _together(cloud, slowness, many)
    yield from _lone(cloud, slowness, lone)
    yield from _reads(cloud, slowness, listed, seconds)
    yield from _posts(cloud, seconds)


def _together(cloud: Cloud, slowness: float, many: int) -> Iterator[Figure]:
    """One request for many servers, and as many requests for one by eight clients: seconds, and CPU time."""
    spent, took = Spent(cloud), []

    def timed(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            started = time.monotonic()
            work()
            took.append(time.monotonic() - started)
        return run
    batch = spent.of(timed(lambda: _batch(cloud, many)), many)
    _delete_all(cloud)
    creates = spent.of(timed(lambda: _singles(cloud, many)), many)
    deletes = spent.of(timed(lambda: _delete_all(cloud)), many)
    batch_ms = sum(batch.values())
    yield Figure(f"a server of a request for {many}: ms", 1000 * took[0] / many, 5.0)
    yield Figure(f"a server of a request for {many}: CPU ms", batch_ms / slowness)
    for name, used, seconds in (("creates", creates, took[1]), ("deletes", deletes, took[2])):
        yield Figure(f"{many} {name} by 8 clients: times that request", seconds / took[0], 2.5)
        yield Figure(f"{many} {name} by 8 clients: times its CPU", sum(used.values()) / batch_ms, 2.5)
        yield Figure(f"{many} {name} by 8 clients: CPU ms each", sum(used.values()) / slowness)


def _batch(cloud: Cloud, count: int) -> None:
    """Create servers with one request, and wait until all are ACTIVE."""
    body = {"server": {**calls.SERVER, "min_count": count, "max_count": count}}
    answer = requests.post(f"{cloud.url}/servers", json=body, headers=calls.HEADERS, timeout=60)
    assert answer.status_code == 202, answer.text
    calls.all_up(cloud, count)


def _singles(cloud: Cloud, count: int) -> None:
    """Create servers, one a request, by eight clients, and wait until all are ACTIVE."""
    calls.each(calls.posting(cloud), count)
    calls.all_up(cloud, count)


def _delete_all(cloud: Cloud) -> None:
    uuids = [one["id"] for one in calls.all_servers(cloud)]
    calls.each(calls.deleting(cloud, uuids), len(uuids))
    calls.none_left(cloud)


class Spent:
    """CPU time of all processes but the hosts', less what they use when idle: milliseconds by daemon."""

    def __init__(self, cloud: Cloud) -> None:
        self.pids = {who: pids for who, pids in processes(cloud).items() if not who.startswith("compute")}
        time.sleep(SETTLED_S)
        self.idle = self._of(lambda: time.sleep(IDLE_S))

    def of(self, work: Callable[[], object], count: int) -> dict[str, float]:
        """Return the milliseconds that one of ``count`` pieces of work took in each daemon."""
        started = time.monotonic()
        used = self._of(work)
        idle = (time.monotonic() - started) / IDLE_S
        return {who: (used[who] - idle * self.idle[who]) / count for who in self.pids}

    def _of(self, work: Callable[[], object]) -> dict[str, float]:
        before = {who: cpu_ms(pids) for who, pids in self.pids.items()}
        work()
        return {who: cpu_ms(pids) - before[who] for who, pids in self.pids.items()}


def _lone(cloud: Cloud, slowness: float, count: int) -> Iterator[Figure]:
    spent = Spent(cloud)
    made: list[object] = []

    def boot() -> None:
        made.extend(calls.each(calls.posting(cloud), count, 1, APART_S)[0])
        time.sleep(SETTLED_S)

    def delete() -> None:
        calls.each(calls.deleting(cloud, [str(one) for one in made]), count, 1, APART_S)
        time.sleep(SETTLED_S)
    parts = spent.of(boot, count), spent.of(delete, count)
    total = {who: sum(part[who] for part in parts) / slowness for who in spent.pids}
    yield Figure("a boot and its delete: CPU ms", sum(total.values()), 40.0)
    for who, used in total.items():
        if used >= 0.05:
            yield Figure(f"  of these, {who}", used)


def _reads(cloud: Cloud, slowness: float, listed: int, seconds: float) -> Iterator[Figure]:
    _batch(cloud, listed)
    first = calls.all_servers(cloud)[0]["id"]
    spent = Spent(cloud)
    for name, path in RATES.items():
        call = calls.getting(cloud, path.format(first=first))
        used = spent.of(lambda call=call: calls.each(call, 200, 1), 200)
        yield Figure(f"{name}: CPU ms", sum(used.values()) / slowness, 3.0 if name == "show" else None)
        yield from _pace(name, call, seconds)
    _, times = calls.each(calls.getting(cloud, f"/servers/detail?limit={listed}"), 10, 1)
    yield Figure(f"details of {listed}: ms", percentile(times, 0.5), 60.0)
    _delete_all(cloud)


def _posts(cloud: Cloud, seconds: float) -> Iterator[Figure]:
    call = calls.posting(cloud)
    _, alone = calls.each(call, 20, 1, APART_S)
    yield Figure("create: ms alone", percentile(alone, 0.5), 25.0)
    yield from _pace("create", call, seconds)
    time.sleep(SETTLED_S)
    _delete_all(cloud)


def _pace(name: str, call: calls.Call, seconds: float) -> Iterator[Figure]:
    times, took = calls.for_a_while(call, calls.CLIENTS, seconds)
    yield Figure(f"{name}: ms of a request's share, 8 clients", 1000 * took / len(times))
    yield Figure(f"{name}: p99 / p50, 8 clients", percentile(times, 0.99) / percentile(times, 0.5), 4.0)


def last_release() -> dict[str, float]:
    with LAST_RELEASE.open(newline="") as file:
        return {row["figure"]: float(row["value"]) for row in csv.DictReader(file)}


def record(found: list[Figure]) -> None:
    with LAST_RELEASE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("figure", "value"))
        rows.writerows((one.name.strip(), f"{one.value:.2f}") for one in found)
