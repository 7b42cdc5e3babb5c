"""nova-conductor: control servers, with exclusive access to the databases."""

from __future__ import annotations

import functools
import logging
import os
import time
from typing import TYPE_CHECKING, cast

from nova import concurrency, errors, failures
from nova.cmd import common
from nova.cmd.conductor_cells import LOOK_S, OtherCells, own_place, serves_another_cell, upkeep
from nova.cmd.conductor_databases import check_schema, connections, database, databases, serves_a_cell, workers
from nova.cmd.conductor_hosts import console_auth, secret_wrap
from nova.cmd.conductor_neighbours import check_networking
from nova.cmd.conductor_shared import (
    AT_ONCE,
    BINARY,
    LIMITED_AT_ONCE,
    ControlClients,
    Job,
    host_jobs,
    host_side,
    make_deps,
    register,
)
from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.model.host.cells import CELL0
from nova.model.security.security_modes import SecurityMode
from nova.monitoring.health import HealthChecks
from nova.rpc.hosts_url import require_hosts_url
from nova.service import PeriodicTask, retry_until_available
from nova.service_start import DaemonService

if TYPE_CHECKING:
    from nova.clients.projects import AnyProject, Projects
    from nova.conductor.engine.deps import Deps
    from nova.conductor.quota.limits import QuotaLimits
    from nova.rpc.bus import Serving

LOG = logging.getLogger(__name__)

#: All that a worker imports at its start: its parent does it once.
MODULES = (
    "nova.clients.cinder", "nova.clients.glance", "nova.clients.key_manager", "nova.clients.neutron",
    "nova.clients.projects", "nova.cmd.cell_conductor", "nova.cmd.consoleauth", "nova.cmd.health_checks",
    "nova.conductor.cells.live_cells", "nova.conductor.cells.records", "nova.conductor.engine.runner",
    "nova.conductor.host_service", "nova.conductor.hosts.api_side", "nova.conductor.hosts.feed",
    "nova.conductor.hosts.generated_keys", "nova.conductor.hosts.host_buses", "nova.conductor.hosts.host_calls",
    "nova.conductor.hosts.image_tickets", "nova.conductor.hosts.security", "nova.conductor.neutron.back_end",
    "nova.conductor.neutron.proxies", "nova.conductor.nova_network.back_end", "nova.conductor.nova_network.dns",
    "nova.conductor.nova_network.network_updates", "nova.conductor.queries.cloud_figures",
    "nova.conductor.queries.placement", "nova.conductor.registry", "nova.conductor.service",
    "nova.conductor.upkeep.periodic", "nova.console.service", "nova.db.schema.revisions",
    "nova.legacy.cloudpipe.vpn_servers", "nova.model.placement.ratios", "nova.notifications.oslo",
    "nova.rpc.contracts.conductor_host", "nova.rpc.ticket_encryption")


def quotas(options: Options) -> QuotaLimits:
    """Return the source of limits, by ``[quota]driver``. Raises config.Missing without credentials for Keystone."""
    from nova.clients import keystone, session
    from nova.conductor.quota import limits
    from nova.conf import quota

    driver = options.quota.driver
    if driver == quota.WRITTEN:
        return limits.Written()
    if driver == quota.NOOP:
        return limits.Unlimited()
    credentials = session.load(options, "oslo_limit")
    if credentials.auth is None:
        raise errors.config.Missing(option="[oslo_limit]auth_type", cure="[quota]driver keeps limits in Keystone. Set "
                                    "[oslo_limit]auth_type, auth_url, username and password")
    missing = limits.Missing(options.quota.unified_limits_resource_strategy,
                             frozenset(options.quota.unified_limits_resource_list))
    return limits.Unified(keystone.of_groups(options.oslo_limit, credentials), missing)


def projects(options: Options) -> AnyProject | Projects:
    """Return the verifier of project ids: Keystone, as configured in ``[keystone]``; none without Keystone's tokens."""
    from nova.clients import projects as clients
    from nova.clients import session

    if options.api.auth_strategy == "noauth2":
        return clients.AnyProject()
    return clients.of_group(options.keystone, session.load(options, "keystone"))


class Conductor:
    """A worker process of a super conductor, which has both databases and runs all workflows. Without the api database
    it is a :class:`nova.cmd.cell_conductor.CellConductor`."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.conductor.cells.live_cells import LiveCells
        from nova.conductor.hosts.registration import ServiceRegistry
        from nova.conductor.hosts.security import agree_on_mode
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.cert import CertRPC
        from nova.rpc.contracts.scheduler import SchedulerRPC

        self.options, self.index = options, index
        api, cell = databases(options)
        retry_until_available("reading the databases", lambda: check_schema(api, cell))
        self.mode = agree_on_mode(cell, asked_mode(options))
        self.bus = control_bus(options, options.host)
        self.side = host_side(options, cell, self.mode, self.bus.peers)
        clients = ControlClients(self.bus.client(SchedulerRPC), self.bus.client(CertRPC))
        self.deps = make_deps(options, (api, cell), self.side, clients)
        self.deps.cell_uuid = own_place(options, api).uuid
        self.has_hosts = self.deps.cell_uuid != CELL0
        self._complete(self.deps)
        self.cells = LiveCells(self.deps)
        self.others = OtherCells(options, self.cells, clients, self._complete, first=index == 0)
        self.daemons = ServiceRegistry(self.deps)
        self.servers: list[Serving] = []
        self.periodic: list[PeriodicTask] = []
        self.stopping = False

    def _complete(self, deps: Deps) -> None:
        """Give a cell's dependencies the parts that only a super conductor has."""
        from nova.clients import key_manager, session
        from nova.conductor.engine.journal import Journal
        from nova.conductor.engine.runner import Runner
        from nova.conductor.hosts.api_side import DirectApiSide
        from nova.conductor.hosts.feed import Feed
        from nova.conductor.registry import ALL

        options = self.options
        deps.quotas, deps.projects = quotas(options), projects(options)
        deps.volume_keys = key_manager.of_groups(options.key_manager, options.barbican,
                                                 session.load(options, "barbican"))
        deps.feed, deps.api_side = Feed(deps), DirectApiSide(deps)
        deps.journal = Journal(deps.cell, f"{options.host}:{os.getpid()}", options.conductor.lease_seconds,
                               leases=deps.cell.alone())
        deps.runner = Runner(deps, ALL)

    def start(self) -> None:
        from nova.conductor.host_service import HostService
        from nova.conductor.queries.placement import placement_service
        from nova.conductor.service import cells_service, metadata_service, proxies_service, schedulers_service
        from nova.legacy.cloudpipe.vpn_servers import Cloudpipes
        from nova.rpc.contracts.conductor import ConductorRPC
        from nova.rpc.contracts.conductor_host import ConductorHostRPC
        from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC
        from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
        from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
        from nova.rpc.contracts.console_auth import ConsoleAuthRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC
        from nova.rpc.contracts.placement import PlacementRPC

        check_networking(self.deps.networking)
        self.deps.journal.open()
        self.daemons.bridge_report_gap()  # before the first call: without a conductor, services could not report
        pool = self.options.conductor.pool_size
        service = cells_service(self.cells, self.daemons, Cloudpipes)
        self.servers = [
            self.bus.server(ConductorRPC, service, pool),
            self.bus.server(PlacementRPC, placement_service(self.deps), pool),
            self.bus.server(ConductorProxyRPC, proxies_service(self.daemons), LIMITED_AT_ONCE),
            self.bus.server(ConductorSchedulerRPC, schedulers_service(self.deps, self.daemons), LIMITED_AT_ONCE),
            *(self.side.buses.servers(ConductorHostRPC, lambda end: HostService(
                self.deps, self.daemons, send_echo=end.bus.send_echo, shared=end.shared), pool)
              if self.has_hosts else [])]
        if self.mode is SecurityMode.UPSTREAM:
            consoles = console_auth(self.options, cast(ConductorRPC, service))
            self.servers += [self.bus.server(one, consoles, pool) for one in (ConsoleAuthRPC, ConsoleCheckRPC)]
            guests = metadata_service(self.deps, self.daemons, self.cells)
            self.servers.append(self.bus.server(ConductorMetadataRPC, guests, pool))
        self._look_for_cells()
        for server in self.servers:
            server.start()
        self._register()
        self._start_periodic()

    def _look_for_cells(self) -> None:
        with failures.best_effort(LOG, "the records of cells cannot be read: %s"):
            self.others.look()

    def _register(self) -> None:
        from nova.rpc.contracts.conductor import ConductorRPC
        from nova.rpc.contracts.conductor_host import ConductorHostRPC
        from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC
        from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
        from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC
        from nova.rpc.contracts.placement import PlacementRPC

        hosts = (ConductorHostRPC,) if self.has_hosts else ()
        more = (ConsoleCheckRPC, ConductorMetadataRPC) if self.mode is SecurityMode.UPSTREAM else ()
        register(self.options, self.daemons, self.bus.peers,
                 (ConductorRPC, *hosts, ConductorProxyRPC, ConductorSchedulerRPC, PlacementRPC, *more),
                 connections(self.options))

    def _start_periodic(self) -> None:
        from nova.conductor.upkeep import periodic

        renew_s = self.deps.journal.lease_s / 4
        jobs: list[Job] = [
            (renew_s, self.deps.journal.renew, "lease"), (renew_s, self._take_over, "takeover"),
            *host_jobs(self.options, self.side, self.daemons, self.bus.peers, first=self.index == 0)]
        jobs += [(LOOK_S, self._look_for_cells, "records of cells"), *upkeep(self.deps, self.index == 0)]
        if self.index == 0:
            jobs += [(period, functools.partial(job, self.deps), name) for period, job, name in periodic.cloud_jobs()]
        self.periodic = [PeriodicTask(period, job, name, at_once=name in AT_ONCE).start()
                         for period, job, name in jobs]

    def _take_over(self) -> None:
        if not self.stopping:
            self.deps.runner.sweep()

    def health_checks(self) -> HealthChecks:
        """Return checks of all buses and both databases."""
        from nova.cmd import health_checks
        from nova.conductor.queries.cloud_figures import CloudFigures
        from nova.rpc.contracts.conductor import ConductorRPC
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        control = health_checks.of_control(self.bus, ConductorRPC)
        buses = self.side.buses.buses if self.has_hosts else ()
        hosts = {f"hosts' bus ({bus.option})" if index else "hosts' bus":
                 health_checks.of_control(bus, ConductorHostRPC).checks["bus"] for index, bus in enumerate(buses)}
        return HealthChecks({"bus": control.checks["bus"], **hosts,
                             "api database": self.deps.api.check, "cell database": self.deps.cell.check},
                            lambda: next(filter(None, (self.others.why_not_ours, control.why_not_receiving(),
                                                       *(bus.why_not_receiving() for bus in buses))), ""),
                            (CloudFigures(self.deps),))

    def stop(self, seconds: float) -> None:
        """Stop serving calls, let running operations reach their next step, and release the lease, so that other
        conductors continue immediately."""
        self.stopping = True
        self.bus.stop(self.servers, min(seconds, 10.0))
        until = time.monotonic() + min(seconds, 10.0)
        while self._running() and time.monotonic() < until:
            concurrency.sleep(0.1)
        for job in self.periodic:
            job.stop()
        if running := self._running():
            LOG.info("%d operations continue in another conductor", running)
        self.others.stop()
        self.deps.notifier.stop(2.0)
        self.deps.journal.close()
        self.deps.api.dispose()
        self.deps.cell.dispose()

    def _running(self) -> int:
        return self.deps.runner.running + self.others.running


def prefer(options: Options) -> str:
    """Return the concurrency mode: native threads for database drivers in C, which would block all green threads."""
    urls = [options.database.connection or "", options.api_database.connection or ""]
    return "threads" if any(url.startswith(("postgres", "sqlite")) for url in urls) else "eventlet"


def check(options: Options) -> None:
    """Check the required options. Raises config.Missing, config.HostSecretKey, config.ImageProxyKey."""
    from nova.cmd import imageproxy

    database(options, "cell").load_driver()
    if asked_mode(options) is SecurityMode.BOUNDED:
        secret_wrap(options)
        if not serves_a_cell(options):
            imageproxy.seal(options)
    require_hosts_url(options)


def make(options: Options, index: int) -> DaemonService:
    """Create a worker process of the role that the databases in nova.conf give this conductor."""
    from nova.cmd.cell_conductor import CellConductor

    of_cell = serves_a_cell(options) or retry_until_available("reading the records of cells",
                                                              lambda: serves_another_cell(options))
    return CellConductor(options, index) if of_cell else Conductor(options, index)


def main() -> int:
    """Run nova-conductor with ``[conductor]workers`` processes (default: one for each processor), and return its exit
    code."""
    return common.run(BINARY, make, workers, prefer,
                      MODULES, check)


if __name__ == "__main__":
    raise SystemExit(main())
