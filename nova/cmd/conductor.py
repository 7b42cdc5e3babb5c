"""nova-conductor: control servers, with exclusive access to the databases."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from nova import concurrency, errors, failures
from nova.cmd import common
from nova.cmd.conductor_hosts import cloud_wrap, console_auth, host_ends, secret_wrap, ticket_maker
from nova.cmd.conductor_neighbours import check_networking, networking, notifier
from nova.cmd.reporting import say_mode
from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.conf.api_database import ApiDatabaseOptions
from nova.conf.database import DatabaseOptions
from nova.model.host.services import DatabaseConnections
from nova.model.security.security_modes import SecurityMode
from nova.monitoring.health import HealthChecks
from nova.rpc.hosts_url import require_hosts_url
from nova.service import PeriodicTask, retry_until_available
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.clients.projects import AnyProject, Projects
    from nova.conductor.engine.deps import ConductorSettings
    from nova.conductor.quota.limits import QuotaLimits
    from nova.db.sql.engine import Database
    from nova.rpc.bus import Serving

LOG = logging.getLogger(__name__)

BINARY = "nova-conductor"
ENROLMENTS_S = 2.0  # maximum time in which messages of a revoked host may still be accepted
LIMITED_AT_ONCE = 8  # concurrent calls of services that may only register, send heartbeats and ask for hosts
AT_ONCE = ("takeover", "own heartbeat", "enrolled hosts")


def settings(options: Options) -> ConductorSettings:
    """Return the options in the form that the conductor's packages read. Raises config.Wrong."""
    from nova.conductor.engine.deps import ConductorSettings, VpnSettings
    from nova.conductor.networking import network_options
    from nova.conf import quota
    from nova.model.numa import pci_aliases
    from nova.model.placement.ratios import ratios
    from nova.model.quota import periods

    limits = {quota.API_NAMES.get(name, name): getattr(options.quota, name) for name in quota.LIMITS}
    names = ("default_availability_zone", "internal_service_availability_zone", "default_schedule_zone",
             "instance_name_template", "service_down_time", "report_interval", "shutdown_timeout",
             "force_config_drive", "allow_resize_to_same_host", "instance_usage_audit", "instance_usage_audit_period",
             "reclaim_instance_interval", "resize_confirm_window", "rescue_timeout", "instance_build_timeout",
             "shelved_offload_time", "shelved_poll_interval", "instance_actions_kept", "max_local_block_devices",
             "reimage_timeout_per_gb", "enable_new_services")
    periods.parse(options.instance_usage_audit_period)
    networking = network_options.from_conf(options)
    floating = network_options.floating_from_conf(options)
    counted = ratios("[filter_scheduler]image_props_weight_setting",
                     options.filter_scheduler.image_props_weight_setting, usual=1.0)
    aliases = pci_aliases.parse(options.pci.alias)
    vpn = VpnSettings(**{name: getattr(options, name) for name in (
        "vpn_image_id", "vpn_flavor", "vpn_key_suffix", "boot_script_template", "dmz_net", "dmz_mask",
        "cnt_vpn_clients")}, cc_dmz=options.my_ip)
    return ConductorSettings(**{name: getattr(options, name) for name in names}, max_limit=options.api.max_limit,
                             cross_az_attach=options.cinder.cross_az_attach,
                             non_inheritable_image_properties=tuple(options.non_inheritable_image_properties),
                             max_attempts=options.scheduler.max_attempts, dhcp_domain=options.api.dhcp_domain,
                             pci_aliases=aliases, vpn=vpn,
                             deleted_retention_s=int(options.deleted_retention.total_seconds()),
                             instance_actions_retention_s=options.instance_actions_retention * 86400,
                             precache_concurrency=options.image_cache.precache_concurrency,
                             limit_tenants_to_placement_aggregate=options.scheduler.limit_tenants_to_placement_aggregate,
                             image_props_weight_multiplier=options.filter_scheduler.image_props_weight_multiplier,
                             image_props_weight_setting=counted,
                             quota_defaults={**_network_limits(options), **limits}, networking=networking,
                             floating=floating,
                             network_defaults=network_options.defaults_from_conf(options))


def _network_limits(options: Options) -> dict[str, int]:
    """Return nova-network's limits, which have no effect with Neutron."""
    from nova.conf import quota
    from nova.conf.network import neutron_in_use

    if neutron_in_use(options):
        return dict(quota.NETWORK_DEFAULTS)
    return {name: getattr(options.quota, name) for name in quota.NETWORK_LIMITS}


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


def databases(options: Options) -> tuple[Database, Database]:
    """Return the (api, cell) databases. Raises config.Missing, with option and file, if a URL is not set."""
    return database(options, "api"), database(options, "cell")


def database(options: Options, schema: str) -> Database:
    """Return one database, which needs only its own URL. ``schema``: api or cell. Raises config.Missing as above."""
    from nova.db.sql.engine import Database

    name = {"api": "api_database", "cell": "database"}[schema]
    group: ApiDatabaseOptions | DatabaseOptions = options.api_database if schema == "api" else options.database
    if not group.connection:
        raise errors.config.Missing(option=f"[{name}]connection",
                                    cure="set it in nova-conductor.conf next to nova.conf")
    return Database(group.connection, group.max_pool_size, group.max_overflow, group.connection_recycle_time, schema)


def check_schema(api: Database, cell: Database) -> None:
    """Check the schemas. Raises service.CannotStart if one is older than this release; Unavailable."""
    from nova.db.schema import migrate

    with failures.replaced(errors.daemon.DbSchemaBehind,
            lambda error: errors.service.CannotStart(reason=error.message)):
        migrate.check("api", api)
        migrate.check("cell", cell)


def workers(options: Options) -> int:
    """Return the number of worker processes of a conductor."""
    return options.conductor.workers or common.cpus()


def connections(options: Options) -> DatabaseConnections:
    """Return the maximum number of connections of all workers; a worker's lease has its own connection to the cell."""
    api, cell = (group.max_pool_size + group.max_overflow for group in (options.api_database, options.database))
    return DatabaseConnections(api=workers(options) * api, cell=workers(options) * (cell + 1))


class Conductor:
    """A worker process of nova-conductor."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.clients import cinder, glance, key_manager, session
        from nova.conductor.engine.deps import Deps
        from nova.conductor.engine.journal import Journal
        from nova.conductor.engine.runner import Runner
        from nova.conductor.hosts.feed import Feed
        from nova.conductor.hosts.host_calls import HostCalls
        from nova.conductor.hosts.image_tickets import TicketedCalls, first_secret
        from nova.conductor.hosts.registration import ServiceRegistry
        from nova.conductor.hosts.security import agree_on_mode
        from nova.conductor.nova_network.network_updates import NetworkUpdates
        from nova.conductor.registry import ALL
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.cert import CertRPC
        from nova.rpc.contracts.compute import ComputeRPC
        from nova.rpc.contracts.network import NetworkRPC
        from nova.rpc.contracts.scheduler import SchedulerRPC

        self.options, self.index = options, index
        api, cell = databases(options)
        retry_until_available("reading the databases", lambda: check_schema(api, cell))
        self.mode = agree_on_mode(cell, asked_mode(options))
        self.bus = control_bus(options, options.host)
        wrap = cloud_wrap(options, cell, self.mode)
        self.hosts = host_ends(options, cell, wrap, self.mode, self.bus.peers)
        orders = self.hosts.client(ComputeRPC)
        if options.image_proxy.key:
            orders = TicketedCalls(ComputeRPC, orders, ticket_maker(options, first_secret(self.hosts.secrets_of)))
        self.host_calls = HostCalls(ComputeRPC, orders, cell, lambda: self.hosts.reconnected)
        self.deps = Deps(api=api, cell=cell, settings=settings(options), host=options.host,
                         scheduler=self.bus.client(SchedulerRPC),
                         compute=cast(ComputeRPC, self.host_calls),
                         network=self.hosts.client(NetworkRPC), certs=self.bus.client(CertRPC),
                         images=glance.of_groups(options.glance, session.load(options, "glance")),
                         notifier=notifier(options), quotas=quotas(options))
        self.deps.secret_wrap, self.deps.feed = wrap, Feed(self.deps)
        self.deps.volumes = cinder.of_groups(options.cinder, session.load(options, "cinder"))
        self.deps.projects = projects(options)
        self.deps.volume_keys = key_manager.of_groups(options.key_manager, options.barbican,
                                                      session.load(options, "barbican"))
        self.deps.network_updates = NetworkUpdates(cell, self.deps.network, options.service_down_time)
        self.deps.networking = networking(options, self.deps)
        self.deps.journal = Journal(cell, f"{options.host}:{os.getpid()}", options.conductor.lease_seconds,
                                    leases=cell.alone())
        self.deps.runner = Runner(self.deps, ALL)
        self.daemons = ServiceRegistry(self.deps)
        self.servers: list[Serving] = []
        self.periodic: list[PeriodicTask] = []
        self.stopping = False

    def start(self) -> None:
        from nova.conductor.host_service import HostService
        from nova.conductor.queries.placement import placement_service
        from nova.conductor.service import conductor_service, metadata_service, proxies_service, schedulers_service
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
        service = conductor_service(self.deps, self.daemons, Cloudpipes)
        self.servers = [
            self.bus.server(ConductorRPC, service, pool),
            self.bus.server(PlacementRPC, placement_service(self.deps), pool),
            self.bus.server(ConductorProxyRPC, proxies_service(self.daemons), LIMITED_AT_ONCE),
            self.bus.server(ConductorSchedulerRPC, schedulers_service(self.deps, self.daemons), LIMITED_AT_ONCE),
            *self.hosts.servers(ConductorHostRPC, lambda end: HostService(
                self.deps, self.daemons, send_echo=end.bus.send_echo, shared=end.shared), pool)]
        if self.mode is SecurityMode.UPSTREAM:
            consoles = console_auth(self.options, cast(ConductorRPC, service))
            self.servers += [self.bus.server(one, consoles, pool) for one in (ConsoleAuthRPC, ConsoleCheckRPC)]
            self.servers.append(self.bus.server(ConductorMetadataRPC, metadata_service(self.deps, self.daemons), pool))
        for server in self.servers:
            server.start()
        self._register()
        self._start_periodic()

    def _register(self) -> None:
        from nova.model.host.services import ContractVersion, Registration
        from nova.rpc.contracts.conductor import ConductorRPC
        from nova.rpc.contracts.conductor_host import ConductorHostRPC
        from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC
        from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
        from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC
        from nova.rpc.contracts.placement import PlacementRPC

        more = (ConsoleCheckRPC, ConductorMetadataRPC) if self.mode is SecurityMode.UPSTREAM else ()
        contracts = tuple(ContractVersion(name=one.__name__, version=one.version) for one in (
            ConductorRPC, ConductorHostRPC, ConductorProxyRPC, ConductorSchedulerRPC, PlacementRPC, *more))
        registered = self.daemons.register(Registration(host=self.options.host, binary=BINARY, topic="conductor",
                                                        contracts=contracts, release=RELEASE,
                                                        connections=connections(self.options)))
        say_mode(registered.mode)
        self.bus.peers.learn(registered.lowest)
        self._refresh()

    def _refresh(self) -> None:
        self.daemons.refresh(self.bus.peers)

    def _start_periodic(self) -> None:
        from nova.conductor.upkeep import periodic, timeouts
        from nova.model.host.services import Heartbeat

        beat = Heartbeat(host=self.options.host, binary=BINARY)
        renew_s = self.deps.journal.lease_s / 4
        jobs: list[tuple[float, Callable[[], object], str]] = [
            (renew_s, self.deps.journal.renew, "lease"), (1.0, self.daemons.flush, "heartbeats"),
            (1.0, self.host_calls.resend_lost_calls, "hosts that came back"),
            (renew_s, self._take_over, "takeover"), (ENROLMENTS_S, self.hosts.keep_enrolments, "enrolled hosts"),
            (self.options.report_interval, lambda: self.daemons.heartbeat(beat), "own heartbeat"),
            (self.options.report_interval, self._refresh, "known daemons")]
        jobs += [(period, functools.partial(job, self.deps), name)
                 for period, job, name in periodic.late_ports(self.deps.networking)]
        if self.index == 0:
            jobs += [(1.0, self.daemons.bridge_report_gap, "silence")]
            jobs += [(period, functools.partial(job, self.deps), name)
                     for period, job, name in (*periodic.JOBS, *timeouts.jobs(self.deps.settings),
                                               *periodic.healing(self.deps.networking, self.options),
                                               *periodic.naming(self.deps))]
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
        hosts = {f"hosts' bus ({bus.option})" if index else "hosts' bus":
                 health_checks.of_control(bus, ConductorHostRPC).checks["bus"]
                 for index, bus in enumerate(self.hosts.buses)}
        return HealthChecks({"bus": control.checks["bus"], **hosts,
                             "api database": self.deps.api.check, "cell database": self.deps.cell.check},
                            lambda: control.why_not_receiving() or self.hosts.why_not_receiving(),
                            (CloudFigures(self.deps),))

    def stop(self, seconds: float) -> None:
        """Stop serving calls, let running operations reach their next step, and release the lease, so that other
        conductors continue immediately."""
        self.stopping = True
        self.bus.stop(self.servers, min(seconds, 10.0))
        until = time.monotonic() + min(seconds, 10.0)
        while self.deps.runner.running and time.monotonic() < until:
            concurrency.sleep(0.1)
        for job in self.periodic:
            job.stop()
        if self.deps.runner.running:
            LOG.info("%d operations continue in another conductor", self.deps.runner.running)
        self.deps.notifier.stop(2.0)
        self.deps.journal.close()
        self.deps.api.dispose()
        self.deps.cell.dispose()


def prefer(options: Options) -> str:
    """Return the concurrency mode: native threads for database drivers in C, which would block all green threads."""
    urls = [options.database.connection or "", options.api_database.connection or ""]
    return "threads" if any(url.startswith(("postgres", "sqlite")) for url in urls) else "eventlet"


def check(options: Options) -> None:
    """Check the required options. Raises config.Missing, config.HostSecretKey, config.ImageProxyKey."""
    from nova.cmd import imageproxy

    databases(options)
    if asked_mode(options) is SecurityMode.BOUNDED:
        secret_wrap(options)
        imageproxy.seal(options)
    require_hosts_url(options)


def main() -> int:
    """Run nova-conductor with ``[conductor]workers`` processes (default: one for each processor), and return its exit
    code."""
    return common.run(BINARY, Conductor, workers, prefer,
                      ("nova.rpc.transport", "nova.conductor.service", "nova.conductor.host_service",
                       "nova.conductor.queries.placement", "nova.conductor.registry", "nova.db.schema.migrate",
                       "nova.clients.glance", "nova.notifications.oslo"), check)


if __name__ == "__main__":
    raise SystemExit(main())
