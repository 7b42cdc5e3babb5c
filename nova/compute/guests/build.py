"""The parts of building one guest. ``do`` and ``undo`` may be repeated; ``undo`` is safe when ``do`` never ran."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nova import errors
from nova.clients.image_data import SeekableFile
from nova.compute.guests.build_markers import Markers
from nova.compute.guests.config_drive import ConfigDrives
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.guests.starting import Starter, VifPlugging
from nova.compute.guests.volumes import GuestVolumes
from nova.compute.host import HostClock
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.compute.orders.with_firewall import Guard, NoGuard
from nova.model.base import HostName
from nova.model.guest.guest_tree import TreeOptions
from nova.model.guest.orders import BuildOrder, boots_from_volume
from nova.model.guest.vendor_source import NoVendorData, VendorSource
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation
from nova.model.server.states import PowerState
from nova.virt.image_clones import CloneParent
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)


class ImagesOnHost(Protocol):
    """The images that lie on this host (``nova.compute.guests.images``)."""

    def open(self) -> None:
        """Make the directory, and remove what a kill left half done. Once, at start."""

    def fetch(self, image: Image, max_gb: int | None = None) -> None: ...

    def path(self, image_id: str) -> str: ...

    def keeps(self, image_id: str, paths: Collection[str]) -> bool:
        """Whether one of these paths is where this image lies when it is ready."""

    @property
    def sweep_interval_s(self) -> float:
        """Seconds between two sweeps, as operators give it: 0 is a minute, negative never."""

    def sweep(self, in_use: Collection[str]) -> tuple[str, ...]:
        """Remove what no guest uses; the driver's ``images_in_use`` says what is."""


class ImageStore(Protocol):
    """The image service, by the tickets that orders bring (``nova.clients.image_proxy.ImageProxy``)."""

    def hold(self, tickets: Sequence[ImageTicket]) -> None:
        """Those of an order that came: with them it can be carried out."""

    def show(self, image_id: str) -> Image:
        """What the image service says of it now. image.NotFound; Unavailable names the service."""

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        """Where its data lie in Ceph. image.NotFound; Unavailable; what else the image service's proxy refuses."""

    def offer(self, image_id: str, location: RbdLocation) -> None:
        """Have the image service take data that lie in Ceph, once it has them. Unavailable: it may or may not have
        taken them; any other error: it has not."""

    def upload(self, image_id: str, source: SeekableFile) -> int:
        """``source``: a file, or what has its ``read`` and ``seek``."""


@dataclass(frozen=True)
class BuildTools:
    """What steps work with.

    ``source_marks`` marks guests that left a copy here, by the operation that kept it; ``arrived`` those that were made
    anew here by one that asked whether their disks are shared; ``store``: where snapshots go.
    """

    driver: Driver
    images: ImagesOnHost | None
    markers: Markers
    source_marks: Markers
    arrived: Markers
    tree: TreeOptions = TreeOptions()  # what config drives say beside the guest's facts
    store: ImageStore | None = None
    host: HostName = ""
    vendor: VendorSource = field(default_factory=NoVendorData)

    events: PlugEvents = field(default_factory=lambda: PlugEvents(HostClock()))  # what the network service says
    patience: VifPlugging = VifPlugging()  # of guests that wait for it

    guard: Guard = NoGuard()  # packet filters
    most_disks: int = -1  # of one guest; below 0: any number

    @property
    def starter(self) -> Starter:
        """Starts guests; it waits for the network service where the operator wants that."""
        return Starter(self.driver, self.events, self.patience)

    @property
    def volumes(self) -> GuestVolumes:
        """Connects guests' volumes to this host, and lets them go."""
        return GuestVolumes(self.driver, self.host, self.most_disks)

    @property
    def drives(self) -> ConfigDrives:
        """Writes guests' config drives."""
        return ConfigDrives(self.driver, self.tree, self.vendor)


@dataclass
class Build:
    """One guest being built: the order, and what its steps learn."""

    order: BuildOrder
    tools: BuildTools
    work: Work
    gate: BatchGate
    parent: CloneParent | None = None
    power_state: PowerState = PowerState.NOSTATE

    @property
    def uuid(self) -> str:
        """The server's."""
        return self.order.server_uuid


def root_gb_of(order: BuildOrder) -> int:
    """Size in GiB of the root disk that is ordered; 0: none is, or it is as large as its image."""
    return max((disk.size_gb for disk in order.disks if disk.kind == "root"), default=0)


def cache_images(tools: BuildTools, images: Iterable[Image | None], first_max_gb: int | None = None) -> None:
    """Have the images on this host, where its driver needs them; the first is for a disk of ``first_max_gb``."""
    if not tools.driver.needs_images or tools.images is None:
        return
    for number, image in enumerate(images):
        if image is not None and image.id:  # without one: it only says what the system on a volume is like
            tools.images.fetch(image, None if number else first_max_gb)


def ready_images(tools: BuildTools, order: BuildOrder) -> CloneParent | None:
    """Have ready what the guest's disks are made of: what its root disk is to be a clone of; None: a file of the cache.
    Errors as ``nova.compute.guests.images.ImageCache.fetch`` raises them."""
    image, *others = images_of(order)
    parent = _parent_of(tools, image)
    cache_images(tools, (image if parent is None else None, *others), root_gb_of(order))
    return parent


def _parent_of(tools: BuildTools, image: Image | None) -> CloneParent | None:
    """Whatever stands against a clone, the image can still be fetched."""
    clones = tools.driver.image_clones
    if clones is None or tools.store is None or image is None or not image.id:
        return None
    try:
        return clones.parent(image, tools.store.locations(image.id) if image.disk_format == "raw" else ())
    except errors.NovaError as error:
        LOG.info("image %s is fetched instead of cloned: %s", image.id, error.message)
        return None


def images_of(order: BuildOrder) -> tuple[Image | None, ...]:
    """The images that a guest's disks are made of, and what it boots from beside them. The image of a guest that boots
    from a volume only says what it was made of."""
    return (None if boots_from_volume(order) else order.image, order.kernel, order.ramdisk)


def renew_base(tools: BuildTools, order: BuildOrder) -> None:
    """Have the image that the guest's disks lie over, which may have been lost on this host or cut short.
    guest.BaseLost, Unavailable, HostRefused: before anything is done to the guest."""
    users = tools.driver.image_users
    if order.image is None or not order.image.id or tools.images is None or users is None:
        return
    if not tools.images.keeps(order.image.id, users.bases(order.server_uuid)):
        return
    try:
        cache_images(tools, (order.image,))
    except (errors.NotFound, errors.Conflict, errors.Forbidden) as error:
        raise errors.guest.BaseLost(image_id=order.image.id, uuid=order.server_uuid, why=error.message) from error


class BuildStep(Protocol):
    name: str

    def do(self, build: Build) -> None:
        """Its part of the build. It may be repeated; what it raises ends the build."""

    def undo(self, build: Build) -> None:
        """Take back what ``do`` made, or a part of it. Safe when ``do`` never ran."""


class Reserve:
    """Mark the guest as half built. The mark is the first that comes and the last that goes."""

    name = "reserve"

    def do(self, build: Build) -> None:
        """Before all that leaves something on the host."""
        build.tools.markers.set(build.order)

    def undo(self, build: Build) -> None:
        """After everything else is gone."""
        build.tools.markers.clear(build.uuid)


class FetchImages:
    """Image, kernel and ramdisk into the host's cache, which keeps them when the build fails. Not an image that the
    root disk can be a clone of."""

    name = "images"

    def do(self, build: Build) -> None:
        """Nothing where the driver needs no images here. Errors as ``nova.compute.guests.images.ImageCache.fetch``
        raises them."""
        build.parent = ready_images(build.tools, build.order)

    def undo(self, build: Build) -> None:
        """Nothing: another guest may need the images."""


class MakeDisks:
    name = "disks"

    def do(self, build: Build) -> None:
        """HostRefused: there is no space; or the guest needs volumes, and this host has none. guest.TooManyDisks."""
        build.tools.volumes.check(build.order)
        build.tools.driver.disks.create_disks(build.order, build.tools.images, build.parent)

    def undo(self, build: Build) -> None:
        """The guest's whole folder goes, its config drive with it."""
        build.tools.driver.disks.remove_disks(build.uuid)


class PlugInterfaces:
    name = "interfaces"

    def do(self, build: Build) -> None:
        """HostRefused: an interface cannot be plugged on this host."""
        build.tools.driver.interfaces.plug(build.order)

    def undo(self, build: Build) -> None:
        """What was plugged is told by the record beside the guest, and by the order."""
        build.tools.driver.interfaces.unplug(build.uuid, build.order)


class ConnectGuestVolumes:
    name = "volumes"

    def do(self, build: Build) -> None:
        """HostRefused: a volume cannot be reached from this host."""
        build.tools.volumes.connect(build.order)

    def undo(self, build: Build) -> None:
        """The guest is gone, and nothing of it uses them."""
        build.tools.volumes.disconnect(build.uuid)


class WriteConfigDrive:
    """It goes with the disks, and a definition that was needed to write it goes at once."""

    name = "config drive"

    def do(self, build: Build) -> None:
        """Written twice for a guest that is told of its devices: it must be defined before it is known where they
        are."""
        drives = build.tools.drives
        drives.write(build.order)
        drives.write_places(build.order)

    def undo(self, build: Build) -> None:
        """Undefine a guest that was defined for its drive. The drive itself goes with the disks."""
        if build.tools.drives.needs_places(build.order):
            build.tools.driver.lifecycle.destroy(build.uuid)


class FilterPackets:
    """What may reach the guest, and what it may send, before it runs."""

    name = "packet filter"

    def do(self, build: Build) -> None:
        """Unavailable: the rules are not in the kernel; HostRefused: they would not hold here."""
        build.tools.guard.guard(build.order)

    def undo(self, build: Build) -> None:
        """Never fails; what is left goes with the next look."""
        build.tools.guard.drop(build.uuid)


class StartGuest:
    """Define and start: a point of no return, so the conductor is asked first."""

    name = "start"

    def do(self, build: Build) -> None:
        """host.OrderNotGranted, host.OrderStopped: a newer order has the server. host.OrderCannotAsk: no conductor
        answers. Until here nothing of the guest has run."""
        build.gate.pass_(build.uuid)
        build.work.check()
        build.power_state = build.tools.starter.new(build.order, build.work)

    def undo(self, build: Build) -> None:
        """Power it off at once and undefine it."""
        build.tools.driver.lifecycle.destroy(build.uuid)
