"""An operation on one server, as its runner holds it, and the data that the journal keeps of it.

The data are its arguments and the results of its steps, both JSON in the journal's row. The structs here read and write
it. An action has its own :class:`Arguments`, and a step that several actions share names the ones it needs
(:meth:`Op.asked`). The results of steps are one :class:`OperationProgress`. Rows outlive releases: fields are only ever
added, with defaults, and unknown fields of a newer release are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from nova import decoding, errors
from nova.db.server.server_row import ServerRow
from nova.db.server.states import Entry
from nova.model.base import Value, utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import DiskSnapshot, GuestArrival, GuestOnSource
from nova.model.network.networks import Interface
from nova.model.scheduling.decisions import NoHost


class LeftImage(NamedTuple):
    """An image that an overtaken operation was creating. ``whole_stays``: its owner keeps it once it has its data."""

    image_id: str
    whole_stays: bool


class Arguments(Value):
    """Arguments of any operation. ``hosts``: where the operations that it overtook may have left guests (None: it
    overtook none); ``apart``: the ones among them without shared storage with the guest's source. ``metadata``: the
    server's, for a config drive that is recreated."""

    hosts: tuple[str, ...] | None = None
    images: tuple[LeftImage, ...] = ()
    apart: tuple[str, ...] = ()
    metadata: Mapping[str, str] | None = None


class VolumeOperation(Arguments):
    """Arguments of an operation on a volume: the device, and its volume for notifications. ``resumed``: another
    operation overtook it before, and it may have been carried out in part."""

    device_id: str
    volume_id: str = ""
    resumed: bool = False


class ResetState(Arguments):
    """Arguments of a reset of the state: the vm_state after it."""

    state: str


class PlacementArguments(Arguments):
    """Arguments of an operation that selects a host. ``flavor``: of a resize; ``source``: of a move; ``cross_cell``:
    the host may be in another cell."""

    host: str | None = None
    node: str | None = None
    forced: bool = False
    exclude: tuple[str, ...] = ()
    flavor: Flavor | None = None
    source: str | None = None
    cross_cell: bool = False


class CreateArguments(PlacementArguments):
    """Arguments of a create. ``group_ids``: Neutron's ids of the security groups of ports that are created for the
    server; empty: the default group, which a port gets automatically. None: started by a release that stored only
    names."""

    group_ids: tuple[str, ...] | None = None


class ProposedHost(NamedTuple):
    """A host that the scheduler proposed, by its node and that node's resource provider."""

    host: str
    node: str
    provider_id: int


class FailedWith(Value):
    """The error that a step failed with, in its wire format. ``for_owner``: the message without names, paths and
    addresses of hosts, which is all that a tenant is told."""

    kind: str = "bug"
    code: str = ""
    message: str = "interrupted"
    for_owner: str = ""


class OperationProgress(Value):
    """The results of an operation's steps so far: each field belongs to the steps that write it."""

    announced: bool = False  # the start notification is sent
    # --- the runner's fields
    committed: bool = False  # past the point of no return: later failures are retried, never undone
    fault: FailedWith | None = None
    fault_details: str | None = None  # for admins
    traceback: str | None = None
    traceparent: str | None = None  # the span of its caller
    # --- placement
    hosts: tuple[ProposedHost, ...] = ()  # not tried yet
    tried: tuple[str, ...] = ()
    host: str | None = None
    node: str | None = None
    provider_id: int | None = None
    zone: str | None = None
    left_cell: str | None = None  # where the server was before, until nothing of it is left there
    to_cell: str | None = None  # of a move to another cell: that of the host
    no_host: NoHost | None = None
    claimed: tuple[str, ...] = ()  # of a delete: hosts with claims of the server
    left: str | None = None  # of a shelve: the host that the guest left
    # --- results from hosts
    power_state: int | None = None
    snapshot: DiskSnapshot | None = None
    offer: GuestOnSource | None = None
    arrival: GuestArrival | None = None
    shared: bool | None = None  # source and destination share the disks; None: unknown
    stranded: str | None = None  # the error of the guest on its current host
    root_kept: bool = False  # of a rebuild: the volume service refused to write over its root volume
    # --- networks
    interface: Interface | None = None
    given: tuple[str, ...] = ()  # ports that the user created before the server
    ports: int | None = None  # how often the creation of its ports was started
    networks: tuple[str, ...] = ()  # this and the next two: to update at its end
    network_hosts: tuple[str, ...] = ()
    rule_hosts: tuple[str, ...] = ()
    floating_left: tuple[tuple[str, str | None], ...] = ()  # (address, project): addresses that the server had
    dns_names: tuple[tuple[str, str], ...] = ()  # (name, address): names that the server had

    def over(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the journal's JSON: these fields over ``row``, whose unknown fields are kept."""
        kept = {name: value for name, value in row.items() if name not in self.__struct_fields__}
        mine: dict[str, object] = msgspec.to_builtins(self)
        return kept | mine


A = TypeVar("A", bound=Arguments)

Secrets = Mapping[str, Any]  # data of an operation that are only in memory, such as a password, by name

Result = Mapping[str, object] | errors.NovaError  # fields of OperationProgress that a step sets, or its error


@dataclasses.dataclass
class Op:
    """A server's operation as this runner holds it. ``secrets`` are only in memory, never in the journal."""

    entry: Entry
    server: ServerRow  # as it was read, with the changes of the operation's own steps
    secrets: Secrets = dataclasses.field(default_factory=dict)
    error: errors.NovaError | None = None
    unannounced: bool = False  # its start notification is recorded as sent, and is sent after the commit
    states: tuple[str | None, str | None] | None = None  # (vm_state, task_state) of the last notification
    due: tuple[Any, ...] = ()  # end notifications of steps, sent once the journal has their results
    unwritten: dict[str, Any] = dataclasses.field(default_factory=dict)  # columns for the journal's next write

    @property
    def uuid(self) -> str:
        """The server's UUID."""
        return self.entry.server_uuid

    @property
    def age_s(self) -> float:
        """Seconds since its first step started."""
        return (utcnow() - self.entry.history[0].started_at).total_seconds() if self.entry.history else 0.0

    def asked(self, kind: type[A]) -> A:
        """Return the operation's arguments as the struct ``kind``."""
        return decoding.convert(self.entry.arguments, kind)

    @property
    def progress(self) -> OperationProgress:
        """The results of its steps so far."""
        return decoding.convert(self.entry.data, OperationProgress)

    def note(self, **found: object) -> None:
        """Set fields of :class:`OperationProgress`; the journal's next write includes them."""
        self.change(data=msgspec.structs.replace(self.progress, **found).over(self.entry.data))

    def change(self, **fields: object) -> None:
        """Replace fields of the journal's entry."""
        self.entry = msgspec.structs.replace(self.entry, **fields)

    def see(self, **columns: object) -> None:
        """Update the server's row in memory after a step has changed it, so that it need not be read again."""
        self.server = msgspec.structs.replace(self.server, **columns)

    def write(self, **columns: object) -> None:
        """Set columns of the server's row from outside a transaction; the journal's next write includes them. After a
        crash before that, the step runs again and sets them again."""
        self.see(**columns)
        self.unwritten.update(columns)


class Before:
    """Operations as they are before a transaction, whose work may be repeated: what an attempt that was rolled back
    changed in memory must not change the next attempt."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._known = {op.uuid: (op.server, op.entry) for op in ops}

    def restored(self, ops: Sequence[Op]) -> Sequence[Op]:
        """Undo the changes of these operations in memory since then, and return them."""
        for op in ops:
            op.server, op.entry = self._known[op.uuid]
        return ops
