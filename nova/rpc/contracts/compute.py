"""Orders for one compute host."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName
from nova.model.guest.consoles import ConsoleAddress, ConsoleType
from nova.model.guest.guests import DevicePlace
from nova.model.guest.orders import (
    BuildOrder,
    ConsoleOutput,
    GuestOrder,
    InterfaceOrder,
    LiveOrder,
    MoveOrder,
    NetworkEvent,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
    SnapshotOrder,
    VolumeOrder,
    VolumeSnapshotOrder,
)
from nova.model.guest.strangers import KeptGuest
from nova.model.host.aggregates import CachedImage
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.server.diagnostics import Diagnostics
from nova.model.volumes import Connector
from nova.rpc.interface import Contract, Timeout, call, cast


class ComputeRPC(Contract):
    """Each order carries its fence: a host refuses what is older than what it has seen, or too late to start. An order
    that may need an image has tickets for it (since 1.4), good for this host alone. A guest that runs comes through
    a gate (since 1.5)."""

    topic, version, addressed_by = "compute", "1.6", "host"
    with_hosts = True

    @call(timeout=Timeout.LONG, sensitive=True)
    def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]:
        """Create and start the guests. Legal in SPAWNING only; repeating it is harmless."""

    @call(timeout=Timeout.LONG)
    def destroy_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Leave nothing of the guests: domain, disks, taps. Safe when they never were; repeating it is harmless."""

    @call(timeout=Timeout.LONG)
    def start_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Power on. Legal in POWERING_ON only."""

    @call(timeout=Timeout.LONG)
    def stop_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Ask the guest to shut down; after the order's timeout, power off."""

    @call(timeout=Timeout.LONG)
    def reboot_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Soft: ask the guest, and fall back to hard. Hard: define anew from the order and start."""

    # in a server's life, on its host

    @call(timeout=Timeout.LONG, since="1.2")
    def pause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Stop the processors; the guest stays in memory. Nothing when it is paused."""

    @call(timeout=Timeout.LONG, since="1.2")
    def unpause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Let the processors go on. Nothing when it runs."""

    @call(timeout=Timeout.LONG, since="1.2")
    def suspend_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Save memory and devices to a disk of the host, and stop. Nothing when it was."""

    @call(timeout=Timeout.LONG, since="1.2")
    def resume_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Go on from where it was suspended. Nothing when it runs."""

    @call(timeout=Timeout.LONG, sensitive=True, since="1.2")
    def rescue_guests(self, host: HostName, orders: tuple[RescueOrder, ...]) -> tuple[Outcome, ...]:
        """Stop the guest and boot it from the rescue image, its own disks beside it."""

    @call(timeout=Timeout.LONG, since="1.2")
    def unrescue_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Boot from its own disks again; the rescue disk goes. Safe when it was never rescued."""

    @call(timeout=Timeout.LONG, sensitive=True, since="1.2")
    def rebuild_guests(self, host: HostName, orders: tuple[RebuildOrder, ...]) -> tuple[Outcome, ...]:
        """Make the guest anew: what it had on its disks is gone, except the parts that the order keeps."""

    @call(sensitive=True, since="1.2", timeout=Timeout.LONG)
    def set_passwords(self, host: HostName, orders: tuple[PasswordOrder, ...]) -> tuple[Outcome, ...]:
        """Through the guest's agent. Conflict when there is none; NotSupported by the driver."""

    @call(timeout=Timeout.LONG, since="1.2")
    def crash_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Send a non-maskable interrupt: a guest that is set up for it dumps its memory and reboots."""

    @call(timeout=Timeout.LONG, since="1.2")
    def snapshot_guests(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Keep the root disk as it is at this moment; ``outcome.snapshot`` says how large it is. A repeated order finds
        what it kept."""

    @call(timeout=Timeout.LONG, since="1.2")
    def upload_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Send what was kept to the image service, then drop it. Nothing when the image has its data already."""

    @call(timeout=Timeout.LONG, since="1.2")
    def drop_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Forget what was kept. Safe when there is nothing."""

    @call(timeout=Timeout.LONG, since="1.3")
    def attach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        """Plug an interface in, while the guest runs or for its next start. Nothing when it is plugged in. HostRefused:
        the guest or this host can't have it."""

    @call(timeout=Timeout.LONG, since="1.3")
    def detach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        """Take an interface out. Nothing when it is not plugged in. Conflict: a running guest does not let it go."""

    @call(reads=True, timeout=Timeout.SHORT, since="1.6")
    def volume_connector(self, host: HostName) -> Connector:
        """What the host says of itself to a volume's back end. NotSupported: its hypervisor has no volumes."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def attach_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Connect a volume and plug it in, while the guest runs or for its next start. Nothing when it is plugged in.
        HostRefused: the guest or this host can't have it."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def detach_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Take a volume out and disconnect it. Nothing when it is not there. Conflict: a running guest does not let it
        go."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def extend_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Let guests see that a volume has grown."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def swap_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Copy a volume of a running guest to the order's ``successor``, which then is the guest's disk by the same
        name. Nothing when it is. Any error: the guest may have either; ``unswap_volumes`` tells."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def unswap_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Stop such a copy, and leave nothing of it: the guest has the volume that it had. Conflict: its disk is the
        ``successor`` already, and stays so."""

    @call(timeout=Timeout.LONG, since="1.6")
    def snapshot_volumes(self, host: HostName, orders: tuple[VolumeSnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Have what guests write to a volume that is a file go to a new file, which is there. Nothing when it does."""

    @call(timeout=Timeout.LONG, since="1.6")
    def merge_volume_snapshots(self, host: HostName, orders: tuple[VolumeSnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Take a file out of a volume's files, after its data are in another file. Nothing when it is out."""

    @call(since="1.3", timeout=Timeout.SHORT)
    def refresh_firewall(self, host: HostName) -> None:
        """What may reach this host's guests changed: ask for it whole (``ConductorHostRPC.host_firewall``) and apply
        it, all at once; answered when that is done. Many of them wait for one asking."""

    @cast(since="1.3")
    def network_events(self, host: HostName, events: tuple[NetworkEvent, ...]) -> None:
        """The network service finished something for a guest here: whoever waits for it goes on. An early event is
        kept for a while; a lost event ends in the waiter's time-out."""

    # from one host to another, while it is off

    @call(timeout=Timeout.LONG, since="1.2")
    def leave_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Stop the guest and put it aside, with its disks, so that the same server can be made here again; offer its
        disks to its new host (``outcome.source``). Repeated: the same offer."""

    @call(timeout=Timeout.LONG, since="1.2")
    def fetch_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Copy the disks that the source offers (or take them from what was put aside here), and let them grow to the
        order's sizes. HostRefused: no space, or a disk would have to shrink."""

    @call(timeout=Timeout.LONG, since="1.2")
    def finish_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Plug, define and (if the order says so) start a guest whose disks are here."""

    @call(timeout=Timeout.LONG, since="1.2")
    def return_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Take back what was put aside, and start it if the order says so. Safe when nothing was put aside."""

    @call(timeout=Timeout.LONG, since="1.2")
    def forget_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Remove what was put aside, and nothing else: the server may be on this host again."""

    # from one host to another, while it runs

    @call(timeout=Timeout.LONG, since="1.2")
    def describe_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """What the destination must know of a running guest (``outcome.source``)."""

    @call(timeout=Timeout.LONG, since="1.2")
    def prepare_arrivals(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Compare processors, make room, plug; ``outcome.arrival`` says where to send it. HostRefused names what does
        not fit: the processor's missing flags, the space."""

    @call(timeout=Timeout.LONG, since="1.2")
    def migrate_guests(self, host: HostName, orders: tuple[LiveOrder, ...]) -> tuple[Outcome, ...]:
        """Send the running guest. Ok: it runs there. Any error: it runs here. A repeated order joins the running
        order; if the guest is not here any more, it is ok again."""

    @call(timeout=Timeout.LONG, since="1.2")
    def land_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Make a guest that has arrived this host's own: its definition and records. NotFound when it isn't here."""

    @call(since="1.2")
    def abort_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        """Stop sending; the order that does it ends with an error. Conflict when none is under way."""

    @call(since="1.2")
    def force_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        """Bring it to an end: post-copy where it may, else a pause. Conflict when none is under way."""

    @call()
    def get_console_output(self, host: HostName, server_uuid: str, length: int | None) -> ConsoleOutput:
        """The last lines of the console log. NotFound when there is no guest; Conflict when it has no log."""

    @call(since="1.2", timeout=Timeout.SHORT)  # a user looks at an empty page meanwhile; the proxy waits little longer
    def find_console(self, host: HostName, server_uuid: str, type: ConsoleType) -> ConsoleAddress:
        """Where the guest's console is, now. NotFound: no guest. Conflict: it does not run, or was made without such a
        console. Invalid: this host's configuration has no consoles of the type. NotSupported by the driver."""

    @call(since="1.1")
    def get_diagnostics(self, host: HostName, server_uuid: str) -> Diagnostics:
        """What the hypervisor counts of a guest. NotFound when there is none; NotSupported by the driver."""

    @call(since="1.3", timeout=Timeout.SHORT)
    def device_places(self, host: HostName, server_uuid: str) -> Mapping[str, DevicePlace]:
        """Where the guest sees its interfaces, by MAC address. NotFound when there is none."""

    @call(timeout=Timeout.SHORT)
    def get_host_uptime(self, host: HostName) -> str:
        """The text of the host's ``uptime`` line. Asked by conductors of older releases alone: it is in inventories."""

    @call(since="1.1")
    def change_host_power(self, host: HostName, action: str) -> str:
        """startup, shutdown, reboot, maintenance_on or maintenance_off; the driver's word for what became of the host.
        NotSupported by most drivers."""

    @call(timeout=Timeout.LONG, since="1.1")
    def cache_images(self, host: HostName, images: tuple[Image, ...],
                     tickets: tuple[ImageTicket, ...] = ()) -> tuple[CachedImage, ...]:
        """Fetch the images that are not here yet, so that a guest need not wait. Repeating it is harmless. ``tickets``
        (since 1.4): for these images."""

    @cast(since="1.2")
    def look_for_debts(self, host: HostName) -> None:
        """The host has pending cleanups, and its last heartbeat did not ask for them: it asks soon. Lost, it learns
        of it by the next heartbeat that asks."""

    @cast(since="1.6")
    def look_for_strangers(self, host: HostName) -> None:
        """Look at once for what no record explains, and ask what of it is to be removed. Lost, it is done later."""

    @call(timeout=Timeout.SHORT, since="1.6")
    def kept_guest(self, host: HostName, server_uuid: str) -> KeptGuest:
        """What the host keeps of a guest that the conductors may know nothing of. NotFound: it has none, or no order of
        it. NotSupported by drivers that keep no orders."""

    @call(timeout=Timeout.SHORT)
    def ping(self, host: HostName) -> str:
        """A round trip over the bus; the answer is the host's own name."""
