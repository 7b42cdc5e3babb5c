"""The nova-compute service: serves ComputeRPC and runs this host's guests as ordered.

``start`` prepares the process until it can accept orders; the RPC server is started after it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nova import concurrency, errors, failures
from nova.compute.filter.firewall import Firewall
from nova.compute.filter.guard import NoGuard
from nova.compute.filter.host_filter import HostFilter
from nova.compute.guests.actions import GuestActions
from nova.compute.guests.build import BuildTools, ImagesOnHost, ImageStore
from nova.compute.guests.build_markers import BuildMarkers
from nova.compute.guests.cold_moves import Moves
from nova.compute.guests.interfaces import Plugging
from nova.compute.guests.lifecycle import Guests
from nova.compute.guests.live_moves import LiveGuests
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.guests.snapshots import SnapshotsOfGuests
from nova.compute.guests.starting import VifPlugging
from nova.compute.guests.volumes import VolumeOrders
from nova.compute.host import Host
from nova.compute.order_execution import OrderExecution
from nova.compute.order_table import OrderHandlers, TakesOrders
from nova.compute.orders.batches import Batches, OrderLimits
from nova.compute.orders.fences import Fences
from nova.compute.orders.hairpins import Hairpins, TurnOn
from nova.compute.orders.kind import OrderKind, OrderT
from nova.compute.orders.orders import Orders
from nova.compute.orders.resource_claims import ResourceClaims
from nova.compute.orphans import LOOK_S, OrphanReports
from nova.compute.periodic import Periodic, PeriodicJob
from nova.compute.reconcile import GuestManagers, Reconciler
from nova.compute.reports import identity
from nova.compute.reports.build_stats import BuildHealth
from nova.compute.reports.cleanups import Cleanups
from nova.compute.reports.consoles import ConsoleReports, Offers, addresses_of
from nova.compute.reports.host_info import HostInfo
from nova.compute.reports.hypervisor import HypervisorWatch
from nova.compute.reports.inventory import InventoryReports
from nova.compute.reports.monitors import monitors
from nova.compute.reports.power_events import PowerEvents
from nova.compute.reports.provider_config import ProviderConfig
from nova.compute.reports.volume_usage import VolumeUsage
from nova.conf._options import Options
from nova.model.base import HostName
from nova.model.guest.consoles import ConsoleType
from nova.model.guest.guest_tree import TreeOptions
from nova.model.guest.orders import NetworkEvent, Outcome, tickets_of
from nova.model.guest.vendor_source import NoVendorData, VendorSource
from nova.model.host.services import Alive, ContractVersion, Registered, Registration
from nova.model.image.image_tickets import ImageTicket
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

BINARY = "nova-compute"
EXPIRE_S, CLEANUP_S, ASK_FOR_CLEANUPS_S, TELL_OF_BUILDS_S = 3600.0, 60.0, 2.0, 5.0
HYPERVISOR_S = 15.0
MEND_FILTER_S, ASK_FOR_RULES_S, GIVEN_UP_S = 30.0, 120.0, 20.0
LONGEST_WAIT_S = 30.0  # between two attempts at start

T = TypeVar("T")


@dataclass(frozen=True)
class ComputeParts:
    """The dependencies of the service. ``conductor``: a ConductorHostRPC client; ``options``: group ``[DEFAULT]``;
    ``tree``: the parts of ``[api]`` that affect config drives; ``secret``: the host's signing key; ``store``:
    destination of snapshots."""

    driver: Driver
    conductor: ConductorHostRPC
    images: ImagesOnHost | None
    options: Any
    release: str = ""
    tree: TreeOptions = TreeOptions()
    secret: HostSecret | None = None
    store: ImageStore | None = None
    additions: tuple[ProviderConfig, ...] = ()  # additions to this host's providers from files
    consoles: Offers = field(default_factory=dict)  # console types that this host's configuration offers
    console_bases: Mapping[ConsoleType, str] = field(default_factory=dict)  # upstream mode: base URLs of the proxies
    vendor: VendorSource = field(default_factory=NoVendorData)  # the operator's vendordata for config drives
    listens: bool = True  # to the driver's events; else the periodic report sends all power states
    filters: HostFilter | None = None  # packet filters of this host; None: the network backend filters
    hairpins: TurnOn | None = None  # for taps on nova-network's bridges; None if there are none
    live_waits: bool = True  # live migration waits until the network service has seen the interfaces
    most_disks: int = -1  # for each guest; below 0: unlimited


class ComputeService(TakesOrders, HostInfo, ConsoleReports):
    """ComputeRPC for one host. Each guest's error is an outcome of its own; calls raise only errors of the caller."""

    def __init__(self, parts: ComputeParts, host: Host) -> None:
        self._parts, self._host, self._driver = parts, host, parts.driver
        self._stopping = threading.Event()
        self._cleanups_pending = False  # set by the answer to a heartbeat
        self.host_id = ""
        self._lock: identity.Lock | None = None
        host.state_path.mkdir(parents=True, exist_ok=True)
        markers = BuildMarkers(host.state_path / "building")
        self._fences = Fences(host.state_path / "fences", host.clock, parts.options.fence_retention)
        self._orders = Orders(self._fences, host.clock)
        self._plug_events = PlugEvents(host.clock, host.name)
        self._firewall = NoGuard() if parts.filters is None else Firewall(
            parts.conductor, host.name, parts.filters, lambda: {guest.server_uuid for guest in parts.driver.guests()})
        # Earlier releases named the directory of the source copies' marks "aside"; hosts have it on disk.
        tools = BuildTools(parts.driver, parts.images, markers, BuildMarkers(host.state_path / "aside"),
                           BuildMarkers(host.state_path / "arrived"), parts.tree, parts.store, host.name, parts.vendor,
                           self._plug_events, _vif_plugging(parts), self._firewall, parts.most_disks)
        guests = Guests(tools)
        self._images, self._offers, self._bases = parts.images, parts.consoles, parts.console_bases
        self._events = PowerEvents(parts.driver, parts.conductor, self._orders, self._fences, host)
        self._orders.on_finish = self._events.order_finished
        self._watch = HypervisorWatch(parts.driver, parts.conductor, host)
        self._live = LiveGuests(tools, self._orders, self._fences, parts.conductor, host)
        moves = Moves(tools, guests)
        self._condition = BuildHealth(monitors(parts.options.compute_monitors))
        self._inventory = InventoryReports(parts.driver, parts.conductor, parts.options, host, parts.additions,
                                           self._condition)
        claims = ResourceClaims(parts.driver, host.name, self._inventory.offered)
        self._usage = VolumeUsage(tools.volumes, parts.conductor, parts.options.volume_usage_poll_interval)
        volumes = VolumeOrders(tools.volumes, self._orders, parts.conductor, self._usage.send_last)
        self.handlers = OrderHandlers(guests, GuestActions(tools, guests), SnapshotsOfGuests(tools), moves, self._live,
                                      Plugging(tools), volumes)
        self._hairpins = None if parts.hairpins is None else Hairpins(parts.hairpins)
        execution = OrderExecution(self.handlers, claims, self._condition, self._firewall, self._hairpins)
        self._batches = Batches(execution, guests.expedite, self._orders, parts.conductor, host,
                                _limits(parts.options))
        self._cleanups = Cleanups(guests, moves, self._orders, self._fences, parts.conductor, host)
        managers = GuestManagers(parts.driver, guests, self._orders, self._fences, markers, self._events,
                                 self._firewall)
        self._reconciler = Reconciler(managers, parts.conductor, parts.options, host)
        self._orphans = OrphanReports(managers, parts.conductor, host)
        self._periodic = Periodic(self._jobs(), host.clock)

    # --- lifecycle

    def start(self) -> Registered | None:
        """Prepare to accept orders; return None if the service was told to stop before that. Waits for the hypervisor
        and the conductor as long as needed, and logs it. Raises errors that an operator must fix: Refused,
        host.DamagedId, host.TwoDaemons."""
        self._lock = identity.Lock(self._host.state_path)
        self.host_id = identity.host_id(self._host.state_path)
        if self._parts.images is not None:
            self._parts.images.open()
        try:
            self._patiently("reach the hypervisor", lambda: self._watch.watched(self._driver.connect))
            if self._parts.listens:
                self._driver.on_power_change(self._events.on_event)
            registered = self.register()
            self._patiently("filter the guests' packets", self._firewall.refresh)
            self._cleanups.do_open()
            self._patiently("compare guests with the conductor's list", self._reconciler.at_start)
            self._reflect()
            self._patiently("send the inventory", lambda: self._inventory.send(self.host_id, always=True))
        except _StopRequested:
            return None
        self._periodic.start()
        return registered

    def register(self) -> Registered:
        """Register this host with the conductor, at start and if a heartbeat's answer says that it is unknown. Also
        takes over its pending cleanups."""
        return self._register(self._patiently)

    def on_heartbeat(self, alive: Alive) -> Registered | None:
        """Handle a heartbeat's answer: if the conductor no longer knows this host, register again and resend all
        reports."""
        if alive.known:
            self._cleanups_pending = alive.cleanups_pending
            return None
        LOG.warning("the conductor no longer knows this host; registering again")
        try:
            registered = self.register()
        except _StopRequested:
            return None
        self._cleanups.do_open()
        self._inventory.send(self.host_id, always=True)
        self._events.report_all()
        return registered

    def abort_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        """Abort a live migration (see the contract). ``epoch``: the server's, as the caller knows it. Raises
        host.Misaddressed."""
        self._check_host(host)
        self._live.abort(server_uuid, epoch)

    def force_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        """Force a live migration to complete (see the contract). ``epoch``: the server's, as the caller knows it.
        Raises host.Misaddressed."""
        self._check_host(host)
        self._live.force(server_uuid, epoch)

    def refresh_firewall(self, host: HostName) -> None:
        """Refresh the packet filter rules (see the contract); does nothing if the network backend filters. Raises
        host.Misaddressed; Unavailable if the rules could not be changed."""
        self._check_host(host)
        self._firewall.refresh()

    def network_events(self, host: HostName, events: tuple[NetworkEvent, ...]) -> None:
        """Accept network events (see the contract). Raises host.Misaddressed, which reaches no caller: this is a
        cast."""
        self._check_host(host)
        self._plug_events.come(events)

    def look_for_debts(self, host: HostName) -> None:
        """Check for pending cleanups (see the contract) in another thread; after a failure, the periodic job asks
        again."""
        self._cleanups_pending = True
        concurrency.spawn(self._ask_now, name="cleanups")

    def look_for_strangers(self, host: HostName) -> None:
        """Check for orphans (see the contract) in another thread."""
        self._check_host(host)
        concurrency.spawn(self._orphans.scan, True, name="strangers")

    def stop(self, timeout_s: float = 30.0, no_more: Callable[[float], object] = lambda _seconds: None) -> bool:
        """Accept no more new guests and wait up to ``timeout_s`` for running orders; return whether they ended. Guests
        keep running. ``no_more`` waits until no more orders arrive; orders that arrived in the meantime are also
        carried out."""
        self._stopping.set()
        self._periodic.stop()
        ended = self._batches.stop(timeout_s)
        no_more(timeout_s)
        self._driver.close()
        if self._lock is not None:
            self._lock.release()
        return ended

    def abandon(self) -> None:
        """Release all that another process may take over, as if this process had been killed. Stops nothing."""
        self._stopping.set()
        self._periodic.stop()
        self._driver.close()
        if self._lock is not None:
            self._lock.release()

    # --- internals

    def _order(self, kind: OrderKind[OrderT], host: HostName, orders: tuple[OrderT, ...]) -> tuple[Outcome, ...]:
        self._check_host(host)
        self._hold([ticket for order in orders for ticket in tickets_of(order)])
        return self._batches.run(kind, orders)

    def _hold(self, tickets: Sequence[ImageTicket]) -> None:
        if tickets and self._parts.store is not None:
            self._parts.store.hold(tickets)

    def _check_host(self, given: HostName) -> None:
        if given != self._host.name:
            raise errors.host.Misaddressed(host=self._host.name, given=given)

    def _register(self, retry_until_available: Callable[[str, Callable[[], Registered]], Registered]) -> Registered:
        registration = Registration(
            host=self._host.name, binary=BINARY, topic=ComputeRPC.topic, host_id=self.host_id,
            contracts=(ContractVersion(name=ComputeRPC.__name__, version=ComputeRPC.version),),
            release=self._parts.release, addresses=addresses_of(self._offers, self._host.my_ip))
        assert self._parts.secret is not None
        registered = identity.register(self._parts.conductor, registration, self._parts.secret, retry_until_available)
        self._cleanups.take(registered.cleanups)
        return registered

    def _ask_now(self) -> None:
        try:
            self._ask_for_cleanups()
        except errors.NovaError as error:
            self._cleanups_pending = True
            LOG.info("could not ask for pending cleanups, will retry: %s", error)

    def _ask_for_cleanups(self) -> None:
        """Fetch pending cleanups that arose while this host was briefly unreachable: they come only with a
        registration."""
        if not self._cleanups_pending:
            return
        self._cleanups_pending = False
        self._register(lambda _what, function: function())
        self._cleanups.do_open()

    def _jobs(self) -> list[PeriodicJob]:
        options = self._parts.options
        images, users = self._parts.images, self._driver.image_users
        of_images = [] if images is None or users is None else [
            PeriodicJob("remove unused images", images.sweep_interval_s,
                        lambda: self._driver.disks.drop_images(images.sweep(users.images_in_use())))]
        return [
            *of_images,
            PeriodicJob("check the hypervisor", HYPERVISOR_S, self._watch.refresh),
            PeriodicJob("sync power states", options.sync_power_state_interval, self._events.report_all),
            PeriodicJob("refresh the inventory", options.update_resources_interval,
                        lambda: self._inventory.send(self.host_id)),
            PeriodicJob("report failed builds", TELL_OF_BUILDS_S, self._tell_of_builds),
            PeriodicJob("remove deleted guests", options.running_deleted_instance_poll_interval,
                        self._reconciler.sweep),
            PeriodicJob("check for orphans", LOOK_S, self._orphans.scan),
            PeriodicJob("carry out pending cleanups", CLEANUP_S, self._cleanups.do_open),
            PeriodicJob("ask for pending cleanups", ASK_FOR_CLEANUPS_S, self._ask_for_cleanups),
            PeriodicJob("repair the packet filter", MEND_FILTER_S, self._repair_filter),
            PeriodicJob("refresh the packet filter", ASK_FOR_RULES_S, self._firewall.refresh),
            PeriodicJob("report volumes that guests released late", GIVEN_UP_S, self.handlers.volumes.tell_of_given_up),
            PeriodicJob("report volume usage", self._usage.interval_s, self._usage.send_all),
            PeriodicJob("remove expired fences", min(EXPIRE_S, options.fence_retention.total_seconds() / 2),
                        self._expire_fences),
        ]

    def _repair_filter(self) -> None:
        self._firewall.repair()
        self._reflect()

    def _reflect(self) -> None:
        """Enable hairpin mode also for guests that were started without an order."""
        if self._hairpins is not None and (taps := self._firewall.taps()):
            self._hairpins.turn_on(taps)

    def _tell_of_builds(self) -> None:
        """Report that builds fail here, or succeed again, before the next build arrives."""
        if self._condition.take_news():
            self._inventory.send(self.host_id)

    def _expire_fences(self) -> int:
        return self._fences.expire({guest.server_uuid for guest in self._driver.guests()})

    def _patiently(self, what: str, function: Callable[[], T]) -> T:
        """Call the function until it succeeds: at start, the services that it needs may start later. Retries only
        Unavailable."""
        pause = 1.0
        while True:
            with failures.best_effort(LOG, "cannot %s yet, retrying in %.0f s: %s", what, pause, on=errors.Unavailable):
                return function()
            if self._stopping.wait(pause * random.uniform(0.8, 1.2)):
                raise _StopRequested
            pause = min(2 * pause, LONGEST_WAIT_S)


def _vif_plugging(parts: ComputeParts) -> VifPlugging:
    options = parts.options
    return VifPlugging(timeout_s=options.vif_plugging_timeout, fatal=options.vif_plugging_is_fatal,
                       live=parts.live_waits)


def _limits(options: Options) -> OrderLimits:
    return OrderLimits(builds=options.max_concurrent_builds, migrations=options.max_concurrent_live_migrations,
                       snapshots=options.max_concurrent_snapshots)


class _StopRequested(Exception):
    """SIGTERM arrived while the service waited for a peer."""
