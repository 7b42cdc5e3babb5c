"""nova-compute: keeps ComputeRPC, and this host's guests as ordered.

``start`` is everything between a bare process and one that may take orders; the RPC server is started after it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nova import errors
from nova.compute import identity, precache
from nova.compute.batches import Batches
from nova.compute.debts import Debts
from nova.compute.events import PowerEvents
from nova.compute.fences import Fences
from nova.compute.guest_steps.build import ImageCache, Tools
from nova.compute.guests import Guests
from nova.compute.host import Host, checked_uuid
from nova.compute.inventory import InventoryReports
from nova.compute.markers import Markers
from nova.compute.orders import (
    BUILD,
    CRASH,
    DESCRIBE,
    DESTROY,
    DROP_SNAPSHOT,
    FETCH,
    FINISH,
    FORGET,
    LAND,
    LEAVE,
    MIGRATE,
    PAUSE,
    PREPARE,
    REBOOT,
    REBUILD,
    RESCUE,
    RESUME,
    RETURN,
    SET_PASSWORD,
    SNAPSHOT,
    START,
    STOP,
    SUSPEND,
    UNPAUSE,
    UNRESCUE,
    UPLOAD,
    Orders,
)
from nova.compute.periodic import Job, Periodic
from nova.compute.reconcile import Desk, Reconciler
from nova.model.aggregates import CachedImage
from nova.model.base import HostName
from nova.model.diagnostics import Diagnostics
from nova.model.guest_tree import TreeOptions
from nova.model.images import Image
from nova.model.orders import (
    BuildOrder,
    ConsoleOutput,
    GuestOrder,
    LiveOrder,
    MoveOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
    SnapshotOrder,
)
from nova.model.services import Alive, ContractVersion, Registered, Registration
from nova.rpc.contracts.compute import ComputeRPC
from nova.virt.interface import Consoles, Diagnosis, HostPower, Uptime

LOG = logging.getLogger(__name__)

BINARY = "nova-compute"
CONSOLE_BYTES = 100 * 1024  # a message's worth of console text
EXPIRE_S, PAY_S, ASK_FOR_DEBTS_S = 3600.0, 60.0, 2.0
LONGEST_WAIT_S = 30.0  # between two tries at start

T = TypeVar("T")


class Misaddressed(errors.HostRefused):
    code, message = "host.misaddressed", "This is host {host}; the order is for {given}."


class NoConsole(errors.Conflict):
    code, message = "guest.no_console", "Guest {uuid} has no console log."


class NoGuest(errors.NotFound):
    code, message = "guest.not_found", "There is no guest {uuid} on host {host}."


class NoHostPower(errors.NotSupported):
    code = "host.no_power_actions"
    message = ("The hypervisor driver of host {host} can not turn the host on or off, reboot it or put it in "
               "maintenance.")


class NoDiagnostics(errors.NotSupported):
    code, message = "host.no_diagnostics", "The hypervisor driver of host {host} does not tell what its guests use."


class NoUptime(errors.NotSupported):
    code, message = "host.no_uptime", "The hypervisor driver of host {host} does not tell the uptime."


@dataclass(frozen=True)
class Parts:
    """What the service is made from. ``conductor``: a ConductorHostRPC client; ``options``: group ``[DEFAULT]``;
    ``tree``: what of ``[api]`` shows in config drives; ``secret``: the host's.
    """

    driver: Any
    conductor: Any
    images: ImageCache | None
    options: Any
    release: str = ""
    tree: TreeOptions = TreeOptions()
    secret: str = ""


class ComputeService:
    """ComputeRPC for one host. Every error of a guest is an outcome of its own; calls raise for the caller's only."""

    def __init__(self, parts: Parts, host: Host) -> None:
        self._parts, self._host, self._driver = parts, host, parts.driver
        self._stopping = threading.Event()
        self._owes = False  # a heartbeat's answer said so
        self.host_id = ""
        self._lock: identity.Lock | None = None
        host.state_path.mkdir(parents=True, exist_ok=True)
        markers = Markers(host.state_path / "building")
        self._fences = Fences(host.state_path / "fences", host.clock)
        self._orders = Orders(self._fences, host.clock)
        guests = Guests(Tools(parts.driver, parts.images, markers, parts.tree))
        self._events = PowerEvents(parts.driver, parts.conductor, self._orders, self._fences, host)
        self._orders.on_finish = self._events.order_finished
        self._batches = Batches(guests, self._orders, parts.conductor, host, parts.options.max_concurrent_builds)
        self._debts = Debts(guests, self._orders, self._fences, parts.conductor, host)
        desk = Desk(parts.driver, guests, self._orders, self._fences, markers, self._events)
        self._reconciler = Reconciler(desk, parts.conductor, parts.options, host)
        self._inventory = InventoryReports(parts.driver, parts.conductor, parts.options, host)
        self._periodic = Periodic(self._jobs(), host.clock)

    # --- its life

    def start(self) -> Registered | None:
        """Become ready for orders; None when it was told to stop before it was. Waits for the hypervisor and the
        conductor as long as it takes, and says so. Raises what an operator must cure: Refused, DamagedId, TwoDaemons.
        """
        self._lock = identity.Lock(self._host.state_path)
        self.host_id = identity.host_id(self._host.state_path)
        if self._parts.images is not None:
            self._parts.images.open()
        try:
            self._patiently("reach the hypervisor", self._driver.connect)
            self._driver.on_power_change(self._events.noticed)
            registered = self.register()
            self._debts.pay()
            self._patiently("compare guests with the conductor's list", self._reconciler.at_start)
            self._patiently("send the inventory", lambda: self._inventory.send(self.host_id, always=True))
        except _ToldToStop:
            return None
        self._periodic.start()
        return registered

    def register(self) -> Registered:
        """Make this host known; at start, and when a heartbeat's answer says that it isn't. Takes on its debts."""
        return self._register(self._patiently)

    def heard(self, alive: Alive) -> Registered | None:
        """A heartbeat's answer: register again (and tell all that the conductor forgot) when it wants that."""
        if alive.known:
            self._owes = alive.owes
            return None
        LOG.warning("the conductor does not know this host any more: registering again")
        try:
            registered = self.register()
        except _ToldToStop:
            return None
        self._debts.pay()
        self._inventory.send(self.host_id, always=True)
        self._events.report_all()
        return registered

    def stop(self, patience_s: float = 30.0) -> bool:
        """Begin nothing new and let what runs end within the time; whether it did. Guests run on."""
        self._stopping.set()
        self._periodic.stop()
        ended = self._batches.stop(patience_s)
        self._driver.close()
        if self._lock is not None:
            self._lock.release()
        return ended

    # --- ComputeRPC

    def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(BUILD, host, orders)

    def destroy_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DESTROY, host, orders)

    def start_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(START, host, orders)

    def stop_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(STOP, host, orders)

    def reboot_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(REBOOT, host, orders)

    # --- in a server's life

    def pause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(PAUSE, host, orders)

    def unpause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(UNPAUSE, host, orders)

    def suspend_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(SUSPEND, host, orders)

    def resume_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(RESUME, host, orders)

    def rescue_guests(self, host: HostName, orders: tuple[RescueOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(RESCUE, host, orders)

    def unrescue_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(UNRESCUE, host, orders)

    def rebuild_guests(self, host: HostName, orders: tuple[RebuildOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(REBUILD, host, orders)

    def set_passwords(self, host: HostName, orders: tuple[PasswordOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(SET_PASSWORD, host, orders)

    def crash_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(CRASH, host, orders)

    def snapshot_guests(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(SNAPSHOT, host, orders)

    def upload_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(UPLOAD, host, orders)

    def drop_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DROP_SNAPSHOT, host, orders)

    # --- from host to host

    def leave_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(LEAVE, host, orders)

    def fetch_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(FETCH, host, orders)

    def finish_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(FINISH, host, orders)

    def return_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(RETURN, host, orders)

    def forget_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(FORGET, host, orders)

    def describe_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DESCRIBE, host, orders)

    def prepare_arrivals(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(PREPARE, host, orders)

    def migrate_guests(self, host: HostName, orders: tuple[LiveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(MIGRATE, host, orders)

    def land_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(LAND, host, orders)

    def abort_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        raise errors.NotSupported("this driver moves no running guests")

    def force_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        raise errors.NotSupported("this driver moves no running guests")

    # --- what it tells

    def get_console_output(self, host: HostName, server_uuid: str, length: int | None) -> ConsoleOutput:
        self._check_host(host)
        if self._driver.power_state(checked_uuid(server_uuid)) is None:
            raise NoGuest(uuid=server_uuid, host=self._host.name)
        if not isinstance(self._driver, Consoles):
            raise NoConsole(uuid=server_uuid)
        text = _tail(self._driver.console_output(server_uuid, length))
        # so many lines, and none that is empty after the last one's end: clients split the text at line ends
        return ConsoleOutput(text=text if length is None else text.removesuffix("\n"))

    def get_diagnostics(self, host: HostName, server_uuid: str) -> Diagnostics:
        self._check_host(host)
        if self._driver.power_state(checked_uuid(server_uuid)) is None:
            raise NoGuest(uuid=server_uuid, host=self._host.name)
        if not isinstance(self._driver, Diagnosis):
            raise NoDiagnostics(host=self._host.name)
        return self._driver.diagnostics(server_uuid)

    def get_host_uptime(self, host: HostName) -> str:
        self._check_host(host)
        if not isinstance(self._driver, Uptime):
            raise NoUptime(host=self._host.name)
        return self._driver.uptime()

    def change_host_power(self, host: HostName, action: str) -> str:
        self._check_host(host)
        if not isinstance(self._driver, HostPower):
            raise NoHostPower(host=self._host.name)
        LOG.warning("host %s: %s, as an operator asks", self._host.name, action)
        return self._driver.change_host_power(action)

    def cache_images(self, host: HostName, images: tuple[Image, ...]) -> tuple[CachedImage, ...]:
        """One after the other: a host has one line to the image service, and other work to do."""
        self._check_host(host)
        return tuple(precache.fetch(self._parts.images, image) for image in images)

    def ping(self, host: HostName) -> str:
        return self._host.name

    # --- within

    def _register(self, patiently: Callable[[str, Callable[[], Any]], Any]) -> Registered:
        registration = Registration(
            host=self._host.name, binary=BINARY, topic=ComputeRPC.topic, host_id=self.host_id,
            contracts=(ContractVersion(name=ComputeRPC.__name__, version=ComputeRPC.version),),
            release=self._parts.release)
        registered = identity.register(self._parts.conductor, registration, self._parts.secret, patiently)
        self._debts.take(registered.debts)
        return registered

    def _ask_for_debts(self) -> None:
        """What a moment's silence of ours made us owe, while we ran: it comes with a registration only."""
        if not self._owes:
            return
        self._owes = False
        self._register(lambda _what, function: function())
        self._debts.pay()

    def _batch(self, kind: str, host: HostName, orders: tuple[Any, ...]) -> tuple[Outcome, ...]:
        self._check_host(host)
        return self._batches.run(kind, orders)

    def _check_host(self, given: HostName) -> None:
        if given != self._host.name:
            raise Misaddressed(host=self._host.name, given=given)

    def _jobs(self) -> list[Job]:
        options = self._parts.options
        images, driver = self._parts.images, self._driver
        of_images = [] if images is None else [
            Job("remove unused images", images.sweep_interval_s, lambda: images.sweep(driver.images_in_use()))]
        return [
            *of_images,
            Job("sync power states", options.sync_power_state_interval, self._events.report_all),
            Job("refresh the inventory", options.update_resources_interval,
                lambda: self._inventory.send(self.host_id)),
            Job("look for guests that are gone", options.running_deleted_instance_poll_interval,
                self._reconciler.sweep),
            Job("pay debts", PAY_S, self._debts.pay),
            Job("ask for debts", ASK_FOR_DEBTS_S, self._ask_for_debts),
            Job("drop old fences", EXPIRE_S, self._expire_fences),
        ]

    def _expire_fences(self) -> int:
        return self._fences.expire({guest.server_uuid for guest in self._driver.guests()})

    def _patiently(self, what: str, function: Callable[[], T]) -> T:
        """Try until it works: at start, what we need may start later than we. Only Unavailable is waited for."""
        pause = 1.0
        while True:
            try:
                return function()
            except errors.Unavailable as error:
                LOG.warning("can not %s yet, and try again in %.0f s: %s", what, pause, error)
            if self._stopping.wait(pause * random.uniform(0.8, 1.2)):
                raise _ToldToStop
            pause = min(2 * pause, LONGEST_WAIT_S)


class _ToldToStop(Exception):
    """SIGTERM came while we waited for a peer."""


def _tail(text: str) -> str:
    """The end of the text, as much as a message should carry."""
    encoded = text.encode()
    return text if len(encoded) <= CONSOLE_BYTES else encoded[-CONSOLE_BYTES:].decode(errors="ignore")
