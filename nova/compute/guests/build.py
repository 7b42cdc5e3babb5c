"""The steps of building one guest. ``do`` and ``undo`` are idempotent; ``undo`` is safe if ``do`` never ran."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nova import errors, failures
from nova.clients.image_data import SeekableFile
from nova.compute.filter.guard import Guard, NoGuard
from nova.compute.guests.build_markers import BuildMarkers
from nova.compute.guests.config_drive import ConfigDrives
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.guests.starting import GuestStarter, VifPlugging
from nova.compute.guests.volumes import GuestVolumes
from nova.compute.host import HostClock
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
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
    """The image cache of this host (``nova.compute.guests.images``)."""

    def open(self) -> None:
        """Create the directory, and remove incomplete files that a kill left. Called once, at start."""

    def fetch(self, image: Image, max_gb: int | None = None) -> None: ...

    def path(self, image_id: str) -> str: ...

    def keeps(self, image_id: str, paths: Collection[str]) -> bool:
        """Return whether one of these paths is the location of this image when it is ready."""

    @property
    def sweep_interval_s(self) -> float:
        """Seconds between two sweeps, as the operator sets it: 0 means a minute, negative means never."""

    def sweep(self, in_use: Collection[str]) -> tuple[str, ...]:
        """Remove images that no guest uses; ``in_use`` comes from the driver's ``images_in_use``."""


class ImageStore(Protocol):
    """The image service, accessed with the tickets of orders (``nova.clients.image_proxy.ImageProxy``)."""

    def hold(self, tickets: Sequence[ImageTicket]) -> None:
        """Keep the tickets of an incoming order, which authorize its requests."""

    def show(self, image_id: str) -> Image:
        """Return the image service's current record. Raises image.NotFound; Unavailable, which names the service."""

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        """Return where the image's data are in Ceph. Raises image.NotFound, Unavailable, and any other refusal of the
        image service's proxy."""

    def offer(self, image_id: str, location: RbdLocation) -> None:
        """Register a Ceph location as the image's data. After Unavailable, the image service may or may not have
        accepted it; after any other error, it has not."""

    def upload(self, image_id: str, source: SeekableFile) -> int:
        """Upload the image's data. ``source``: a file, or an object with its ``read`` and ``seek``."""


@dataclass(frozen=True)
class BuildTools:
    """The dependencies of build steps.

    ``source_marks`` marks guests that left a source copy here, with the operation that kept it. ``arrived`` marks
    guests that were rebuilt here by an operation that asked whether their disks are shared. ``store``: destination of
    snapshots.
    """

    driver: Driver
    images: ImagesOnHost | None
    markers: BuildMarkers
    source_marks: BuildMarkers
    arrived: BuildMarkers
    tree: TreeOptions = TreeOptions()  # what config drives contain in addition to the guest's own data
    store: ImageStore | None = None
    host: HostName = ""
    vendor: VendorSource = field(default_factory=NoVendorData)

    events: PlugEvents = field(default_factory=lambda: PlugEvents(HostClock()))  # events from the network service
    vif_plugging: VifPlugging = VifPlugging()  # limits for guests that wait for these events

    guard: Guard = NoGuard()  # packet filters
    most_disks: int = -1  # for each guest; below 0: unlimited

    @property
    def starter(self) -> GuestStarter:
        """Starts guests, and waits for the network service if the operator enabled that."""
        return GuestStarter(self.driver, self.events, self.vif_plugging)

    @property
    def volumes(self) -> GuestVolumes:
        """Connects guests' volumes to this host and disconnects them."""
        return GuestVolumes(self.driver, self.host, self.most_disks)

    @property
    def drives(self) -> ConfigDrives:
        """Writes guests' config drives."""
        return ConfigDrives(self.driver, self.tree, self.vendor)


@dataclass
class Build:
    """A guest that is being built: the order, and the results of its steps."""

    order: BuildOrder
    tools: BuildTools
    work: Work
    permission: BatchPermission
    parent: CloneParent | None = None
    power_state: PowerState = PowerState.NOSTATE

    @property
    def uuid(self) -> str:
        """The server's UUID."""
        return self.order.server_uuid


def root_gb_of(order: BuildOrder) -> int:
    """Return the size in GiB of the ordered root disk; 0 if there is none, or if it has the size of its image."""
    return max((disk.size_gb for disk in order.disks if disk.kind == "root"), default=0)


def cache_images(tools: BuildTools, images: Iterable[Image | None], first_max_gb: int | None = None) -> None:
    """Fetch the images to this host if its driver needs them; the first is for a disk of ``first_max_gb``."""
    if not tools.driver.needs_images or tools.images is None:
        return
    for number, image in enumerate(images):
        if image is not None and image.id:  # without an id, it only describes the system on a volume
            tools.images.fetch(image, None if number else first_max_gb)


def ready_images(tools: BuildTools, order: BuildOrder) -> CloneParent | None:
    """Prepare the images of the guest's disks, and return the parent of which the root disk will be a clone; None: a
    file of the cache. Raises errors as ``nova.compute.guests.images.ImageCache.fetch``."""
    image, *others = images_of(order)
    parent = _parent_of(tools, image)
    cache_images(tools, (image if parent is None else None, *others), root_gb_of(order))
    return parent


def _parent_of(tools: BuildTools, image: Image | None) -> CloneParent | None:
    """Return the clone parent of the image; None if it cannot be cloned, for any reason, and is fetched instead."""
    clones = tools.driver.image_clones
    if clones is None or tools.store is None or image is None or not image.id:
        return None
    with failures.best_effort(LOG, "image %s is fetched instead of cloned: %s", image.id, level=logging.INFO):
        return clones.parent(image, tools.store.locations(image.id) if image.disk_format == "raw" else ())
    return None


def images_of(order: BuildOrder) -> tuple[Image | None, ...]:
    """Return the images from which a guest's disks are made, its kernel and its ramdisk. The image of a guest that
    boots from a volume only describes its origin, and is left out."""
    return (None if boots_from_volume(order) else order.image, order.kernel, order.ramdisk)


def renew_base(tools: BuildTools, order: BuildOrder) -> None:
    """Restore the base image of the guest's disks, which may have been lost on this host or truncated. Raises
    guest.BaseLost, Unavailable, HostRefused before the guest is changed."""
    users = tools.driver.image_users
    if order.image is None or not order.image.id or tools.images is None or users is None:
        return
    if not tools.images.keeps(order.image.id, users.bases(order.server_uuid)):
        return
    image = order.image
    with failures.translated((errors.NotFound, errors.Conflict, errors.Forbidden), lambda error: errors.guest.BaseLost(
            image_id=image.id, uuid=order.server_uuid, why=error.message)):
        cache_images(tools, (image,))


class BuildStep(Protocol):
    name: str

    def do(self, build: Build) -> None:
        """Do this part of the build. Idempotent; an error ends the build."""

    def undo(self, build: Build) -> None:
        """Undo all or a part of what ``do`` made. Safe if ``do`` never ran."""


class Reserve:
    """Marks the guest as half built. The mark is set first and removed last."""

    name = "reserve"

    def do(self, build: Build) -> None:
        """Set the mark, before any other step leaves something on the host."""
        build.tools.markers.set(build.order)

    def undo(self, build: Build) -> None:
        """Remove the mark, after everything else is gone."""
        build.tools.markers.clear(build.uuid)


class FetchImages:
    """Fetches image, kernel and ramdisk to the host's cache, which keeps them if the build fails. An image of which the
    root disk can be a clone is not fetched."""

    name = "images"

    def do(self, build: Build) -> None:
        """Fetch the images; does nothing if the driver needs none here. Raises errors as
        ``nova.compute.guests.images.ImageCache.fetch``."""
        build.parent = ready_images(build.tools, build.order)

    def undo(self, build: Build) -> None:
        """Do nothing: another guest may need the images."""


class MakeDisks:
    name = "disks"

    def do(self, build: Build) -> None:
        """Create the disks. Raises HostRefused if there is no space, or if the guest needs volumes and this host has
        none; guest.TooManyDisks."""
        build.tools.volumes.check(build.order)
        build.tools.driver.disks.create_disks(build.order, build.tools.images, build.parent)

    def undo(self, build: Build) -> None:
        """Remove the guest's whole directory, including its config drive."""
        build.tools.driver.disks.remove_disks(build.uuid)


class PlugInterfaces:
    name = "interfaces"

    def do(self, build: Build) -> None:
        """Plug the interfaces. Raises HostRefused if an interface cannot be plugged on this host."""
        build.tools.driver.interfaces.plug(build.order)

    def undo(self, build: Build) -> None:
        """Unplug the interfaces that the record next to the guest, or the order, names."""
        build.tools.driver.interfaces.unplug(build.uuid, build.order)


class ConnectGuestVolumes:
    name = "volumes"

    def do(self, build: Build) -> None:
        """Connect the volumes. Raises HostRefused if a volume cannot be reached from this host."""
        build.tools.volumes.connect(build.order)

    def undo(self, build: Build) -> None:
        """Disconnect the volumes: the guest is gone, and no longer uses them."""
        build.tools.volumes.disconnect(build.uuid)


class WriteConfigDrive:
    """Writes the config drive. The drive is removed with the disks; a definition that was needed to write it is removed
    immediately."""

    name = "config drive"

    def do(self, build: Build) -> None:
        """Write the drive, and write it again with device addresses if the guest needs them: they are known only after
        the guest is defined."""
        drives = build.tools.drives
        drives.write(build.order)
        drives.write_places(build.order)

    def undo(self, build: Build) -> None:
        """Undefine a guest that was defined for its drive. The drive itself is removed with the disks."""
        if build.tools.drives.needs_places(build.order):
            build.tools.driver.lifecycle.destroy(build.uuid)


class FilterPackets:
    """Applies the guest's packet filter rules before it runs."""

    name = "packet filter"

    def do(self, build: Build) -> None:
        """Apply the rules. Raises Unavailable if the rules are not in the kernel; HostRefused if they would not be
        enforced here."""
        build.tools.guard.guard(build.order)

    def undo(self, build: Build) -> None:
        """Remove the rules. Never fails; the next refresh removes leftovers."""
        build.tools.guard.drop(build.uuid)


class StartGuest:
    """Defines and starts the guest: a point of no return, so the conductor is asked first."""

    name = "start"

    def do(self, build: Build) -> None:
        """Start the guest. Until this step, nothing of the guest has run. Raises host.OrderNotGranted,
        host.OrderStopped if a newer order has the server; host.OrderCannotAsk if no conductor answers."""
        build.permission.pass_(build.uuid)
        build.work.check()
        build.power_state = build.tools.starter.new(build.order, build.work)

    def undo(self, build: Build) -> None:
        """Power the guest off immediately, and undefine it."""
        build.tools.driver.lifecycle.destroy(build.uuid)
