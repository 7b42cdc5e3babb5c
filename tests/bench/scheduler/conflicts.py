"""Two and four schedulers at once: how many claims find their host taken, and that none is given twice."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.bench.scheduler import flavors, fleet
from tests.bench.scheduler.clouds import Cloud, Placed
from tests.bench.scheduler.report import Report

CONDUCTORS = 4
ONE = fleet.Kind(1.0, 8, 16_384, 400, 7_002_000)  # takes eight of the servers that are asked for


def measure(server: Any, report: Report, hosts: int) -> None:
    """Servers one by one from four conductors at once: into half of the room there is, and into all of it."""
    report.table(f"conflicts: {CONDUCTORS} conductors, single servers, {hosts} hosts with room for {8 * hosts}",
                 "schedulers", "servers", "refused", "in 100", "no host", "pl/s", "too full")
    for schedulers in (1, 2, 4):
        for servers in (4 * hosts, 8 * hosts):
            databases = fleet.make(server, f"conflicts_{schedulers}_{servers}")
            fleet.fill(databases, hosts, used=0.0, kinds=[ONE] * hosts)
            cloud = Cloud(databases, schedulers)
            cloud.start()
            started = time.perf_counter()
            done = _side_by_side(cloud, servers)
            took = time.perf_counter() - started
            too_full = cloud.overcommitted()
            report.row(schedulers, servers, done.refused, 100 * done.refused / servers, done.failed,
                       done.placed / took, too_full)
            report.judge(f"providers with more given than there is, {schedulers} schedulers, {servers} servers",
                         too_full, 0)
            databases.close()


def _side_by_side(cloud: Cloud, servers: int) -> Placed:
    shares = [[cloud.asked_for(flavors.SMALL, 1) for _ in range(servers // CONDUCTORS)] for _ in range(CONDUCTORS)]
    found: list[Placed] = []

    def one(share: list[Any]) -> None:
        for ops in share:
            found.append(cloud.place(ops))
    threads = [threading.Thread(target=one, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Placed(*(sum(column) for column in zip(*found, strict=True)))
