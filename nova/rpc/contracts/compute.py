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
from nova.model.guest.orphans import StoredGuest
from nova.model.host.aggregates import CachedImage
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.server.diagnostics import Diagnostics
from nova.model.volumes import Connector
from nova.rpc.interface import Contract, Timeout, call, cast


class ComputeRPC(Contract):
    """Orders for the guests of a host. Each order carries its fence: a host refuses an order that is older than one it
    has seen, or too late to start. An order that may need an image has tickets for it (since 1.4), valid for this host
    only. A live migration arrives through an authenticated listener (since 1.5)."""

    topic, version, addressed_by = "compute", "1.6", "host"
    with_hosts = True

    @call(timeout=Timeout.LONG, sensitive=True)
    def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]:
        """Create and start the guests. Valid in SPAWNING only. Idempotent."""

    @call(timeout=Timeout.LONG)
    def destroy_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Remove the guests completely: domain, disks, taps. Safe if they never existed. Idempotent."""

    @call(timeout=Timeout.LONG)
    def start_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Power on the guests. Valid in POWERING_ON only."""

    @call(timeout=Timeout.LONG)
    def stop_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Ask the guests to shut down; power them off after the order's timeout."""

    @call(timeout=Timeout.LONG)
    def reboot_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Reboot the guests. Soft: ask the guest, and fall back to hard. Hard: define it again from the order and start
        it."""

    # lifecycle of a server on its host

    @call(timeout=Timeout.LONG, since="1.2")
    def pause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Pause the guests' processors; memory stays allocated. Has no effect on a paused guest."""

    @call(timeout=Timeout.LONG, since="1.2")
    def unpause_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Resume the guests' processors. Has no effect on a running guest."""

    @call(timeout=Timeout.LONG, since="1.2")
    def suspend_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Save memory and devices to a disk of the host, and stop the guest. Has no effect on a suspended guest."""

    @call(timeout=Timeout.LONG, since="1.2")
    def resume_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Resume suspended guests. Has no effect on a running guest."""

    @call(timeout=Timeout.LONG, sensitive=True, since="1.2")
    def rescue_guests(self, host: HostName, orders: tuple[RescueOrder, ...]) -> tuple[Outcome, ...]:
        """Stop the guest and boot it from the rescue image, with its own disks attached as well."""

    @call(timeout=Timeout.LONG, since="1.2")
    def unrescue_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Boot from the guest's own disks again, and remove the rescue disk. Safe if it was never rescued."""

    @call(timeout=Timeout.LONG, sensitive=True, since="1.2")
    def rebuild_guests(self, host: HostName, orders: tuple[RebuildOrder, ...]) -> tuple[Outcome, ...]:
        """Rebuild the guest: the contents of its disks are lost, except the parts that the order keeps."""

    @call(sensitive=True, since="1.2", timeout=Timeout.LONG)
    def set_passwords(self, host: HostName, orders: tuple[PasswordOrder, ...]) -> tuple[Outcome, ...]:
        """Set passwords through the guest's agent. Raises Conflict if it has no agent; NotSupported by the driver."""

    @call(timeout=Timeout.LONG, since="1.2")
    def crash_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Send a non-maskable interrupt: a guest that is configured for it dumps its memory and reboots."""

    @call(timeout=Timeout.LONG, since="1.2")
    def snapshot_guests(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Save the current contents of the root disk; ``outcome.snapshot`` has its size. A repeated order finds the
        saved data."""

    @call(timeout=Timeout.LONG, since="1.2")
    def upload_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Upload saved snapshots to the image service, then delete them. Has no effect if the image has its data
        already."""

    @call(timeout=Timeout.LONG, since="1.2")
    def drop_snapshots(self, host: HostName, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Delete saved snapshots. Safe if there are none."""

    @call(timeout=Timeout.LONG, since="1.3")
    def attach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        """Plug in an interface, while the guest runs or for its next start. Has no effect if it is plugged in. Raises
        HostRefused if the guest or this host cannot have it."""

    @call(timeout=Timeout.LONG, since="1.3")
    def detach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        """Unplug an interface. Has no effect if it is not plugged in. Raises Conflict if a running guest does not
        release it."""

    @call(reads=True, timeout=Timeout.SHORT, since="1.6")
    def volume_connector(self, host: HostName) -> Connector:
        """Return the host's connector properties for a volume's back end. Raises NotSupported if its hypervisor has no
        volumes."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def attach_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Connect a volume and attach it, while the guest runs or for its next start. Has no effect if it is attached.
        Raises HostRefused if the guest or this host cannot have it."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def detach_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Detach a volume and disconnect it. Has no effect if it is not attached. Raises Conflict if a running guest
        does not release it."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def extend_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Make the new size of a volume visible to guests."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def swap_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Copy a volume of a running guest to the order's ``successor``, which then replaces it under the same device
        name. Has no effect if it is replaced already. After any error the guest may have either; ``unswap_volumes``
        reports which."""

    @call(timeout=Timeout.LONG, since="1.6", sensitive=True)
    def unswap_volumes(self, host: HostName, orders: tuple[VolumeOrder, ...]) -> tuple[Outcome, ...]:
        """Cancel such a copy completely: the guest keeps its original volume. Raises Conflict if its disk is the
        ``successor`` already, which it then stays."""

    @call(timeout=Timeout.LONG, since="1.6")
    def snapshot_volumes(self, host: HostName, orders: tuple[VolumeSnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Redirect guests' writes to a file-backed volume to a new file, which exists. Has no effect if it is
        redirected already."""

    @call(timeout=Timeout.LONG, since="1.6")
    def merge_volume_snapshots(self, host: HostName, orders: tuple[VolumeSnapshotOrder, ...]) -> tuple[Outcome, ...]:
        """Remove a file from a volume's chain, after its data are in another file. Has no effect if it is not in the
        chain."""

    @call(since="1.3", timeout=Timeout.SHORT)
    def refresh_firewall(self, host: HostName) -> None:
        """Refresh the filter rules of this host's guests: fetch all of them (``ConductorHostRPC.host_firewall``) and
        apply them in one step. Returns after that. Concurrent calls share one fetch."""

    @cast(since="1.3")
    def network_events(self, host: HostName, events: tuple[NetworkEvent, ...]) -> None:
        """Report completed work of the network service for guests on this host, to operations that wait for it. An
        early event is kept for a while; a lost event ends in the waiter's timeout."""

    # cold moves from one host to another

    @call(timeout=Timeout.LONG, since="1.2")
    def leave_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Stop the guest and keep it with its disks, so that the same server can be created here again. Offer its disks
        to its new host (``outcome.source``). A repeated order returns the same offer."""

    @call(timeout=Timeout.LONG, since="1.2")
    def fetch_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Copy the disks that the source offers (or take them from the guest that was kept here), and grow them to the
        order's sizes. Raises HostRefused for lack of space, or if a disk would have to shrink."""

    @call(timeout=Timeout.LONG, since="1.2")
    def finish_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Plug, define and (if the order requires it) start a guest whose disks are on this host."""

    @call(timeout=Timeout.LONG, since="1.2")
    def return_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Restore a kept guest, and start it if the order requires it. Safe if no guest was kept."""

    @call(timeout=Timeout.LONG, since="1.2")
    def forget_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Delete only the kept guest: the server may be on this host again."""

    # live migrations from one host to another

    @call(timeout=Timeout.LONG, since="1.2")
    def describe_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Return the properties of a running guest that the destination needs (``outcome.source``)."""

    @call(timeout=Timeout.LONG, since="1.2")
    def prepare_arrivals(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Compare processors, reserve space, plug interfaces; ``outcome.arrival`` has the destination's address. Raises
        HostRefused, which names the missing processor flags or space."""

    @call(timeout=Timeout.LONG, since="1.2")
    def migrate_guests(self, host: HostName, orders: tuple[LiveOrder, ...]) -> tuple[Outcome, ...]:
        """Send the running guest. Ok: it runs at the destination. Any error: it runs here. A repeated order joins the
        running order; if the guest is not here any more, the result is ok again."""

    @call(timeout=Timeout.LONG, since="1.2")
    def land_guests(self, host: HostName, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        """Register an arrived guest on this host: its definition and records. Raises NotFound if it is not here."""

    @call(since="1.2")
    def abort_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        """Stop sending; the order that sends ends with an error. Raises Conflict if no migration is in progress."""

    @call(since="1.2")
    def force_migration(self, host: HostName, server_uuid: str, epoch: int) -> None:
        """Force completion: with post-copy if allowed, else with a pause. Raises Conflict if no migration is in
        progress."""

    @call()
    def get_console_output(self, host: HostName, server_uuid: str, length: int | None) -> ConsoleOutput:
        """Return the last lines of the console log. Raises NotFound without a guest, Conflict if it has no log."""

    @call(since="1.2", timeout=Timeout.SHORT)  # a user sees an empty page meanwhile; the proxy waits little longer
    def find_console(self, host: HostName, server_uuid: str, type: ConsoleType) -> ConsoleAddress:
        """Return the current address of the guest's console. Raises NotFound without a guest, and Conflict if
        it does not run or has no such console. Raises Invalid if this host's configuration has no consoles of the type,
        and NotSupported by the driver."""

    @call(since="1.1")
    def get_diagnostics(self, host: HostName, server_uuid: str) -> Diagnostics:
        """Return the hypervisor's counters for a guest. Raises NotFound if there is none; NotSupported by the
        driver."""

    @call(since="1.3", timeout=Timeout.SHORT)
    def device_places(self, host: HostName, server_uuid: str) -> Mapping[str, DevicePlace]:
        """Return the addresses of the guest's interfaces as the guest sees them, by MAC address. Raises NotFound
        without such a guest."""

    @call(timeout=Timeout.SHORT)
    def get_host_uptime(self, host: HostName) -> str:
        """Return the text of the host's ``uptime`` line. Only conductors of older releases call it: inventories contain
        it."""

    @call(since="1.1")
    def change_host_power(self, host: HostName, action: str) -> str:
        """Run a power action and return the driver's result text. ``action``: startup, shutdown, reboot, maintenance_on
        or maintenance_off. Raises NotSupported with most drivers."""

    @call(timeout=Timeout.LONG, since="1.1")
    def cache_images(self, host: HostName, images: tuple[Image, ...],
                     tickets: tuple[ImageTicket, ...] = ()) -> tuple[CachedImage, ...]:
        """Fetch images that are not cached yet, so that guests need not wait. Idempotent. ``tickets`` (since 1.4): for
        these images."""

    @cast(since="1.2")
    def look_for_debts(self, host: HostName) -> None:
        """Report that the host has pending cleanups which its last heartbeat did not ask for: it asks soon. If the
        message is lost, the next heartbeat that asks returns them."""

    @cast(since="1.6")
    def look_for_strangers(self, host: HostName) -> None:
        """Look immediately for orphans, and ask which of them to remove. If the message is lost, this happens later."""

    @call(timeout=Timeout.SHORT, since="1.6")
    def kept_guest(self, host: HostName, server_uuid: str) -> StoredGuest:
        """Return the host's data of a guest that the conductors may not know. Raises NotFound if it has no guest, or no
        order of it. NotSupported by drivers that keep no orders."""

    @call(timeout=Timeout.SHORT)
    def ping(self, host: HostName) -> str:
        """Test the connection over the bus. Returns the host's own name."""
