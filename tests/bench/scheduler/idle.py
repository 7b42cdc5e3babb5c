"""An idle fleet: what hosts that have nothing to do cost the broker and the database.

Each host is a real compute service over the fake driver, whose jobs are done when they are due by a clock that jumps;
its calls reach the real host service and its batched heartbeats on a real database. Only the broker is left out.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nova.compute.host import Host, HostClock
from nova.compute.reports.heartbeat import Heartbeats
from nova.compute.service import ComputeParts, ComputeService
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.host_service import HostService
from nova.conductor.hosts.api_side import DirectApiSide
from nova.conductor.hosts.enrolment import HOST_DAEMONS
from nova.conductor.hosts.feed import Feed
from nova.conductor.hosts.registration import ServiceRegistry
from nova.conf import compute as compute_options
from nova.conf import fake as fake_options
from nova.db.host import enrolments
from nova.devel.fake import FakeDriver
from nova.model.host.services import Heartbeat
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.rpc.host_secret import HostSecret
from nova.rpc.local import LocalBus
from nova.rpc.rpc_watchdog import RpcWatchdog
from nova.scheduler.service import SchedulerService
from tests.bench.scheduler import fleet
from tests.bench.scheduler.clouds import FromDatabase, Schedulers, Statements, options, scheduler_settings
from tests.bench.scheduler.report import Report
from tests.bench.scheduler.report import say as tell

MINUTES, BEAT_S, FLUSH_S = 10, 30.0, 1.0
MESSAGES, STATEMENTS = 3, 2


class JumpingClock(HostClock):
    """Seconds since its making are what the test says."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Fleet:
    """A conductor's part and many hosts, with what each does and when: (due, order, every so many seconds, what)."""

    def __init__(self, databases: fleet.Databases, folder: Path) -> None:
        self.clock, self.bus = JumpingClock(), LocalBus()
        self.deps = Deps(api=databases.api, cell=databases.cell, settings=ConductorSettings(), host="bench",
                                  scheduler=self.bus.client(SchedulerRPC), compute=None, network=None, images=None,
                         certs=None)
        self.deps.feed, self.deps.api_side = Feed(self.deps), DirectApiSide(self.deps)
        self.daemons = ServiceRegistry(self.deps, clock=self.clock.monotonic)
        self.bus.serve(ConductorHostRPC, HostService(self.deps, self.daemons))
        self.scheduler = SchedulerService(FromDatabase(self.deps.feed), scheduler_settings())
        self.bus.serve(SchedulerRPC, Schedulers([self.scheduler]))
        self.statements = Statements(databases.api, databases.cell)
        self._folder, self._rng = folder, random.Random(5)
        self._jobs: list[tuple[float, int, float, Callable[[], Any]]] = []
        self._order = itertools.count()

    def add(self, number: int) -> None:
        """A host that has registered and told what it has."""
        name = fleet.name_of(number)
        folder = self._folder / name
        folder.mkdir()
        self.deps.cell.transact(lambda tx: enrolments.enroll(tx, name, HOST_DAEMONS, ""))
        client = self.bus.client(ConductorHostRPC, name)
        driver = FakeDriver(options(fake_options), name, folder)
        service = ComputeService(ComputeParts(driver, client, None, options(compute_options),
                                              secret=HostSecret(folder)),
                                 Host(name, folder, clock=self.clock))
        service.start()
        service._periodic.stop()  # its own thread: here the jobs are done by our clock
        for job in service._periodic._jobs:
            self._later(self._rng.random() * job.pause_s, job.pause_s, job.do)
        self._later(self._rng.random() * BEAT_S, BEAT_S, Heartbeats(
            client, Heartbeat(host=name, binary="nova-compute"), service.on_heartbeat, RpcWatchdog()))

    def serve(self) -> None:
        """The conductor's and the scheduler's own rounds."""
        self._later(FLUSH_S, FLUSH_S, self.daemons.flush)
        self._later(BEAT_S, BEAT_S, self.daemons.refresh)
        self.scheduler.sweep()
        self._later(60.0, 60.0, self.scheduler.sweep)

    def _later(self, wait_s: float, every_s: float, what: Callable[[], Any]) -> None:
        heapq.heappush(self._jobs, (self.clock.seconds + wait_s, next(self._order), every_s, what))

    def run(self, seconds: float) -> None:
        end = self.clock.seconds + seconds
        while self._jobs and self._jobs[0][0] <= end:
            due, _, every_s, what = heapq.heappop(self._jobs)
            self.clock.seconds = due
            what()
            self._later(every_s, every_s, what)


def measure(server: Any, report: Report, hosts: int) -> None:
    databases = fleet.make(server, f"idle_{hosts}")
    fleet.check_ours(databases)
    logging.getLogger("nova").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="nova-bench-idle-") as folder:
        idle = Fleet(databases, Path(folder))
        for number in range(hosts):
            idle.add(number)
        idle.serve()
        idle.run(120)
        statements, messages = idle.statements.count, idle.bus.messages
        idle.run(60 * MINUTES)
        found = [(count - before) / hosts / MINUTES for count, before in (
            (idle.bus.messages, messages), (idle.statements.count, statements))]
    report.table(f"{hosts:,} idle hosts, a host and minute", "messages", "statements")
    report.row(*found)
    report.judge(f"messages an idle host and minute, {hosts:,} hosts", found[0], MESSAGES)
    report.judge(f"statements an idle host and minute, {hosts:,} hosts", found[1], STATEMENTS)
    tell("most frequent: " + "; ".join(f"{text} {count}" for text, count in idle.statements.kinds.most_common(5)))
    databases.close()
