"""The whole cloud in one process: real conductors, scheduler and compute hosts, over SQLite, the in-process bus and the
fake driver. Its processes can be killed at any point, and started again.

A killed process is stopped before it could do harm: a conductor's thread dies at its next step or write of its journal,
a host's at its next call of the driver, and their answers are dropped.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa

from nova import errors, faults
from nova.compute.host import Host
from nova.compute.orders import permission
from nova.compute.service import ComputeParts, ComputeService
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from nova.conductor.registry import ALL
from nova.conf import compute as compute_options
from nova.conf import fake as fake_options
from nova.console.service import ConsoleAuthService
from nova.db.models import cell as cell_tables
from nova.devel.fake import FakeDriver
from nova.devel.fake.knobs import KnobRule, Knobs
from nova.model.guest.consoles import ConsoleType
from nova.model.host.services import Heartbeat
from nova.model.network.security_groups import HostFirewall
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.rpc.host_secret import HostSecret
from nova.scheduler.service import SchedulerService
from nova.scheduler.service import SchedulerSettings as SchedulerSettings
from nova.virt import interface
from tests.fakes import claims
from tests.fakes.compute import options
from tests.fakes.scheduling import filter_options
from tests.fakes.small_cloud import NOVA_NETWORK, Networks, SmallCloud, until

SETTLED_S = 20.0
WORKING_POLLS = 8
#: Consoles that every host offers.
PROXIES = {ConsoleType.NOVNC: "http://proxy:6080/vnc_auto.html", ConsoleType.SERIAL: "ws://proxy:6083/"}
OFFERS = {ConsoleType.NOVNC: "127.0.0.1", ConsoleType.SERIAL: "127.0.0.1"}
#: Methods of a dead driver that still work: they do not call a hypervisor.
HARMLESS = frozenset({"dead", "knobs", "calls", "hypervisor", "close", "needs_images"})


class Killed(BaseException):
    """Simulated SIGKILL, which no code handles."""


class MortalJournal(Journal):
    """Journal that does not write after the death of its process. ``partner``: another journal of the process."""

    dead = False
    partner: MortalJournal | None = None

    def advance(self, *args: Any) -> None:
        self._alive()
        super().advance(*args)

    def finish(self, *args: Any) -> None:
        self._alive()
        super().finish(*args)

    def fail(self, *args: Any) -> None:
        self._alive()
        super().fail(*args)

    def _changes(self, *args: Any) -> Any:
        """Also for callers whose part another one executes."""
        self._alive()
        return super()._changes(*args)

    def fence_unreachable_host(self, *args: Any) -> Any:
        self._alive()
        return super().fence_unreachable_host(*args)

    def _alive(self) -> None:
        if self.dead or self.partner is not None and self.partner.dead:
            raise Killed


class MortalKnobs(Knobs):
    """Knobs whose rule ``die`` ends the process by ``kill``."""

    def __init__(self, state_path: Path | None, kill: Callable[[], None]) -> None:
        super().__init__(state_path)
        self._kill = kill
        self._left, self._then = 0, ""

    def countdown(self, number: int, what: str) -> None:
        """Set the event at the ``number``-th call from now on: ``die``, ``crash``, or a kind of error."""
        self._left, self._then = number, what

    def clear(self) -> None:
        self._left, self._then = 0, ""
        super().clear()

    def apply(self, call: str, when: str, names: tuple[str, ...]) -> None:
        self._left -= when == "before"
        if self._left == 0 and self._then:
            what, self._then = self._then, ""
            self._act(KnobRule(call=call, do="die" if what == "die" else "fail", kind=what), call, names, None)
        super().apply(call, when, names)

    def _act(self, rule: KnobRule, call: str, names: tuple[str, ...], block: Any) -> None:
        if rule.do == "die":
            self._kill()
            raise Killed
        super()._act(rule, call, names, block)


class MortalPart:
    """Part of a mortal driver."""

    def __init__(self, driver: MortalDriver, part: Any) -> None:
        self._driver, self._part = driver, part

    def __getattr__(self, name: str) -> Any:
        if self._driver.dead:
            raise Killed
        return getattr(self._part, name)


class MortalDriver(FakeDriver):
    """Fake driver whose process may be dead: each call then ends the thread."""

    dead = False

    def __init__(self, options_: Any, host: str, state_path: Path, kill: Callable[[], None]) -> None:
        super().__init__(options_, host, state_path)
        self.hypervisor.knobs = self.knobs = MortalKnobs(state_path, kill)
        for name in interface.Driver.__annotations__.keys() - HARMLESS:
            if (part := getattr(self, name)) is not None:
                setattr(self, name, MortalPart(self, part))

    def __getattribute__(self, name: str) -> Any:
        asks = not name.startswith("_") and name not in HARMLESS
        if asks and object.__getattribute__(self, "dead"):
            raise Killed
        return object.__getattribute__(self, name)


class Kernel:
    """A host's packet filters, which survive the end of its nova-compute."""

    def __init__(self) -> None:
        self.state = HostFirewall(host="")

    def apply(self, state: HostFirewall) -> bool:
        changed, self.state = state != self.state, state
        return changed

    def lacks(self) -> str:
        return ""


class ComputeProcess:
    """One nova-compute: its service and driver, and the RPC server that receives its calls."""

    def __init__(self, cloud: LivingCloud, name: str, path: Path) -> None:
        self.cloud, self.name, self.path = cloud, name, path
        self.dead, self.silent = True, False
        self.ratio = 4.0  # its cpu_allocation_ratio
        self.driver: MortalDriver = self._driver()
        self.service: ComputeService | None = None
        self.on_call: Callable[[str, str], None] = lambda method, when: None

    def _driver(self) -> MortalDriver:
        return MortalDriver(options(fake_options, **self.cloud.fake), self.name, self.path, self.kill)

    def start(self) -> ComputeProcess:
        """Start the process (again): it reads state in files; state in memory is lost."""
        self.driver, self.dead = self._driver(), False
        client = self.cloud.bus.client(ConductorHostRPC, self.name)
        settings = options(compute_options, resume_guests_state_on_host_boot=True, cpu_allocation_ratio=self.ratio)
        if self.cloud.networks.neutron:
            settings.set_override("vif_plugging_timeout", 0)  # no service sends events here
        self.service = ComputeService(ComputeParts(self.driver, client, None, settings, store=self.cloud.image_service,
                                                   consoles=OFFERS, filters=self.cloud.filters(self.name),
                                                   secret=HostSecret(self.path)),
                                      Host(self.name, self.path))
        try:
            self.service.start()
        except Killed:
            if self.service._lock is not None:
                self.service._lock.release()
            raise
        # ready for orders only now
        self.cloud.bus.serve(ComputeRPC, self._door(self.service, self.driver), self.name)
        return self

    def beat(self) -> None:
        """Send a heartbeat, like the process' timer."""
        client = self.cloud.bus.client(ConductorHostRPC, self.name)
        client.heartbeat(self.name, Heartbeat(host=self.name, binary="nova-compute"))

    def kill(self) -> None:
        """Kill the process: its threads end at their next call of the driver, and its answers are lost."""
        service, self.driver.dead = self.service, True
        if service is not None and service._lock is not None:
            service._lock.release()
        self.dead = True  # it may be started again now
        if service is not None:
            service._periodic.stop()

    def end(self) -> None:
        if self.service is not None and not self.dead:
            self.driver.knobs.clear()
            self.service.stop(5.0)
            self.dead = True

    def _door(self, service: ComputeService, driver: MortalDriver) -> SimpleNamespace:
        door = SimpleNamespace()
        for name in ComputeRPC.methods:
            setattr(door, name, self._guarded(name, getattr(service, name), driver))
        return door

    def _guarded(self, name: str, method: Callable[..., Any], driver: MortalDriver) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if driver.dead or self.silent:
                raise errors.Unavailable(f"nova-compute on {self.name} did not answer")
            self.on_call(name, "before")
            answer = method(*args, **kwargs) if not driver.dead else None
            self.on_call(name, "after")
            if driver.dead or self.silent:
                raise errors.Unavailable(f"nova-compute on {self.name} did not answer")
            return answer
        return call


class LivingCloud(SmallCloud):
    """A cloud. ``fake``: options of the fake driver, with the size of hosts. ``kernels``: of hosts that filter."""

    computes: dict[str, ComputeProcess]  # type: ignore[assignment]

    def __init__(self, folder: Path, templates: Path, computes: tuple[str, ...] = ("host1", "host2", "host3"),
                 seed: int = 1, networks: Networks = NOVA_NETWORK, **fake: Any) -> None:
        self.folder = folder
        self.kernels: dict[str, Kernel] = {}
        self.on_point: Callable[[str, str, str], None] = lambda action, step, when: None
        self.fake = {"vcpus": 64, "memory_mb": 65536, "local_gb": 1000, **fake}
        super().__init__(folder, templates, (), networks)
        self.conductor_process()
        self.living = SchedulerService(self.control, SchedulerSettings(
            SimpleNamespace(host_state_sweep_interval=3600), filter_options(), 90), rng=random.Random(seed))
        self.bus.serve(SchedulerRPC, self.living)
        self.tokens = SimpleNamespace(token_ttl=600, single_use_tokens=False)
        self.bus.serve(ConsoleAuthRPC, ConsoleAuthService(self.control, self.tokens, PROXIES))
        self.consoles = self.bus.client(ConsoleAuthRPC)
        for host in computes:
            self.add_compute(host)
        assert self.living.sweep()

    def add_compute(self, host: str, nodes: Any = ()) -> Any:
        (path := self.folder / host).mkdir()
        self.enroll(host)
        made = self.computes[host] = ComputeProcess(self, host, path)
        return made.start()

    @property
    def parts(self) -> tuple[LivingCloud, ...]:
        """Return the cells, each as a cloud of its own."""
        return (self,)

    def deps_of(self, uuid: str) -> Deps:
        """Return the dependencies of the server's cell."""
        return self.deps

    def host_changed(self, host: str) -> None:
        """Send the state of a host to the scheduler."""
        self.deps.feed.host_changed(host)

    def flush(self) -> None:
        """Write the heartbeats that the conductor has received."""
        self.daemons.flush()

    def filters(self, host: str) -> Kernel | None:
        """Return the host's packet filters; None if they are not tested."""
        return self.kernels.setdefault(host, Kernel()) if self.networks.filtered else None

    def set(self, **settings: Any) -> None:
        """Set options of the conductor."""
        self.deps.settings = dataclasses.replace(self.deps.settings, **settings)

    # -- deaths of processes

    def conductor_process(self) -> Runner:
        """Replace the conductor by a new one, which takes over the work of older ones, except their state in memory."""
        self.deps.networking = self.make_back_end(self.deps)
        self.deps.journal = self.new_journal()
        self.deps.journal.open()
        self.deps.runner = Runner(self.deps, ALL, again_s=0.001)
        return self.deps.runner

    def new_journal(self) -> MortalJournal:
        return MortalJournal(self.cell, "runner", lease_s=86400)  # no timer renews it here

    def replace_conductor(self) -> None:
        """Kill the conductor, expire its lease, and let another one continue."""
        self.deps.runner.journal.dead = True
        self.write("cell", sa.update(cell_tables.runners).values(lease_until=sa.text("'2000-01-01 00:00:00'")))
        self.conductor_process().sweep()

    @contextmanager
    def mortal(self) -> Iterator[None]:
        """Call ``on_point(action, step, when)`` at each point of the runner; it may kill, or raise Killed."""
        before = faults.reached
        faults.reached = lambda action, step, when: self.on_point(action, step, when)
        try:
            yield
        finally:
            faults.reached = before

    # -- state

    def settle(self, *uuids: str, seconds: float = SETTLED_S) -> None:
        """Wait until no operation of these servers (or of any) is open or running; parked ones are swept."""
        end = time.monotonic() + seconds
        while open_ := self.open_operations(uuids):
            assert time.monotonic() < end, f"still open: {[(row.server_uuid, row.action, row.step) for row in open_]}"
            self.nudge()
        until(lambda: not self.deps.runner.running, "the runner is idle")

    def nudge(self) -> None:
        """Sweep parked operations, or wait a moment; longer while the runner works, since each check of the waiting
        test reads the database, which costs more than the operation."""
        if not self.deps.runner.running:
            table = cell_tables.operations
            self.write("cell", sa.update(table).where(table.c.finished_at.is_(None))
                       .values(updated_at=sa.text("'2000-01-01 00:00:00'")))
            self.deps.runner.sweep()
        for _ in range(WORKING_POLLS):
            time.sleep(0.003)
            if not self.deps.runner.running:
                break

    def open_operations(self, uuids: tuple[str, ...] = ()) -> list[Any]:
        table = cell_tables.operations
        query = sa.select(table).where(table.c.finished_at.is_(None))
        return self.rows("cell", query.where(table.c.server_uuid.in_(uuids)) if uuids else query)

    def report_power(self) -> None:
        """Let hosts that are up report all their guests, like their timers."""
        for compute in self.computes.values():
            if not compute.dead and not compute.silent:
                compute.service._events.report_all()

    def do_cleanups(self) -> None:
        """Let hosts that are up do their pending cleanups, like their timers."""
        for host in {debt.host for debt in self.debts()}:
            compute = self.computes[host]
            if not compute.dead and not compute.silent:
                compute.service.register()
                compute.service._cleanups.do_open()

    def guests(self) -> dict[tuple[str, str], Any]:
        """Return all resources of servers on hosts, by (host, server): guests, source copies, disks, taps."""
        return {(host, state.server_uuid): compute.driver.hypervisor.inspect(state.server_uuid)
                for host, compute in self.computes.items() for state in FakeDriver.guests(compute.driver)}

    def source_copies(self) -> set[tuple[str, str]]:
        return {(host, guest.uuid) for host, compute in self.computes.items()
                for guest in compute.driver.hypervisor.source_copies.all()}

    def amounts(self) -> dict[tuple[str, str, str], int]:
        """Return the claimed amounts by (host, consumer, resource class)."""
        return claims.amounts(self.rows)

    @property
    def moving(self) -> dict[str, str]:
        """Return the consumers that are moves: consumer -> server."""
        return claims.moving(self.rows)

    def close(self) -> None:
        for compute in self.computes.values():
            compute.end()
        super().close()


def impatient(monkeypatch: Any) -> None:
    """Skip waits that only real networks need."""
    monkeypatch.setattr(permission, "ASK_FOR_S", 0.0)


def quiet_threads() -> None:
    """Suppress the output of killed threads."""
    threading.excepthook = lambda args: None if args.exc_type is Killed else threading.__excepthook__(args)
