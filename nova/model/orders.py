"""Orders to hosts, and what hosts answer."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time, Value
from nova.model.flavors import Flavor
from nova.model.images import Image
from nova.model.networks import Interface
from nova.model.states import PowerState


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


class Outcome(Value):
    """What became of one guest of an order. ``error_*`` are empty on success, else as errors cross the wire."""

    server_uuid: str
    ok: bool = True
    power_state: PowerState = PowerState.NOSTATE
    error_kind: str = ""
    error_code: str = ""
    error_message: str = ""
    details: str = ""


class GuestState(Value):
    """What a host says of one guest it has."""

    server_uuid: str
    power_state: PowerState
    epoch: int = 0


class PowerReport(Value):
    """Power states of some of a host's guests (``all_guests``: of all it has)."""

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


class Permission(Value):
    """Whether an order may pass its point of no return: the epoch asked with is still the newest."""

    server_uuid: str
    epoch: int
    granted: bool = False


class ConsoleOutput(Value):
    text: str
