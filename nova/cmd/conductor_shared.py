"""Construction, registration and periodic jobs that super conductors and cell conductors share: the side of hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from nova.cmd.conductor_hosts import cloud_wrap, host_ends, ticket_maker
from nova.cmd.conductor_neighbours import networking, notifier
from nova.cmd.conductor_settings import settings
from nova.cmd.reporting import say_mode
from nova.conf._options import Options
from nova.model.host.cell_urls import CellUrls
from nova.model.host.services import ContractVersion, DatabaseConnections, Heartbeat, Registration
from nova.model.security.security_modes import SecurityMode
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.conductor.engine.deps import Deps
    from nova.conductor.hosts.host_buses import HostBuses
    from nova.conductor.hosts.host_calls import HostCalls
    from nova.conductor.hosts.registration import ServiceRegistry
    from nova.db.sql.engine import Database
    from nova.model.security.secret_wrap import SecretWrap
    from nova.rpc.client import Peers
    from nova.rpc.contracts.cert import CertRPC
    from nova.rpc.contracts.scheduler import SchedulerRPC
    from nova.rpc.interface import Contract

BINARY = "nova-conductor"
ENROLMENTS_S = 2.0  # maximum time in which messages of a revoked host may still be accepted
LIMITED_AT_ONCE = 8  # concurrent calls of services that may only register, send heartbeats and ask for hosts

Job = tuple[float, Callable[[], object], str]  # (seconds, function, name)
AT_ONCE = ("takeover", "own heartbeat", "enrolled hosts")  # jobs whose first turn does not wait


class HostConnections(NamedTuple):
    """A conductor's connections to hosts. ``calls``: a client of ComputeRPC that repeats lost calls."""

    buses: HostBuses
    calls: HostCalls
    wrap: SecretWrap


def host_side(options: Options, cell: Database, mode: SecurityMode, peers: Peers, urls: CellUrls | None = None
              ) -> HostConnections:
    """Connect to the hosts of a cell. ``urls``: of another cell than the configured one. Raises config.HostSecretKey,
    config.GeneratedKey, config.ImageProxyKey."""
    from nova.conductor.hosts.host_calls import HostCalls
    from nova.conductor.hosts.image_tickets import TicketedCalls, first_secret
    from nova.rpc.contracts.compute import ComputeRPC

    wrap = cloud_wrap(options, cell, mode, urls)
    buses = host_ends(options, cell, wrap, mode, peers, urls.transport_url if urls else "")
    orders = buses.client(ComputeRPC)
    if options.image_proxy.key:
        orders = TicketedCalls(ComputeRPC, orders, ticket_maker(options, first_secret(buses.secrets_of)))
    return HostConnections(buses, HostCalls(ComputeRPC, orders, cell, lambda: buses.reconnected), wrap)


class ControlClients(NamedTuple):
    """Clients of control daemons that operations use."""

    scheduler: SchedulerRPC
    certs: CertRPC


def make_deps(options: Options, databases: tuple[Database, Database], side: HostConnections,
              clients: ControlClients) -> Deps:
    """Create the dependencies with the peers of hosts' calls; each role adds its own. ``databases``: (api, cell).
    Raises config.Wrong."""
    from nova.clients import cinder, glance, session
    from nova.conductor.engine.deps import Deps
    from nova.conductor.nova_network.network_updates import NetworkUpdates
    from nova.rpc.contracts.compute import ComputeRPC
    from nova.rpc.contracts.network import NetworkRPC

    api, cell = databases
    deps = Deps(api=api, cell=cell, settings=settings(options), host=options.host, scheduler=clients.scheduler,
                compute=cast(ComputeRPC, side.calls), network=side.buses.client(NetworkRPC), certs=clients.certs,
                images=glance.of_groups(options.glance, session.load(options, "glance")), notifier=notifier(options))
    deps.secret_wrap = side.wrap
    deps.volumes = cinder.of_groups(options.cinder, session.load(options, "cinder"))
    deps.network_updates = NetworkUpdates(cell, deps.network, options.service_down_time)
    deps.networking = networking(options, deps)
    return deps


def register(options: Options, daemons: ServiceRegistry, peers: Peers, contracts: Sequence[type[Contract]],
             connections: DatabaseConnections) -> None:
    """Register this conductor with the contracts that it serves, and learn its peers' versions."""
    versions = tuple(ContractVersion(name=one.__name__, version=one.version) for one in contracts)
    registered = daemons.register(Registration(host=options.host, binary=BINARY, topic="conductor", contracts=versions,
                                               release=RELEASE, connections=connections))
    say_mode(registered.mode)
    peers.learn(registered.lowest)
    daemons.refresh(peers)


def host_jobs(options: Options, side: HostConnections, daemons: ServiceRegistry, peers: Peers,
              first: bool) -> list[Job]:
    """Return the periodic jobs for the services of a cell. ``first``: those of a conductor's first worker, too."""
    beat = Heartbeat(host=options.host, binary=BINARY)
    found: list[Job] = [
        (1.0, daemons.flush, "heartbeats"), (1.0, side.calls.resend_lost_calls, "hosts that came back"),
        (ENROLMENTS_S, side.buses.keep_enrolments, "enrolled hosts"),
        (options.report_interval, lambda: daemons.heartbeat(beat), "own heartbeat"),
        (options.report_interval, lambda: daemons.refresh(peers), "known daemons")]
    return [*found, (1.0, daemons.bridge_report_gap, "silence")] if first else found
