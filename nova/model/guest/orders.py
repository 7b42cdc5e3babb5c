"""Orders to hosts, and what hosts answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import HostName, Time, Value
from nova.model.flavor.flavors import Flavor
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.network.networks import Interface
from nova.model.network.security_groups import GuestFirewall
from nova.model.numa.topology import Packing
from nova.model.server.states import PowerState
from nova.model.volumes import BlockDevice, VolumeDisk, root_of


class Fence(Value):
    """What makes an order safe to repeat and to refuse: operation id, the server's epoch, and when it goes stale.

    ``start_by`` is UTC; an order that has not begun by then is refused.
    """

    operation_id: int
    epoch: int
    start_by: Time | None = None


class Disk(Value):
    """A disk a guest has. ``kind``: root, ephemeral, swap, config. Sizes in GB, swap in MB."""

    kind: str
    index: int = 0
    size_gb: int = 0
    size_mb: int = 0
    format: str | None = None


class BuildOrder(Value):
    """All a host needs to build one guest, no question open: nothing is looked up behind it."""

    server_uuid: str
    id: int  # the internal key: it makes instance_name
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
    packing: Packing | None = None  # what it holds of the host's cells and devices
    firewall: GuestFirewall | None = None  # None: nobody's but the network service's own
    image_tickets: tuple[ImageTicket, ...] = ()  # for its image, kernel and ramdisk
    volumes: tuple[VolumeDisk, ...] = ()  # its disks on volumes, in the guest's order; the first may be its root
    image_goes: bool = False  # the image is removed when the guest is there, so no disk may need it
    ec2_numbers: Mapping[str, int] = {}  # of a config drive: in EC2's ids, of the server's uuid and its images' ids


def boots_from_volume(order: BuildOrder) -> bool:
    """Whether the guest's root disk lies on a volume, so that its host has none for it."""
    return root_of(tuple(one.device for one in order.volumes)) is not None


def kept_part(order: BuildOrder) -> BuildOrder:
    """What may be kept of an order beside its guest: nothing that only the first boot needs to know, and no word of how
    a volume is reached, which may be a secret."""
    volumes = tuple(msgspec.structs.replace(one, connection=None) for one in order.volumes)
    return msgspec.structs.replace(order, admin_password=None, user_data=None, files={}, volumes=volumes)


class GuestOrder(Value):
    """An order for a guest that exists. ``reboot`` is soft or hard; ``timeout_s`` how long a clean stop may take.

    ``build`` carries what is needed to define the guest again (hard reboot, start after a lost domain).
    """

    server_uuid: str
    instance_name: str
    fence: Fence
    reboot: str = "soft"
    timeout_s: int = 60
    build: BuildOrder | None = None
    interfaces: tuple[Interface, ...] = ()
    keep_disks: bool = False  # of a destroy: they lie on storage that the server's new host shares


class RebuildOrder(Value):
    """Make a guest anew on its host (or, after an evacuation, on another) from ``build``. ``keep_ephemeral``: only the
    root disk is new. ``keep_disks``: all disks are there already, on shared storage; None: if they are there, which
    ``outcome.arrival.shared`` tells. ``start`` False: it stays off.
    """

    server_uuid: str
    fence: Fence
    build: BuildOrder
    keep_ephemeral: bool = False
    keep_disks: bool | None = False
    start: bool = True


class RescueOrder(Value):
    """Boot a guest from a rescue ``image``, with its own disks beside it. ``admin_password`` is the rescue system's."""

    server_uuid: str
    instance_name: str
    fence: Fence
    image: Image
    build: BuildOrder
    admin_password: str | None = None
    timeout_s: int = 60  # how long the clean stop before it may take
    image_tickets: tuple[ImageTicket, ...] = ()  # for the rescue image, and what it names as kernel and ramdisk


class InterfaceOrder(Value):
    """Plug one interface into a guest, or take it out. ``build`` is the guest with what it has after that."""

    server_uuid: str
    instance_name: str
    fence: Fence
    interface: Interface
    build: BuildOrder


class VolumeOrder(Value):
    """Give a guest a volume, or take it away. ``build`` is the guest with what it has after that. ``successor``: the
    volume that is to take its place, and from then on goes by its id."""

    server_uuid: str
    instance_name: str
    fence: Fence
    disk: VolumeDisk
    build: BuildOrder
    successor: VolumeDisk | None = None


class VolumeSnapshotOrder(Value):
    """Change the files that a guest's volume is. ``new_file``: what is written from now on goes there. Or, without one,
    ``file_to_merge`` goes into ``merge_target_file``; None: all above ``file_to_merge`` goes into the file that is
    written to (None: that one is to have no other below it)."""

    server_uuid: str
    instance_name: str
    fence: Fence
    build: BuildOrder
    device: BlockDevice
    new_file: str = ""
    file_to_merge: str | None = None
    merge_target_file: str | None = None


class NetworkEvent(Value):
    """What the network service says of a guest's interface. ``name``: network-vif-plugged, network-vif-unplugged,
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
    """Keep a guest's root disk as a file of the host, and upload it as ``image_id``.

    ``quiesce``: it must be (else it is when the guest's agent is there).
    """

    server_uuid: str
    instance_name: str
    fence: Fence
    image_id: str
    quiesce: bool = False
    build: BuildOrder | None = None
    image_tickets: tuple[ImageTicket, ...] = ()  # of an upload: to write the image
    given: bool = False  # to drop it: the image service has its data, and they stay


class DiskSnapshot(Value):
    """A disk that was kept. ``format`` as image services name it; sizes in bytes. ``in_ceph``: where the image service
    may take it from without an upload."""

    format: str
    size_bytes: int
    virtual_size_bytes: int
    in_ceph: bool = False


class DiskOnSource(Value):
    """A disk of a guest that moves. ``export``: the name it can be read by at the source's address, a secret of this
    move. ``image_id``: the image whose cached file it shows where it was not written to; empty: it is whole.
    """

    kind: str
    index: int = 0
    name: str = ""  # of its file
    format: str = ""
    size_bytes: int = 0
    image_id: str = ""
    export: str = ""
    base_export: str = ""  # the cached file's own, for a destination that has not got it


class GuestOnSource(Value):
    """What the host that a guest is on tells the one that it goes to.

    ``address`` and ``port``: where its disks can be read; port 0: they can't (or need not). ``probe``: a name in its
    storage, so that a destination which sees it knows that they share it. ``cpu``: the guest's CPU in the hypervisor's
    own words. ``facts``: what only the driver understands.
    """

    host: HostName = ""
    address: str = ""
    port: int = 0
    probe: str = ""
    cpu: str = ""
    disks: tuple[DiskOnSource, ...] = ()
    power_state: PowerState = PowerState.NOSTATE
    facts: Mapping[str, str] = {}


class MigrationGate(Value):
    """Where a destination lets one migration in (``nova.migrationproxy``). ``certificate``: the only one that is to be
    taken there, as PEM; ``secret``: what the source must know, 64 hexadecimal digits."""

    address: str
    port: int
    certificate: str
    secret: str


class GuestArrival(Value):
    """What a destination that is ready for a live migration tells the source. ``gate`` None: it is of a release that
    let libvirtd listen, and cannot be reached. ``shared``: the disks lie on storage that both see.

    ``uri``, ``address``: of such releases; empty.
    """

    uri: str = ""
    address: str = ""
    shared: bool = False
    facts: Mapping[str, str] = {}
    gate: MigrationGate | None = None


class MoveOrder(Value):
    """An order to a host that a guest comes to (or comes back to). ``build``: the guest as it will be there.

    ``source`` None: it was on this very host. ``start`` False: it stays off. ``block``: whether disks are copied in a
    live migration; None: as the hosts' storage says. ``over_commit``: a live migration may promise more disk than
    there is.
    """

    server_uuid: str
    fence: Fence
    build: BuildOrder
    source: GuestOnSource | None = None
    start: bool = True
    block: bool | None = None
    over_commit: bool = False


class LiveOrder(Value):
    """An order to the host that a running guest leaves."""

    server_uuid: str
    instance_name: str
    fence: Fence
    arrival: GuestArrival
    build: BuildOrder | None = None


def tickets_of(order: object) -> tuple[ImageTicket, ...]:
    """The image tickets that an order of any kind came with, and what is built by it."""
    build = getattr(order, "build", None)
    return (*getattr(order, "image_tickets", ()), *(build.image_tickets if isinstance(build, BuildOrder) else ()))


class Outcome(Value):
    """What became of one guest of an order. ``error_*`` are empty on success, else as errors cross the wire.

    ``source``, ``arrival`` and ``snapshot`` are the answers to the orders that ask for them.
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
    """What a host says of one guest it has."""

    server_uuid: str
    power_state: PowerState
    epoch: int = 0


class PowerReport(Value):
    """Power states of some of a host's guests: of those that it noticed to change, or (``all_guests``) as it finds them
    all, but for those that an order is under way for."""

    host: HostName
    guests: tuple[GuestState, ...] = ()
    all_guests: bool = False


class ExpectedGuest(Value):
    """What the conductor believes is on a host: for the comparison at its start.

    ``keep`` False with ``gone`` True: an explicit record says it was deleted or moved; only then is it destroyed.
    """

    server_uuid: str
    instance_name: str
    epoch: int
    vm_state: str
    task_state: str | None = None
    power_state: PowerState = PowerState.NOSTATE
    gone: bool = False
    gone_s: int = 0  # for how long


class Permission(Value):
    """Whether an order may pass its point of no return: the epoch asked with is still the newest."""

    server_uuid: str
    epoch: int
    granted: bool = False


class ConsoleOutput(Value):
    text: str
