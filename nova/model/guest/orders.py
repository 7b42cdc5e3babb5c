"""Orders to hosts, and the hosts' answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import HostName, Time, Value
from nova.model.flavor.flavors import Flavor
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.network.networks import Interface
from nova.model.network.security_groups import GuestFirewall
from nova.model.numa.topology import TopologyClaim
from nova.model.server.states import PowerState
from nova.model.volumes import BlockDevice, VolumeDisk, root_of

START_BY_S = 30  # from sending an order to the latest time of its start


class Fence(Value):
    """Conditions under which a host may run an order: operation id, the server's epoch, and the deadline. They make an
    order safe to repeat and to refuse.

    ``start_by`` is UTC; a host refuses an order that has not started by then.
    """

    operation_id: int
    epoch: int
    start_by: Time | None = None


class Disk(Value):
    """A disk of a guest. ``kind``: root, ephemeral, swap, config. Sizes in GB, swap in MB."""

    kind: str
    index: int = 0
    size_gb: int = 0
    size_mb: int = 0
    format: str | None = None


class BuildOrder(Value):
    """All facts that a host needs to build one guest, without further queries."""

    server_uuid: str
    id: int  # the internal key, of which instance_name is made
    instance_name: str
    name: str
    hostname: str
    project_id: str
    user_id: str
    fence: Fence
    flavor: Flavor
    image: Image | None = None
    kernel: Image | None = None
    ramdisk: Image | None = None
    node: str = ""
    disks: tuple[Disk, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    metadata: Mapping[str, str] = {}
    key_name: str | None = None
    public_key: str | None = None
    key_type: str = "ssh"
    user_data: str | None = None  # base64
    config_drive: bool = False
    admin_password: str | None = None
    availability_zone: str | None = None
    launch_index: int = 0
    reservation_id: str = ""
    security_groups: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    created_at: Time | None = None
    packing: TopologyClaim | None = None  # the resources of the host's NUMA cells and devices that the guest holds
    firewall: GuestFirewall | None = None  # None: only the network service filters
    image_tickets: tuple[ImageTicket, ...] = ()  # tickets for its image, kernel and ramdisk
    volumes: tuple[VolumeDisk, ...] = ()  # its disks on volumes, in the guest's order; the first may be its root
    image_goes: bool = False  # the image is deleted once the guest exists, so no disk may depend on it
    ec2_numbers: Mapping[str, int] = {}  # for a config drive: in EC2 ids, of the server's uuid and image ids


def boots_from_volume(order: BuildOrder) -> bool:
    """Return whether the guest's root disk is a volume, so that its host has no disk for it."""
    return root_of(tuple(one.device for one in order.volumes)) is not None


def persistent_part(order: BuildOrder) -> BuildOrder:
    """Return the part of an order that may be stored with its guest: without facts for the first boot only, and without
    the volumes' connections, which may be secret."""
    volumes = tuple(msgspec.structs.replace(one, connection=None) for one in order.volumes)
    return msgspec.structs.replace(order, admin_password=None, user_data=None, files={}, volumes=volumes)


class GuestOrder(Value):
    """An order for an existing guest. ``reboot`` is soft or hard; ``timeout_s`` limits a clean shutdown.

    ``build`` contains the facts to define the guest again (hard reboot, start after a lost domain).
    """

    server_uuid: str
    instance_name: str
    fence: Fence
    reboot: str = "soft"
    timeout_s: int = 60
    build: BuildOrder | None = None
    interfaces: tuple[Interface, ...] = ()
    keep_disks: bool = False  # for a destroy: the disks are on storage that the server's new host shares


class RebuildOrder(Value):
    """An order to recreate a guest from ``build``, on its host or, after an evacuation, on another. ``keep_ephemeral``:
    only the root disk is new. ``keep_disks``: all disks already exist on shared storage; None: check whether they
    exist, and report it in ``outcome.arrival.shared``. ``start`` False: the guest stays off."""

    server_uuid: str
    fence: Fence
    build: BuildOrder
    keep_ephemeral: bool = False
    keep_disks: bool | None = False
    start: bool = True


class RescueOrder(Value):
    """Boot a guest from a rescue ``image``, with its own disks attached. ``admin_password`` is for the rescue
    system."""

    server_uuid: str
    instance_name: str
    fence: Fence
    image: Image
    build: BuildOrder
    admin_password: str | None = None
    timeout_s: int = 60  # limit of the clean shutdown before the rescue
    image_tickets: tuple[ImageTicket, ...] = ()  # for the rescue image, and its kernel and ramdisk images


class InterfaceOrder(Value):
    """Attach one interface to a guest, or detach it. ``build`` is the guest's state afterwards."""

    server_uuid: str
    instance_name: str
    fence: Fence
    interface: Interface
    build: BuildOrder


class VolumeOrder(Value):
    """Attach a volume to a guest, or detach it. ``build`` is the guest's state afterwards. ``successor``: the volume
    that replaces the present one, whose id it takes over."""

    server_uuid: str
    instance_name: str
    fence: Fence
    disk: VolumeDisk
    build: BuildOrder
    successor: VolumeDisk | None = None


class VolumeSnapshotOrder(Value):
    """Change the chain of files of a guest's volume. ``new_file``: the file for writes from now on. Without it,
    ``file_to_merge`` is merged into ``merge_target_file``. If that is None, all files above ``file_to_merge`` are
    merged into the active file; if both are None, the active file gets no backing file."""

    server_uuid: str
    instance_name: str
    fence: Fence
    build: BuildOrder
    device: BlockDevice
    new_file: str = ""
    file_to_merge: str | None = None
    merge_target_file: str | None = None


class NetworkEvent(Value):
    """An event of the network service about a guest's interface. ``name``: network-vif-plugged, network-vif-unplugged,
    network-vif-deleted, network-changed; ``status``: completed or failed."""

    server_uuid: str
    name: str
    interface_id: str
    status: str = "completed"


class PasswordOrder(Value):
    server_uuid: str
    instance_name: str
    fence: Fence
    password: str
    user: str = "root"


class SnapshotOrder(Value):
    """Snapshot a guest's root disk into a file on the host, and upload it as ``image_id``.

    ``quiesce``: required (otherwise the guest is only quiesced if its agent is available).
    """

    server_uuid: str
    instance_name: str
    fence: Fence
    image_id: str
    quiesce: bool = False
    build: BuildOrder | None = None
    image_tickets: tuple[ImageTicket, ...] = ()  # for the upload: tickets to write the image
    given: bool = False  # for a removal: the image service uses the data, so they are kept


class DiskSnapshot(Value):
    """A snapshot of a disk. ``format`` is a name of the image service; sizes in bytes. ``in_ceph``: the image service
    can import it from Ceph without an upload."""

    format: str
    size_bytes: int
    virtual_size_bytes: int
    in_ceph: bool = False


class DiskOnSource(Value):
    """A disk of a moving guest. ``export``: the name to read it by at the source's address, a secret of this move.
    ``image_id``: the image whose cached file is its backing file; empty: it has no backing file."""

    kind: str
    index: int = 0
    name: str = ""  # of its file
    format: str = ""
    size_bytes: int = 0
    image_id: str = ""
    export: str = ""
    base_export: str = ""  # export of the cached image file, for a destination that lacks it


class GuestOnSource(Value):
    """The facts that the source host of a move sends to the destination.

    ``address`` and ``port``: where the disks can be read; port 0: they cannot be read, or need not be. ``probe``: the
    name of a file in the source's storage; a destination that sees it shares the storage. ``cpu``: the guest's CPU, in
    the hypervisor's format. ``facts``: data for the driver alone.
    """

    host: HostName = ""
    address: str = ""
    port: int = 0
    probe: str = ""
    cpu: str = ""
    disks: tuple[DiskOnSource, ...] = ()
    power_state: PowerState = PowerState.NOSTATE
    facts: Mapping[str, str] = {}


class MigrationListener(Value):
    """The listener of a destination for one migration (``nova.migrationproxy``). ``certificate``: the only accepted
    certificate, as PEM; ``secret``: the secret that the source must present, 64 hexadecimal digits."""

    address: str
    port: int
    certificate: str
    secret: str


class GuestArrival(Value):
    """The reply of a destination that is ready for a live migration. ``gate`` None: the destination runs a release in
    which libvirtd listened, and cannot be reached. ``shared``: both hosts see the storage of the disks.

    ``uri``, ``address``: only set by such releases.
    """

    uri: str = ""
    address: str = ""
    shared: bool = False
    facts: Mapping[str, str] = {}
    gate: MigrationListener | None = None


class MoveOrder(Value):
    """An order to the destination host of a move, or of a reverted move. ``build``: the guest on the destination.

    ``source`` None: the guest was on this host. ``start`` False: the guest stays off. ``block``: whether a live
    migration copies disks; None: determined by the hosts' storage. ``over_commit``: a live migration may allocate more
    disk than is free.
    """

    server_uuid: str
    fence: Fence
    build: BuildOrder
    source: GuestOnSource | None = None
    start: bool = True
    block: bool | None = None
    over_commit: bool = False


class LiveOrder(Value):
    """An order to the source host of a live migration."""

    server_uuid: str
    instance_name: str
    fence: Fence
    arrival: GuestArrival
    build: BuildOrder | None = None


def tickets_of(order: object) -> tuple[ImageTicket, ...]:
    """Return the image tickets of an order of any kind, including those of its ``build``."""
    build = getattr(order, "build", None)
    return (*getattr(order, "image_tickets", ()), *(build.image_tickets if isinstance(build, BuildOrder) else ()))


class Outcome(Value):
    """Result of an order for one guest. ``error_*`` are empty on success, otherwise the error in its wire form.

    ``source``, ``arrival`` and ``snapshot`` are the results of orders that return them.
    """

    server_uuid: str
    ok: bool = True
    power_state: PowerState = PowerState.NOSTATE
    error_kind: str = ""
    error_code: str = ""
    error_message: str = ""
    details: str = ""
    source: GuestOnSource | None = None
    arrival: GuestArrival | None = None
    snapshot: DiskSnapshot | None = None


class GuestState(Value):
    """State of one guest, as its host reports it."""

    server_uuid: str
    power_state: PowerState
    epoch: int = 0


class PowerReport(Value):
    """Power states of guests on a host: of the guests that changed, or (``all_guests``) of all guests except those with
    an order in progress."""

    host: HostName
    guests: tuple[GuestState, ...] = ()
    all_guests: bool = False


class ExpectedGuest(Value):
    """A guest that the conductor expects on a host, for the comparison when the host starts.

    A guest is destroyed only if ``gone`` is True: an explicit record says that it was deleted or moved.
    """

    server_uuid: str
    instance_name: str
    epoch: int
    vm_state: str
    task_state: str | None = None
    power_state: PowerState = PowerState.NOSTATE
    gone: bool = False
    gone_s: int = 0  # seconds since then


class Permission(Value):
    """Permission for an order to pass its point of no return: granted if its epoch is still the newest."""

    server_uuid: str
    epoch: int
    granted: bool = False


class ConsoleOutput(Value):
    text: str
