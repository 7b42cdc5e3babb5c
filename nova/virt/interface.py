"""Interface of hypervisor drivers: small protocols, one a part; a driver supports a feature if it has the part.

A driver knows nothing of RPC, databases or workflows. Its calls may block and are safe to repeat; every undo is safe
even if the change that it undoes never happened. ``order`` values are complete: a driver requests no more data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from nova.model.guest.consoles import ConsoleType
from nova.model.guest.guests import DevicePlace
from nova.model.guest.orders import (
    BuildOrder,
    DiskSnapshot,
    GuestArrival,
    GuestOnSource,
    GuestState,
    InterfaceOrder,
    LiveOrder,
    MoveOrder,
    RescueOrder,
    SnapshotOrder,
    VolumeOrder,
)
from nova.model.host.hosts import HostUptime, Node
from nova.model.numa.topology import TopologyClaim
from nova.model.server.diagnostics import Diagnostics
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState
from nova.model.volumes import Connector, VolumeDisk
from nova.virt.direct_snapshots import DirectSnapshots
from nova.virt.image_clones import CloneParent, ImageClones
from nova.virt.volume_interface import VolumeJobs

PowerListener = Callable[[GuestState], None]


class LocalImages(Protocol):
    """Paths of a build's images on this host (checked files in the image cache), by image id."""

    def path(self, image_id: str) -> str:
        """Return the cached file of an image that was fetched. Raises KeyError if it was not."""


class Disks(Protocol):
    """Create and remove guests' disks."""

    def create_disks(self, order: BuildOrder, images: LocalImages | None, parent: CloneParent | None = None) -> None:
        """Create root, ephemeral and swap disks. ``parent``: of ``image_clones``. Raises HostRefused without space."""

    def remove_disks(self, server_uuid: str, keep: frozenset[str] = frozenset(), spare_pooled: bool = False) -> None:
        """Remove the guest's folder and the snapshots kept of it. ``keep``: kinds of disks that stay (root, ephemeral,
        swap; volume: the volumes' records), with the folder; ``create_disks`` does not change them.
        ``spare_pooled``: disks on shared storage stay."""

    def pooled(self, order: BuildOrder) -> bool:
        """True if the guest's disks exist on storage that all hosts share, even if this host has no record of it."""

    def leave_disks(self, server_uuid: str) -> None:
        """Remove the local files of a guest whose disks another host now has, if this host can tell which are local.
        Does nothing if the disks are in a folder that hosts may share."""

    def drop_images(self, names: Sequence[str]) -> None:
        """Remove unused copies of these images, made for several guests. ``names``: of the image cache's files."""

    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        """Write ``files`` (path -> content) as the guest's config drive, which ``remove_disks`` removes."""


class Interfaces(Protocol):
    """The host side of guests' interfaces."""

    def plug(self, order: BuildOrder) -> None:
        """Prepare bridges and taps, so that the guest's first packet gets through."""

    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        """Remove the guest's interfaces from the host. ``order`` None: use only the record kept with the guest."""


class Lifecycle(Protocol):
    """Define, start, stop and undefine guests."""

    def start_new(self, order: BuildOrder) -> PowerState:
        """Define the guest from the order (or redefine it) and start it."""

    def define(self, order: BuildOrder) -> PowerState:
        """Define the guest from the order (or redefine it) and leave it off. Does nothing if it runs."""

    def destroy(self, server_uuid: str) -> None:
        """Stop the guest immediately and undefine it, with its saved memory; the disks stay."""

    def start(self, server_uuid: str) -> PowerState:
        """Start a defined guest; does nothing if it runs. Raises NotFound if it is not defined."""

    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        """Ask the guest to stop, wait, then power it off. ``timeout_s`` 0 powers off immediately."""

    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        """Ask the guest to reboot; False if it did not in time (the caller then does a hard reboot)."""

    def power_state(self, server_uuid: str) -> PowerState | None:
        """Return the guest's power state; None if it is not defined."""


class Consoles(Protocol):
    """Console output."""

    def console_output(self, server_uuid: str, lines: int | None) -> str:
        """Return the last lines (None: all) of the serial console's log, rotated part included."""


class ConsoleEndpoint(NamedTuple):
    """The address at which the hypervisor serves a console. ``host`` None: the address in this host's configuration.
    The other fields are as in :class:`nova.model.guest.consoles.ConsoleAddress`."""

    host: str | None = None
    port: int | None = None
    tls_port: int | None = None
    socket_path: str | None = None
    internal_access_path: str | None = None


class RemoteConsoles(Protocol):
    """Remote access to guests' screens and serial ports."""

    def console_of(self, server_uuid: str, type: ConsoleType) -> ConsoleEndpoint:
        """Return the current address of this guest's console. Raises NotFound if there is no such guest, Conflict if it
        does not run or has no such console, NotSupported if the hypervisor has no console of the type."""


class DevicePlaces(Protocol):
    """The addresses of devices inside a guest."""

    def device_places(self, server_uuid: str) -> Mapping[str, DevicePlace]:
        """Return the device addresses of a defined guest's interfaces, by MAC address in lower case; interfaces with
        unknown addresses are omitted. Raises NotFound."""


class Diagnosis(Protocol):
    """Resource usage counters of a guest."""

    def diagnostics(self, server_uuid: str) -> Diagnostics:
        """Return the diagnostics of a guest in any power state. Raises NotFound if it is not defined."""


class Uptime(Protocol):
    def uptime(self) -> HostUptime:
        """Return the uptime of the host."""


class HostPower(Protocol):
    def change_host_power(self, action: str) -> str:
        """Apply ``action`` (startup, shutdown, reboot, maintenance_on, maintenance_off) to the host itself. Returns the
        action, or on_maintenance or off_maintenance. Raises NotSupported for an action that the driver does not
        have."""


class ImageUsers(Protocol):
    """Guests' disks that are backed by images in this host's cache."""

    def images_in_use(self) -> frozenset[str]:
        """Return the ids of the images whose cached files the guests of this host need."""

    def bases(self, server_uuid: str) -> frozenset[str]:
        """Return the paths of the guest disks' backing files."""


class Pausing(Protocol):
    """Pause guests in memory."""

    def pause(self, server_uuid: str) -> PowerState:
        """Pause the guest; does nothing if it is paused. Raises NotFound; Conflict if it is off."""

    def unpause(self, server_uuid: str) -> PowerState:
        """Resume a paused guest; does nothing if it runs."""


class Suspending(Protocol):
    """Suspend guests to disk: save their memory on the host."""

    def suspend(self, server_uuid: str) -> PowerState:
        """Save the guest's memory and stop it; does nothing if it is suspended."""

    def resume(self, order: BuildOrder) -> PowerState:
        """Resume the guest from its saved memory (taps and bridges may have to be created again); does nothing if it
        runs. Boots the guest if its saved memory is gone."""


class HeldStarts(Pausing, Protocol):
    """Start guests held before the first instruction, with their taps in place; ``unpause`` lets them run."""

    def start_held(self, server_uuid: str) -> PowerState:
        """Start a defined guest that is off, and leave it PAUSED; do not change another guest. Raises NotFound."""

    def resume_held(self, order: BuildOrder) -> PowerState:
        """Resume the guest as ``Suspending.resume`` does, but leave it held."""


class HotPlug(Protocol):
    """Attach and detach interfaces, in the running guest, if it runs, and in its persistent definition."""

    def attach_interface(self, order: InterfaceOrder) -> PowerState:
        """Attach the interface and prepare its host side; ``order.build`` is the guest with it. Does nothing if it is
        attached. Raises HostRefused; a failed attach is undone."""

    def detach_interface(self, order: InterfaceOrder, stopped: Callable[[], bool]) -> PowerState:
        """Ask the guest to release the interface, repeatedly, then remove its host side; ``order.build`` is the guest
        without it. Does nothing if it is gone. ``stopped`` is polled meanwhile; true cancels. Raises Conflict if the
        guest did not release it in time and still has it."""


class Volumes(VolumeJobs, Protocol):
    """Disks on volumes of the volume service. ``connect`` attaches the volumes of a build's ``order.volumes`` to the
    host before the guest is defined; ``disconnect`` detaches them after it is gone."""

    def connector(self) -> Connector:
        """Return this host's connector properties for a volume's back end."""

    def connect(self, server_uuid: str, volumes: Sequence[VolumeDisk]) -> None:
        """Connect the volumes to this host with the orders' connection data, or, where an order has none, as recorded
        before. Does nothing if they are connected. Raises HostRefused; a failed connect is undone."""

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        """Disconnect all volumes that ``connect`` recorded for the guest, except those in ``keep``. Safe if there are
        none."""

    def attach_volume(self, order: VolumeOrder) -> PowerState:
        """Connect the volume and attach it to the running guest and its persistent definition; ``order.build`` is the
        guest with it. Does nothing if it is attached. Raises HostRefused; a failed attach is undone."""

    def detach_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        """Ask the guest to release the volume, repeatedly, then disconnect it; ``order.build`` is the guest without it.
        Does nothing if it is gone. ``stopped`` is polled meanwhile; true cancels. Raises Conflict if the guest did not
        release it in time and still has it."""

    def given_up(self, server_uuid: str) -> frozenset[str]:
        """Return volumes that are in the guest's persistent definition but not in the running guest: it released them
        late, after their detach had failed. Empty if the guest does not run."""

    def extend_volume(self, order: VolumeOrder) -> PowerState:
        """Make the host and the guest see the volume's new size, ``order.disk.device.size_gb``."""


class Rescuing(Protocol):
    """Boot a guest into a rescue system, with the guest's own disks attached."""

    def rescue(self, order: RescueOrder, images: LocalImages | None, files: Mapping[str, bytes] | None) -> PowerState:
        """Boot a guest that is off into its rescue system. ``files``: of its config drive."""

    def unrescue(self, order: BuildOrder) -> PowerState:
        """Boot from the guest's own disks again and remove the rescue files. Safe if the guest was not rescued."""


class Packed(Protocol):
    """Guests' claims on NUMA cells and devices of the host."""

    def packings(self, node: str = "", source_copies: bool = False) -> Mapping[str, TopologyClaim]:
        """Return the claims of the node's guests ("": of all nodes), by uuid, without guests that hold none.

        A guest's claim is as in its newest order, from before its first disk until its last disk is gone, also across
        restarts. ``source_copies``: the claims of guests that left, kept until their move is confirmed."""

    def packing(self, server_uuid: str) -> TopologyClaim | None:
        """Return the claim of one guest on this host."""


class KeptOrders(Protocol):
    """Guests' newest orders, stored with them so that they survive restarts."""

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        """Return the guest's newest order, without the data of the first boot (password, user data, files). None if
        none is stored here or it cannot be read."""


class Agent(Protocol):
    """Actions that need an agent inside the guest."""

    def set_password(self, server_uuid: str, user: str, password: str) -> None:
        """Set the user's password. Raises Conflict if the guest runs no agent."""


class CrashDumps(Protocol):
    def crash(self, server_uuid: str) -> None:
        """Send a non-maskable interrupt. Raises Conflict if the guest does not run."""


class Snapshots(Protocol):
    """Snapshots of a guest's root disk, as a complete file without a backing file."""

    def take_snapshot(self, order: SnapshotOrder) -> DiskSnapshot:
        """Take a snapshot of a guest in any power state; a running guest continues. Raises Conflict if it must be
        quiesced and cannot be. Returns the earlier snapshot if there is one for this ``image_id``."""

    def snapshot_path(self, server_uuid: str, image_id: str) -> str | None:
        """Return the snapshot's file; None if there is none."""

    def drop_snapshot(self, server_uuid: str, image_id: str, given: bool = False) -> None:
        """Remove the snapshot. Safe if there is none. ``given``: the image service has the data, and its copy stays."""


class ColdMoves(Protocol):
    """Cold migration: a guest that is off leaves or arrives. ``Driver.guests`` does not list source copies."""

    def leave(self, server_uuid: str) -> GuestOnSource:
        """Undefine the guest, which is off, and rename its disks to a source copy, so that this host can create the
        server again. Returns the location from which its disks can be read until it is forgotten or restored. A
        repeated call returns the same. Raises NotFound if neither the guest nor its source copy is here."""

    def fetch(self, order: MoveOrder, images: LocalImages | None) -> None:
        """Fetch the disks from ``order.source``, or (None) from the source copy on this host, which does not change;
        then grow them to the order's sizes, and create new ones. Raises HostRefused."""

    def restore_source(self, server_uuid: str) -> bool:
        """Turn the source copy back into the guest; remove disks that ``fetch`` created. False if there was none."""

    def forget(self, server_uuid: str) -> None:
        """Remove the source copy. Safe if there is none; a guest that is on this host now stays."""

    def kept_sources(self) -> frozenset[str]:
        """Return the uuids of all source copies."""


ProgressListener = Callable[[int, MigrationProgress], None]  # percent, amounts


class LiveMoves(Protocol):
    """Live migration: a running or paused guest moves from this host to another, or arrives."""

    def describe(self, server_uuid: str) -> GuestOnSource:
        """Describe the guest for the destination. Raises NotFound, or Conflict if it is off."""

    def prepare_arrival(self, order: MoveOrder, images: LocalImages | None) -> GuestArrival:
        """Compare processors, check the storage, claim capacity, plug interfaces and connect volumes; repeatable.
        Raises HostRefused with the mismatch, after an undo of the steps already done."""

    def migrate(self, order: LiveOrder, listener: ProgressListener, stopped: Callable[[], bool]) -> None:
        """Send the guest, and return when it runs on the destination. Any error means that it still runs here.
        True from ``stopped`` cancels. A repeated call joins a migration under way, and returns after it has left."""

    def abort(self, server_uuid: str) -> None:
        """Abort the migration: ``migrate`` then ends with an error. Raises Conflict if none is under way."""

    def force(self, server_uuid: str) -> None:
        """Complete the migration: by post-copy if permitted, else by a pause. Raises Conflict if none is under way."""

    def finish_arrival(self, order: MoveOrder) -> PowerState:
        """Take over the arrived guest. Raises NotFound if it is not here, Conflict while it still arrives."""


class Driver(Protocol):
    """A host's driver and its parts; a part is None if unsupported. Drivers inherit from it and set their parts."""

    #: Whether images must be cached on this host before ``create_disks`` (False for the fake driver).
    needs_images: bool

    disks: Disks
    interfaces: Interfaces
    lifecycle: Lifecycle
    pausing: Pausing | None = None
    suspending: Suspending | None = None
    held_starts: HeldStarts | None = None
    hot_plug: HotPlug | None = None
    volumes: Volumes | None = None
    rescuing: Rescuing | None = None
    agent: Agent | None = None
    crash_dumps: CrashDumps | None = None
    snapshots: Snapshots | None = None
    cold_moves: ColdMoves | None = None
    live_moves: LiveMoves | None = None
    consoles: Consoles | None = None
    remote_consoles: RemoteConsoles | None = None
    diagnosis: Diagnosis | None = None
    device_places: DevicePlaces | None = None
    packed: Packed | None = None
    kept_orders: KeptOrders | None = None
    image_users: ImageUsers | None = None
    image_clones: ImageClones | None = None
    direct_snapshots: DirectSnapshots | None = None
    host_uptime: Uptime | None = None
    host_power: HostPower | None = None

    def connect(self) -> None:
        """Connect to the hypervisor, once, at start. Raises Unavailable, which names the hypervisor and the remedy."""

    def check_alive(self) -> None:
        """Raise Unavailable if the hypervisor does not answer now."""

    def nodes(self) -> tuple[Node, ...]:
        """Return the host's nodes with their complete inventory; nova-compute applies reservations and ratios."""

    def guests(self) -> tuple[GuestState, ...]:
        """Return every nova guest that the hypervisor or a disk directory has, with its power state."""

    def on_power_change(self, listener: PowerListener) -> None:
        """Call ``listener`` on every power state change, whether nova or the guest caused it. At most one listener."""

    def close(self) -> None:
        """Disconnect from the hypervisor; guests continue to run."""
