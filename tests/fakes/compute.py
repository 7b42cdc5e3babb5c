"""The environment of a compute host, for tests: a clock, orders, an image service, a whole service."""

from __future__ import annotations

import datetime
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from nova import errors
from nova.compute.host import Host, HostClock
from nova.compute.reports.consoles import Offers
from nova.compute.service import ComputeParts, ComputeService
from nova.conf import compute as compute_options
from nova.conf import fake as fake_options
from nova.devel.fake import FakeDriver
from nova.model.base import Time, utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import BuildOrder, Disk, Fence, GuestOrder, Outcome
from nova.model.guest.vendor_source import NoVendorData
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation
from nova.model.network.networks import Interface
from nova.rpc.host_secret import HostSecret
from tests.fakes.conductor_host import FakeConductorHost

HOST = "compute1"


class FakeClock(HostClock):
    """Clock that stands still until ``advance``; it starts at the real time, which suits files and threads."""

    def __init__(self) -> None:
        self._ahead = datetime.timedelta()
        self._start, self._zero = utcnow(), time.monotonic()

    def now(self) -> Time:
        return self._start + self._ahead

    def monotonic(self) -> float:
        return self._zero + self._ahead.total_seconds()

    def advance(self, **amount: float) -> None:
        self._ahead += datetime.timedelta(**amount)


def options(module: Any, **values: Any) -> Any:
    """Return an option group as ``nova.cmd`` passes it: the section's defaults, and ``values``."""
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt("state_path", default="/nowhere")])
    group = None if module.GROUP == "DEFAULT" else module.GROUP
    conf.register_opts(module.OPTS, group=group)
    conf([])
    for name, value in values.items():
        conf.set_override(name, value, group=group)
    return conf if group is None else conf[group]


def new_uuid() -> str:
    return str(uuid.uuid4())


def fence(epoch: int = 1, operation_id: int | None = None, start_by: Time | None = None) -> Fence:
    return Fence(operation_id=epoch if operation_id is None else operation_id, epoch=epoch, start_by=start_by)


def build_order(server_uuid: str | None = None, epoch: int = 1, number: int = 1, **fields: Any) -> BuildOrder:
    values: dict[str, Any] = {
        "server_uuid": server_uuid or new_uuid(), "id": number, "instance_name": f"instance-{number:08x}",
        "name": f"vm{number}", "hostname": f"vm{number}", "project_id": "demo", "user_id": "someone",
        "fence": fence(epoch), "flavor": Flavor(flavorid="1", name="m1.tiny", memory_mb=512, vcpus=1, root_gb=1),
        "disks": (Disk(kind="root", size_gb=1),),
        "interfaces": (Interface(id=f"{number:08x}-port", mac="fa:16:3e:00:00:01", network_id="net", label="net"),)}
    return BuildOrder(**(values | fields))


def guest_order(order: BuildOrder, epoch: int, **fields: Any) -> GuestOrder:
    values = {"server_uuid": order.server_uuid, "instance_name": order.instance_name, "fence": fence(epoch)}
    return GuestOrder(**(values | fields))


class FakeStore:
    """The image proxy from a host's point of view: images by id, with the uploaded data."""

    def __init__(self) -> None:
        self.images: dict[str, Image] = {}
        self.data: dict[str, bytes] = {}
        self.error: Exception | None = None
        self.lose_answer = False
        self.on_chunk: Any = lambda: None
        self.held: list[ImageTicket] = []
        self.offered: list[RbdLocation] = []
        self.refusal: errors.NovaError | None = None  # raised for offered images
        self.places: dict[str, tuple[RbdLocation, ...]] | Exception = {}  # in Ceph; or an error

    def add(self, image_id: str) -> str:
        self.images[image_id] = Image(id=image_id, status="queued")
        return image_id

    def hold(self, tickets: Sequence[ImageTicket]) -> None:
        self.held += tickets

    def show(self, image_id: str) -> Image:
        if image_id not in self.images:
            raise errors.NotFound(f"Image {image_id} could not be found.")
        return self.images[image_id]

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        if isinstance(self.places, Exception):
            raise self.places
        return self.places.get(image_id, ())

    def offer(self, image_id: str, location: RbdLocation) -> None:
        self.offered.append(location)
        if self.refusal is not None:
            raise self.refusal

    def upload(self, image_id: str, source: Any) -> int:
        image = self.show(image_id)
        if self.error is not None:
            raise self.error
        source.seek(0)
        data = b""
        while chunk := source.read(1024):
            data += chunk
            self.on_chunk()
        self.data[image_id] = data
        self.images[image_id] = Image(id=image.id, status="active")
        if self.lose_answer:
            raise errors.Unavailable("the image service did not answer")
        return len(self.data[image_id])


class World:
    """One compute host with the fake driver and a fake conductor; ``restart`` is a kill and a new start."""

    def __init__(self, state_path: Path, clock: HostClock | None = None, name: str = HOST, images: Any = None,
                 **settings: Any) -> None:
        self.state_path, self.settings = state_path, settings
        self.store, self.fake = FakeStore(), {}  # ``fake``: options of the driver
        self.offers: Offers = {}  # of consoles (see Offers)
        self.vendor: Any = NoVendorData()
        self.images = images
        self.hairpins: Any = None
        self.filters: Any = None
        self.most_disks = -1
        self.conductor = FakeConductorHost()
        self.host = Host(name, state_path, clock=clock or HostClock())
        self.driver = self.new_driver()
        self.service = self.new_service()

    def new_driver(self) -> FakeDriver:
        return FakeDriver(options(fake_options, **self.fake), self.host.name, self.state_path)

    def new_service(self, driver: Any = None) -> ComputeService:
        client = self.conductor.client(self.host.name)
        parts = ComputeParts(driver or self.driver, client, self.images, options(compute_options, **self.settings),
                             store=self.store, consoles=self.offers, vendor=self.vendor, hairpins=self.hairpins,
                             filters=self.filters, secret=HostSecret(self.state_path), most_disks=self.most_disks)
        return ComputeService(parts, self.host)

    def start(self) -> World:
        self.service.start()
        return self

    def restart(self) -> World:
        """Restart the process: state in memory is lost, state in files is read again."""
        self.driver.knobs.clear()
        self.service.stop(0.0)
        self.driver = self.new_driver()
        self.service = self.new_service()
        return self.start()

    def build(self, *orders: BuildOrder) -> tuple[Outcome, ...]:
        return self.service.build_guests(self.host.name, orders)

    def ask(self, call: str, *orders: Any) -> tuple[Outcome, ...]:
        """Call ComputeRPC with these orders."""
        return getattr(self.service, call)(self.host.name, orders)

    def one(self, call: str, order: Any) -> Outcome:
        (outcome,) = self.ask(call, order)
        return outcome

    def close(self) -> None:
        """Stop the service and wait for running work, unless the clock stands still: the wait would never end."""
        self.driver.knobs.clear()
        self.service.stop(5.0 if type(self.host.clock) is HostClock else 0.0)

    def leftovers(self) -> list[str]:
        """Return all remaining resources of guests, except fences."""
        guests = [f"{guest.server_uuid}: {self.driver.hypervisor.inspect(guest.server_uuid)}"
                  for guest in self.driver.guests()]
        folders = ("building", "aside", "arrived", "fake/guests", "fake/aside", "fake/snapshots", "fake/arrivals")
        files = [str(path) for folder in folders for path in (self.state_path / folder).glob("*")]
        return guests + files


def beside(function: Any, *args: Any) -> tuple[threading.Thread, list[Any]]:
    """Run a call in a thread; when it has ended, its result is the only item of the list."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function(*args)), daemon=True)
    thread.start()
    return thread, results


def wait_until(condition: Any, timeout_s: float = 5.0) -> None:
    """Wait until ``condition()`` is true. Raises AssertionError after ``timeout_s``."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.005)
