"""nova-compute: run one host's guests as ordered by the conductor."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nova import concurrency, errors, failures
from nova.cmd import common, host_credentials
from nova.cmd.reporting import say_mode
from nova.conf._drivers import BARE_METAL, FAKE, LIBVIRT, driver_kind, is_libvirt
from nova.conf._options import Options, oslo_conf
from nova.conf._security_mode import asked_mode
from nova.model.host.services import Heartbeat
from nova.model.network.forbidden_ranges import RangeSetting, parsed
from nova.model.security.security_modes import SecurityMode
from nova.monitoring.health import HealthChecks
from nova.privileged import choosing
from nova.rpc.host_secret import HostSecret
from nova.rpc.hosts_url import require_hosts_url
from nova.service import HEARTBEAT_RETRY_S, PeriodicTask
from nova.version import RELEASE
from nova.virt.interface import Driver

if TYPE_CHECKING:
    from nova.clients.host_images import HostImages
    from nova.clients.image_proxy import ImageProxy
    from nova.compute.filter.host_filter import PacketFilters
    from nova.compute.guests.images import ImageCache, ImageSource
    from nova.compute.orders.with_hairpin import TurnOn
    from nova.model.host.services import Alive
    from nova.rpc.bus import Serving

LOG = logging.getLogger(__name__)

BINARY = "nova-compute"


#: Modules of the drivers, each with ``from_conf(options, host)``. The fake driver is not part of the core.
DRIVERS = {LIBVIRT: "nova.virt.libvirt.driver", FAKE: "nova.devel.fake.driver"}
NO_BARE_METAL = ("this release has no bare metal. Keep the nova-compute of Ironic in a cloud of OpenStack Nova: see "
                 "'Bare metal' in doc/migrating.rst")


def driver_maker(options: Options) -> Callable[[Options, str], Driver]:
    """Return the factory of the driver in ``compute_driver``. Raises config.Missing, config.Choice; config.Unusable for
    Ironic's driver."""
    if not options.compute_driver:
        raise errors.config.Missing(option="[DEFAULT]compute_driver",
                                    cure="set it to libvirt.LibvirtDriver, or to fake.FakeDriver for trials")
    kind = driver_kind(options.compute_driver)
    if kind == BARE_METAL:
        raise errors.config.Unusable(option="[DEFAULT]compute_driver", reason=NO_BARE_METAL)
    if kind not in DRIVERS:
        raise errors.config.Choice(option="[DEFAULT]compute_driver", known="libvirt.LibvirtDriver, fake.FakeDriver")
    maker: Callable[[Options, str], Driver] = importlib.import_module(DRIVERS[kind]).from_conf
    return maker


def _tell_credentials(options: Options) -> None:
    """Log credentials in this host's files that only control plane services need."""
    if warning := host_credentials.warning(options):
        LOG.warning("%s", warning)
    if notice := host_credentials.notice(options):
        LOG.info("%s", notice)


def image_store(options: Options, secret: HostSecret) -> HostImages | ImageProxy:
    """Return the source of images and target of snapshots: the image proxies, by tickets; in upstream mode the image
    service, if this host has its address or credentials. Raises config.Credentials."""
    from nova.clients import host_images, image_proxy

    of_host = host_images.of_host(options) if asked_mode(options) is SecurityMode.UPSTREAM else None
    return of_host or image_proxy.of_group(options.image_proxy, options.host, secret)


def image_cache(options: Options, source: ImageSource, driver: Driver | None = None) -> ImageCache:
    """Return this host's image cache, filled from ``source``; ``driver`` knows which images guests use."""
    from nova.compute.guests.images import CacheSettings, ImageCache
    from nova.privileged.qemu_img import QemuImg

    group = options.image_cache
    settings = CacheSettings(directory=Path(options.instances_path) / group.subdirectory_name,
                             force_raw=options.force_raw_images, remove_unused=group.remove_unused_base_images,
                             minimum_age_s=group.remove_unused_original_minimum_age_seconds,
                             sweep_interval_s=group.manager_interval)
    users = driver.image_users if driver is not None else None
    return ImageCache(source, settings, QemuImg(timeout_s=group.convert_timeout),
                      users.images_in_use if users is not None else None)


IPTABLES, NOOP = "IptablesFirewallDriver", "NoopFirewallDriver"


def packet_filters(options: Options, guests: Callable[[], tuple[str, ...]] = tuple) -> PacketFilters | None:
    """Return the packet filters for this host's guests, used if the conductor says that hosts filter; None if disabled
    by the operator. ``guests`` returns the ranges of all guests.

    Raises config.Choice for an unknown ``firewall_driver``; config.Unusable for invalid ``guest_forbidden_ranges``."""
    from nova.compute.filter.host_filter import PacketFilters
    from nova.compute.filter.packet_rules import RuleOptions
    from nova.privileged.forbidden_rules import MetadataService
    from nova.privileged.forbidding import Forbidding
    from nova.privileged.iptables import Foreign
    from nova.privileged.runner import SystemRunner

    usual = IPTABLES if is_libvirt(options.compute_driver) else NOOP
    driver = (options.firewall_driver or usual).rpartition(".")[2]
    if driver not in (IPTABLES, NOOP):
        raise errors.config.Choice(option="[DEFAULT]firewall_driver",
                                   known=f"nova.virt.libvirt.firewall.{IPTABLES}, nova.virt.firewall.{NOOP}")
    if driver == NOOP or options.fake_network:
        return None
    foreign = Foreign(options.iptables_top_regex, options.iptables_bottom_regex)
    rules = RuleOptions(options.allow_same_net_traffic, options.iptables_drop_action,
                        MetadataService(options.metadata_host, options.metadata_port))
    filters = PacketFilters(SystemRunner(), Path(options.state_path), rules, foreign)
    filters.forbids = Forbidding(_forbidden(options), options.dmz_cidr, guests).now
    return filters


def _forbidden(options: Options) -> RangeSetting:
    """Return the parsed ``guest_forbidden_ranges``. Raises config.Unusable."""
    with failures.replaced(ValueError,
            lambda error: errors.config.Unusable(option="[DEFAULT]guest_forbidden_ranges", reason=error)):
        return parsed(options.guest_forbidden_ranges)


def hairpins(options: Options) -> TurnOn | None:
    """Return the function that lets guests on nova-network's bridges reach themselves by their floating addresses, but
    not the host by its own, or None. Taps of other network services are never passed to it."""
    from nova.privileged import links

    return links.ensure_guest_ports if is_libvirt(options.compute_driver) and not options.fake_network else None


class Compute:
    """The single process of nova-compute on a host."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.clients import vendordata
        from nova.cmd.consoleauth import configured_base_urls
        from nova.compute.host import Host
        from nova.compute.reports import consoles, provider_config
        from nova.compute.service import ComputeParts, ComputeService
        from nova.metadata.options import tree_options
        from nova.rpc import host_secret
        from nova.rpc.buses import hosts_bus, is_in_process
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        self.options = options
        make = driver_maker(options)
        in_upstream_mode = asked_mode(options) is SecurityMode.UPSTREAM
        if not in_upstream_mode and not is_in_process(options):
            _tell_credentials(options)
        secret = host_secret.of_host(options)
        self.bus = hosts_bus(options, options.host, secret)
        self.conductor = self.bus.client(ConductorHostRPC)
        self.driver = driver = make(options, options.host)
        store = image_store(options, secret)
        images = image_cache(options, store, driver) if driver.needs_images else None
        self.service = ComputeService(ComputeParts(driver, self.conductor, images, options, RELEASE,
                                                   tree_options(options), secret, store,
                                                   provider_config.load(options.compute.provider_config_location),
                                                   consoles=consoles.offers_of(options),
                                                   console_bases=configured_base_urls(options)
                                                   if in_upstream_mode else {},
                                                   vendor=vendordata.from_conf(options),
                                                   listens=options.workarounds.handle_virt_lifecycle_events,
                                                   filters=packet_filters(options, self._guest_ranges),
                                                   hairpins=hairpins(options),
                                                   live_waits=options.compute.live_migration_wait_for_vif_plug,
                                                   most_disks=options.compute.max_disk_devices_to_attach),
                                      Host(options.host, Path(options.state_path), options.my_ip))
        self.server: Serving | None = None
        self.probes: Serving | None = None
        self.beating: PeriodicTask | None = None
        self.abandoned = False

    def _guest_ranges(self) -> tuple[str, ...]:
        ranges: tuple[str, ...] = self.conductor.guest_ranges(self.options.host)
        return ranges

    def start(self) -> None:
        from nova.compute.reports.heartbeat import Heartbeats
        from nova.rpc.contracts.compute import ComputeRPC

        registered = self.service.start()
        if registered is None:
            return
        say_mode(registered.mode)
        self.bus.peers.learn(registered.lowest)
        self.server = self.bus.server(ComputeRPC, self.service)
        self.server.start()
        if asked_mode(self.options) is SecurityMode.UPSTREAM:
            from nova.rpc.transport import probe_server

            self.probes = probe_server(oslo_conf(self.options), self.options.host, ComputeRPC.topic)
            self.probes.start()
        heartbeats = Heartbeats(self.conductor, Heartbeat(host=self.options.host, binary=BINARY), self._on_heartbeat,
                                self.bus.watchdog)
        self.beating = PeriodicTask(float(registered.report_interval_s), heartbeats, "heartbeat", at_once=True,
                                    again_s=HEARTBEAT_RETRY_S).start()

    def _on_heartbeat(self, alive: Alive) -> None:
        self.bus.peers.learn(alive.lowest)
        self.service.on_heartbeat(alive)

    def health_checks(self) -> HealthChecks:
        """Return checks of the bus and the hypervisor."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        return health_checks.of_client(self.bus, ConductorHostRPC, {"hypervisor": self.driver.check_alive})

    def stop(self, seconds: float) -> None:
        """Start no more orders; running orders have ``seconds`` to end. Unfinished orders are found again at the next
        start. Guests keep running."""
        if self.beating:
            self.beating.stop()
        serving = [server for server in (self.server, self.probes) if server]
        drained = concurrency.spawn(self.bus.stop, serving, seconds)
        self.service.stop(seconds, drained.join)

    def abandon(self) -> None:
        """Stop as after a SIGKILL, while services of other hosts continue in the same process."""
        self.abandoned = True
        self.bus.close()
        if self.beating:
            self.beating.stop()
        self.service.abandon()


def check(options: Options) -> None:
    """Check the required options. Raises config.Missing, config.Choice; host.NoHelper if privileged operations are not
    possible."""
    driver_maker(options)
    require_hosts_url(options)
    if is_libvirt(options.compute_driver) and not (options.libvirt.connection_uri or "").endswith("/session"):
        choosing.choose(options)
    else:
        choosing.take_over(options)


def main() -> int:
    """Run nova-compute, a single process, and return its exit code."""
    return common.run(BINARY, Compute, check=check)


if __name__ == "__main__":
    raise SystemExit(main())
