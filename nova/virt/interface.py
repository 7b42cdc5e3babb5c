"""What a driver can do, as small protocols, each kept by a part of it: "supports X" is "has a part for X".

A driver knows nothing of RPC, databases or workflows. Its calls may block; they are safe to repeat; every undo is safe
when what it undoes never happened. ``order`` values are whole: a driver asks nobody for more.
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
from nova.model.numa.topology import Packing
from nova.model.server.diagnostics import Diagnostics
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState
from nova.model.volumes import Connector, VolumeDisk
from nova.virt.direct_snapshots import DirectSnapshots
from nova.virt.image_clones import CloneParent, ImageClones
from nova.virt.volume_interface import VolumeJobs

PowerListener = Callable[[GuestState], None]


class LocalImages(Protocol):
    """Where the images of a build lie on this host (paths of checked files in the cache), by image id."""

    def path(self, image_id: str) -> str:
        """The cached file of an image that was fetched; KeyError when it was not."""


class Disks(Protocol):
    """Guests' disks made and unmade."""

    def create_disks(self, order: BuildOrder, images: LocalImages | None, parent: CloneParent | None = None) -> None:
        """Root, ephemeral and swap disks. HostRefused when there is no space. ``parent``: by ``image_clones``."""

    def remove_disks(self, server_uuid: str, keep: frozenset[str] = frozenset(), spare_pooled: bool = False) -> None:
        """All of the guest's folder, and what was kept of it as snapshots. ``keep``: kinds of disks that stay (root,
        ephemeral, swap; volume: what is known of those), with the folder; ``create_disks`` leaves them as they are.
        ``spare_pooled``: disks that other hosts see, too, stay where they are."""

    def pooled(self, order: BuildOrder) -> bool:
        """Whether the guest's disks are there, in a place that all hosts see, whatever this host knows of the guest."""

    def leave_disks(self, server_uuid: str) -> None:
        """Another host has the guest's disks: what only this host sees beside them goes, if it can tell. Nothing where
        they are in a folder that hosts may share."""

    def drop_images(self, names: Sequence[str]) -> None:
        """Files of these names are in the image cache no more: what was made of them for several guests goes, where
        none uses it."""

    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        """Keep ``files`` (path -> content) as the guest's drive, volume label config-2; goes with ``remove_disks``."""


class Interfaces(Protocol):
    """The host's side of guests' interfaces."""

    def plug(self, order: BuildOrder) -> None:
        """Bridges and taps, so that the guest's first packet gets through."""

    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        """By uuid alone when ``order`` is None: what it plugged is recorded beside the guest."""


class Lifecycle(Protocol):
    """Guests defined, started, stopped and undefined."""

    def start_new(self, order: BuildOrder) -> PowerState:
        """Define the guest from the order (again, if it is known) and start it."""

    def define(self, order: BuildOrder) -> PowerState:
        """Define the guest from the order (again, if it is known) and leave it off. Nothing when it runs."""

    def destroy(self, server_uuid: str) -> None:
        """Stop at once and undefine, what was saved of its memory too; the disks stay."""

    def start(self, server_uuid: str) -> PowerState:
        """Start a defined guest; nothing when it runs. NotFound when it is not defined."""

    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        """Ask the guest to stop, wait, then power it off. ``timeout_s`` 0 powers off at once."""

    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        """Ask the guest to reboot; False when it did not within the time (the caller then does it the hard way)."""

    def power_state(self, server_uuid: str) -> PowerState | None:
        """None when the guest is not defined."""


class Consoles(Protocol):
    """Console text."""

    def console_output(self, server_uuid: str, lines: int | None) -> str:
        """The last lines (all, for None) of the serial console's log, rotated part included."""


class ConsolePlace(NamedTuple):
    """Where the hypervisor serves a console. ``host`` None: on the address that this host's configuration says. The
    rest as :class:`nova.model.guest.consoles.ConsoleAddress` has it."""

    host: str | None = None
    port: int | None = None
    tls_port: int | None = None
    socket_path: str | None = None
    internal_access_path: str | None = None


class RemoteConsoles(Protocol):
    """Guests' screens and serial ports, as others reach them."""

    def console_of(self, server_uuid: str, type: ConsoleType) -> ConsolePlace:
        """Where it is now, of this guest and no other. NotFound: no guest. Conflict: it does not run, or was made
        without such a console. NotSupported: this hypervisor has none of the type."""


class DevicePlaces(Protocol):
    """Where a guest sees its devices."""

    def device_places(self, server_uuid: str) -> Mapping[str, DevicePlace]:
        """Of a defined guest's interfaces, by MAC address in small letters; one whose place is not known is not there.
        NotFound."""


class Diagnosis(Protocol):
    """What a guest uses, counted."""

    def diagnostics(self, server_uuid: str) -> Diagnostics:
        """Of a guest in any power state. NotFound when it is not defined."""


class Uptime(Protocol):
    def uptime(self) -> HostUptime:
        """The host's own."""


class HostPower(Protocol):
    def change_host_power(self, action: str) -> str:
        """Do ``action`` (startup, shutdown, reboot, maintenance_on, maintenance_off) to the host itself; a word for
        what became of it: the action, or on_maintenance, off_maintenance. NotSupported: one it cannot do."""


class ImageUsers(Protocol):
    """Guests' disks that lie over images of this host's cache."""

    def images_in_use(self) -> frozenset[str]:
        """Ids of the images whose cached files the guests of this host need."""

    def bases(self, server_uuid: str) -> frozenset[str]:
        """The paths of the files that the guest's disks lie over."""


class Pausing(Protocol):
    """The guest stays in memory."""

    def pause(self, server_uuid: str) -> PowerState:
        """Nothing when it is paused. NotFound when it is not defined, Conflict when it is off."""

    def unpause(self, server_uuid: str) -> PowerState:
        """Nothing when it runs."""


class Suspending(Protocol):
    """The guest's memory goes to a disk of the host."""

    def suspend(self, server_uuid: str) -> PowerState:
        """Nothing when it was suspended."""

    def resume(self, order: BuildOrder) -> PowerState:
        """Go on from there (taps and bridges may have to be made again); nothing when it runs. A guest whose saved
        memory is gone is started."""


class HeldStarts(Pausing, Protocol):
    """A guest is made whole, with its taps, and held before its first instruction; ``unpause`` lets it go."""

    def start_held(self, server_uuid: str) -> PowerState:
        """Of a defined guest that is off: PAUSED. One that is not off stays as it is. NotFound."""

    def resume_held(self, order: BuildOrder) -> PowerState:
        """``Suspending.resume``, held in the same way."""


class HotPlug(Protocol):
    """Interfaces that come and go while the guest lives: of the guest as it runs, if it does, and as it starts next."""

    def attach_interface(self, order: InterfaceOrder) -> PowerState:
        """Plug it in, and its host's side; ``order.build`` is the guest with it. Nothing where it is already.
        HostRefused; what failed is unplugged."""

    def detach_interface(self, order: InterfaceOrder, stopped: Callable[[], bool]) -> PowerState:
        """Ask the guest to give it up, again from time to time, and unplug the host's side when it has; ``order.build``
        is the guest without it. Nothing where it is gone. Conflict: it did not in time, and has it still (``stopped``
        is asked meanwhile; true: give up)."""


class Volumes(VolumeJobs, Protocol):
    """Disks on volumes of the volume service. What ``order.volumes`` of a build name is connected by ``connect`` before
    the guest is defined, and let go by ``disconnect`` after it is gone."""

    def connector(self) -> Connector:
        """What this host says of itself to a volume's back end."""

    def connect(self, server_uuid: str, volumes: Sequence[VolumeDisk]) -> None:
        """Make the volumes usable on this host: as their connections say, or, where an order has none, as it was done
        before. Nothing where they are. HostRefused; what failed leaves nothing."""

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        """Let go of all that ``connect`` made for the guest, but of the volumes to ``keep``, by what is kept beside the
        guest. Safe when there is nothing."""

    def attach_volume(self, order: VolumeOrder) -> PowerState:
        """Connect it and plug it into the guest, as it runs and as it starts next; ``order.build`` is the guest with
        it. Nothing where it is already. HostRefused; what failed leaves nothing."""

    def detach_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        """Ask the guest to give it up, again from time to time, and disconnect it when it has; ``order.build`` is the
        guest without it. Nothing where it is gone. Conflict: it did not in time, and has it still (``stopped`` is asked
        meanwhile; true: give up)."""

    def given_up(self, server_uuid: str) -> frozenset[str]:
        """Volumes that the guest has as it starts next, and not as it runs: it kept them, as it was told, and gave them
        up later. None of a guest that does not run."""

    def extend_volume(self, order: VolumeOrder) -> PowerState:
        """The volume has grown: let the host and the guest see ``order.disk.device.size_gb``."""


class Rescuing(Protocol):
    """Another system boots; the guest's own disks are beside it."""

    def rescue(self, order: RescueOrder, images: LocalImages | None, files: Mapping[str, bytes] | None) -> PowerState:
        """The guest is off. ``files``: a config drive's contents for the rescue system, where it has one."""

    def unrescue(self, order: BuildOrder) -> PowerState:
        """Its own disks boot again; what was made for the rescue goes. Safe when it was not rescued."""


class Packed(Protocol):
    """Guests that hold something of the host's cells and devices."""

    def packings(self, node: str = "", source_copies: bool = False) -> Mapping[str, Packing]:
        """What each guest of the node (of any, for "") holds, by uuid, but for those that hold nothing: as its newest
        order says, from before its first disk until its last is gone, over restarts, too. ``source_copies``:
        of those that left, and are kept until their move is confirmed."""

    def packing(self, server_uuid: str) -> Packing | None:
        """The same of one guest that is here."""


class KeptOrders(Protocol):
    """Guests' newest orders, kept beside them over restarts."""

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        """Without what only the first boot needs (password, user data, files). None when none is kept here, or it can
        not be read."""


class Agent(Protocol):
    """What only a program inside the guest can do."""

    def set_password(self, server_uuid: str, user: str, password: str) -> None:
        """Conflict when the guest runs no agent."""


class CrashDumps(Protocol):
    def crash(self, server_uuid: str) -> None:
        """Send a non-maskable interrupt. Conflict when the guest does not run."""


class Snapshots(Protocol):
    """A guest's root disk kept as a file, whole (it shows no other file)."""

    def take_snapshot(self, order: SnapshotOrder) -> DiskSnapshot:
        """Of a guest in any power state; a running one goes on. Conflict when it must be quiesced and can't. What was
        taken for this ``image_id`` before is found again."""

    def snapshot_path(self, server_uuid: str, image_id: str) -> str | None:
        """The file; None when there is none (any more)."""

    def drop_snapshot(self, server_uuid: str, image_id: str, given: bool = False) -> None:
        """Safe when there is none. ``given``: the image service has it by now, and what it has stays."""


class ColdMoves(Protocol):
    """A guest that is off leaves this host, or comes. A source copy is none of ``Driver.guests``."""

    def leave(self, server_uuid: str) -> GuestOnSource:
        """Keep the guest as a source copy (it is off): undefined, its disks under another name, so that the same server
        may be made here again. Its disks can be read at what is returned, until it is forgotten or restored. Repeated:
        the same. NotFound when neither the guest nor its source copy is here."""

    def fetch(self, order: MoveOrder, images: LocalImages | None) -> None:
        """Bring the disks here: from ``order.source``, or (None) from the source copy here, which stays as it is;
        let them grow to the order's sizes, and make those that are new. HostRefused."""

    def restore_source(self, server_uuid: str) -> bool:
        """The source copy is the guest's again (disks that ``fetch`` made here go); whether there was anything."""

    def forget(self, server_uuid: str) -> None:
        """Remove the source copy. Safe when there is nothing; the guest that is here now stays."""

    def kept_sources(self) -> frozenset[str]:
        """Uuids of all source copies."""


ProgressListener = Callable[[int, MigrationProgress], None]  # percent, amounts


class LiveMoves(Protocol):
    """A running (or paused) guest goes from this host to another, or comes."""

    def describe(self, server_uuid: str) -> GuestOnSource:
        """For the destination. NotFound; Conflict when it is off."""

    def prepare_arrival(self, order: MoveOrder, images: LocalImages | None) -> GuestArrival:
        """Compare processors, look at the storage, make room, plug and connect volumes. HostRefused names what
        does not fit: nothing stays of what was made until then. Repeated: the same."""

    def migrate(self, order: LiveOrder, listener: ProgressListener, stopped: Callable[[], bool]) -> None:
        """Send it, and return when it runs there. Any error means that it runs here (``stopped`` is asked from time to
        time; true: give up). A repeated call joins the migration that is under way; one of a guest that is gone from
        here returns."""

    def abort(self, server_uuid: str) -> None:
        """``migrate`` ends with an error soon. Conflict when none is under way."""

    def force(self, server_uuid: str) -> None:
        """Bring it to an end: post-copy where it may, else by a pause. Conflict when none is under way."""

    def land(self, order: MoveOrder) -> PowerState:
        """Make what has arrived this host's own. NotFound when it is not here, Conflict while it still arrives."""


class Driver(Protocol):
    """A host's driver, of its parts; None: what it cannot. Drivers have this as their base, and set what they have."""

    #: Whether images must lie on this host before ``create_disks`` (False for the fake driver).
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
        """Reach the hypervisor, once, at start. Unavailable says which one and what to do."""

    def check_alive(self) -> None:
        """Unavailable: the hypervisor does not answer now."""

    def nodes(self) -> tuple[Node, ...]:
        """The host's nodes with what they have, all of it (reservations and ratios are the compute's to add)."""

    def guests(self) -> tuple[GuestState, ...]:
        """Every guest of ours that the hypervisor or a disk directory knows, with its power state."""

    def on_power_change(self, listener: PowerListener) -> None:
        """Call ``listener`` whenever a guest's power state changes by itself or by us. At most one listener."""

    def close(self) -> None:
        """Let go of the hypervisor; guests run on."""
