"""The cell's role of nova-conductor: it has the cell's database alone, and serves the hosts of that cell.

It runs no operations. What hosts report, and what their reports begin, is written to the cell's database; super
conductors, which have the api database too, carry and run it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from nova.cmd.conductor_databases import check_schema, connections, database
from nova.cmd.conductor_hosts import console_auth
from nova.cmd.conductor_neighbours import check_networking
from nova.cmd.conductor_shared import (
    AT_ONCE,
    LIMITED_AT_ONCE,
    ControlClients,
    host_jobs,
    host_side,
    make_deps,
    register,
)
from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.model.base import Library
from nova.model.security.security_modes import SecurityMode
from nova.monitoring.health import HealthChecks
from nova.service import PeriodicTask, retry_until_available

if TYPE_CHECKING:
    from nova.rpc.bus import AnyBus, Serving
    from nova.rpc.interface import Contract

LOG = logging.getLogger(__name__)

#: Whether the configuration has the api database -> why a conductor has this role.
WHY = {False: "[api_database]connection is not set",
       True: "[database]connection is that of another cell than the entry, where super conductors are up"}


class CellConductor:
    """A worker process of a cell conductor. In upstream mode it also serves the console proxies and the metadata
    services of the cell, on ``transport_url``; in bounded mode it needs no such URL."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.conductor.cells.cell_parts import CarriedApiSide, CarriedFeed, LeftOperations, NoApiDatabase, NoClient
        from nova.conductor.engine.journal import Journal
        from nova.conductor.hosts.registration import ServiceRegistry
        from nova.conductor.hosts.security import agree_on_mode
        from nova.rpc.bus import pins
        from nova.rpc.buses import control_bus
        from nova.rpc.client import Peers

        self.options, self.index = options, index
        cell = database(options, "cell")
        retry_until_available("reading the cell's database", lambda: check_schema(cell))
        self.mode = agree_on_mode(cell, asked_mode(options))
        self.peers = Peers(pins(options))
        self.bus = control_bus(options, options.host, self.peers) if self.mode is SecurityMode.UPSTREAM else None
        self.side = host_side(options, cell, self.mode, self.peers)
        scheduler: Library = NoClient("the scheduler")
        certs: Library = NoClient("nova-cert")
        self.deps = make_deps(options, (NoApiDatabase(), cell), self.side, ControlClients(scheduler, certs))
        self.deps.feed, self.deps.api_side = CarriedFeed(self._reach_broker), CarriedApiSide(cell)
        self.deps.journal, self.deps.runner = Journal(cell, options.host), LeftOperations()  # without a lease
        self.daemons = ServiceRegistry(self.deps)
        self.servers: list[Serving] = []
        self.periodic: list[PeriodicTask] = []

    def _reach_broker(self) -> None:
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        for bus in self.side.buses.buses:
            bus.send_echo(ConductorHostRPC, None)

    def start(self) -> None:
        from nova.conductor.host_service import HostService
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        check_networking(self.deps.networking)
        self.daemons.bridge_report_gap()  # before the first call: without a conductor, services could not report
        control = {} if self.bus is None else self._control_servers(self.bus)
        self.servers = [*control.values(), *self.side.buses.servers(ConductorHostRPC, lambda end: HostService(
            self.deps, self.daemons, send_echo=end.bus.send_echo, shared=end.shared), self.options.conductor.pool_size)]
        served: tuple[type[Contract], ...] = (ConductorHostRPC, *control)
        if self.index == 0:
            LOG.info("cell conductor, as %s: serving %s to this cell; super conductors carry its hosts' reports and "
                     "run all operations", WHY[bool(self.options.api_database.connection)],
                     ", ".join(one.__name__ for one in served))
        for server in self.servers:
            server.start()
        register(self.options, self.daemons, self.peers, served, connections(self.options))
        jobs = host_jobs(self.options, self.side, self.daemons, self.peers, first=self.index == 0)
        self.periodic = [PeriodicTask(period, job, name, at_once=name in AT_ONCE).start() for period, job, name in jobs]

    def _control_servers(self, bus: AnyBus) -> dict[type[Contract], Serving]:
        """Return the servers for the cell's control daemons, by contract."""
        from nova.conductor.queries.consoles import ConsoleQueries
        from nova.conductor.service import metadata_service, proxies_service
        from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC
        from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
        from nova.rpc.contracts.console_auth import ConsoleAuthRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC

        queries: Library = ConsoleQueries(self.deps)
        pool, consoles = self.options.conductor.pool_size, console_auth(self.options, queries)
        return {ConductorProxyRPC: bus.server(ConductorProxyRPC, proxies_service(self.daemons), LIMITED_AT_ONCE),
                ConsoleAuthRPC: bus.server(ConsoleAuthRPC, consoles, pool),
                ConsoleCheckRPC: bus.server(ConsoleCheckRPC, consoles, pool),
                ConductorMetadataRPC: bus.server(ConductorMetadataRPC, metadata_service(self.deps, self.daemons), pool)}

    def health_checks(self) -> HealthChecks:
        """Return checks of all buses and the cell's database."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.conductor_host import ConductorHostRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC

        buses = {f"hosts' bus ({bus.option})" if index else "hosts' bus":
                 health_checks.of_control(bus, ConductorHostRPC) for index, bus in enumerate(self.side.buses.buses)}
        if self.bus is not None:
            buses["bus"] = health_checks.of_control(self.bus, ConsoleCheckRPC)
        return HealthChecks({**{name: one.checks["bus"] for name, one in buses.items()},
                             "cell database": self.deps.cell.check},
                            lambda: next(filter(None, (one.why_not_receiving() for one in buses.values())), ""))

    def stop(self, seconds: float) -> None:
        """Stop serving calls. Journal rows that hosts' calls began have no runner, so none waits for this one."""
        self.side.buses.buses[0].stop(self.servers, min(seconds, 10.0))
        for job in self.periodic:
            job.stop()
        self.deps.notifier.stop(2.0)
        self.deps.cell.dispose()
