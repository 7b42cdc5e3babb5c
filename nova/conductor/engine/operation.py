"""An operation: one server's, in the hands of a runner, and what the journal keeps of it beside where it stands.

That is what it was begun with, and what its steps found out, both JSON in the journal's row. The structs here read and
write it: an action has its own :class:`Arguments`, a step that several actions share names the ones it needs
(:meth:`Op.asked`), and what steps find out is one :class:`OperationProgress`. Rows outlive releases: fields are only
ever added, with defaults, and what a newer release wrote is kept as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
    """An image that an overtaken operation was making. ``whole_stays``: it is its owner's, once it has its data."""

    image_id: str
    whole_stays: bool


class Arguments(Value):
    """What any operation may be begun with. ``hosts``: where the operations that it overtook may have left something
    (None: it overtook none); ``apart``: those of them that do not share the storage where the guest came from.
    ``metadata``: the server's, for a config drive that is made anew."""

    hosts: tuple[str, ...] | None = None
    images: tuple[LeftImage, ...] = ()
    apart: tuple[str, ...] = ()
    metadata: Mapping[str, str] | None = None


class VolumeOperation(Arguments):
    """Which of the server's devices comes or goes, and its volume, for who is told of it. ``resumed``: another
    operation overtook it once, and it may have been carried out in part."""

    device_id: str
    volume_id: str = ""
    resumed: bool = False


class ResetState(Arguments):
    """What a reset of the state is begun with: the vm_state after it."""

    state: str


class PlacementArguments(Arguments):
    """What an operation that looks for a host is begun with. ``flavor``: of a resize; ``source``: of a move."""

    host: str | None = None
    node: str | None = None
    forced: bool = False
    exclude: tuple[str, ...] = ()
    flavor: Flavor | None = None
    source: str | None = None


class CreateArguments(PlacementArguments):
    """What a create is begun with. ``group_ids``: Neutron's ids of the security groups of ports that are made for the
    server; empty: the default group, which a port gets by itself. None: begun by a release that kept names alone."""

    group_ids: tuple[str, ...] | None = None


class ProposedHost(NamedTuple):
    """A host that the scheduler proposed, by its node and that node's resource provider."""

    host: str
    node: str
    provider_id: int


class FailedWith(Value):
    """The error that a step failed with, as it crosses the wire."""

    kind: str = "bug"
    code: str = ""
    message: str = "interrupted"


class OperationProgress(Value):
    """What the steps of an operation found out, of all of them: each field is of the steps that write it."""

    announced: bool = False  # the start was told
    # --- the runner's
    committed: bool = False  # there is no way back: what fails after it is tried again, and never undone
    fault: FailedWith | None = None
    fault_details: str | None = None  # for admins
    traceback: str | None = None
    traceparent: str | None = None  # the span of its caller
    # --- where it goes
    hosts: tuple[ProposedHost, ...] = ()  # not tried yet
    tried: tuple[str, ...] = ()
    host: str | None = None
    node: str | None = None
    provider_id: int | None = None
    zone: str | None = None
    no_host: NoHost | None = None
    claimed: tuple[str, ...] = ()  # of a delete: hosts where something is claimed
    left: str | None = None  # of a shelving: the host that the guest left
    # --- what hosts said
    power_state: int | None = None
    snapshot: DiskSnapshot | None = None
    offer: GuestOnSource | None = None
    arrival: GuestArrival | None = None
    shared: bool | None = None  # source and destination see the same disks; None: nobody knows
    stranded: str | None = None  # what is wrong with the guest where it is
    root_kept: bool = False  # of a rebuild: the volume service refused to write over its root volume
    # --- networks
    interface: Interface | None = None
    given: tuple[str, ...] = ()  # ports that were the user's before they were the server's
    ports: int | None = None  # how often its ports were begun with
    networks: tuple[str, ...] = ()  # these and the next: whom its end must be told to
    network_hosts: tuple[str, ...] = ()
    rule_hosts: tuple[str, ...] = ()
    floating_left: tuple[tuple[str, str | None], ...] = ()  # (address, project): what the server had
    dns_names: tuple[tuple[str, str], ...] = ()  # (name, address): likewise

    def over(self, row: Mapping[str, object]) -> dict[str, object]:
        """The journal's JSON, as ``row`` was before."""
        kept = {name: value for name, value in row.items() if name not in self.__struct_fields__}
        return kept | msgspec.to_builtins(self)


A = TypeVar("A", bound=Arguments)

Secrets = Mapping[str, Any]  # what only memory holds of an operation, such as a password, by its name

Result = Mapping[str, object] | errors.NovaError  # fields of OperationProgress that a step sets, or why it failed


@dataclasses.dataclass
class Op:
    """One server's operation in the hands of this runner. ``secrets`` live in memory only, never in the journal."""

    entry: Entry
    server: ServerRow  # as it was read, and as the operation's own steps changed it since
    secrets: Secrets = dataclasses.field(default_factory=dict)
    error: errors.NovaError | None = None
    unannounced: bool = False  # its start is in the journal as told, and will be once that is committed
    states: tuple[str | None, str | None] | None = None  # (vm_state, task_state) that others were told last
    due: tuple[Any, ...] = ()  # ends of steps, told once the journal has their results
    unwritten: dict[str, Any] = dataclasses.field(default_factory=dict)  # columns for the journal's next line

    @property
    def uuid(self) -> str:
        """The server's."""
        return self.entry.server_uuid

    @property
    def age_s(self) -> float:
        """Since its first step began."""
        return (utcnow() - self.entry.history[0].started_at).total_seconds() if self.entry.history else 0.0

    def asked(self, kind: type[A]) -> A:
        """What the operation was begun with, as far as ``kind`` has it."""
        return decoding.convert(self.entry.arguments, kind)

    @property
    def progress(self) -> OperationProgress:
        """What its steps found out so far."""
        return decoding.convert(self.entry.data, OperationProgress)

    def note(self, **found: object) -> None:
        """More fields of :class:`OperationProgress`; they are in the journal with its next line."""
        self.change(data=msgspec.structs.replace(self.progress, **found).over(self.entry.data))

    def change(self, **fields: object) -> None:
        """Other fields of the journal's entry."""
        self.entry = msgspec.structs.replace(self.entry, **fields)

    def see(self, **columns: object) -> None:
        """The server's row as a step of ours leaves it: nobody has to read it again."""
        self.server = msgspec.structs.replace(self.server, **columns)

    def write(self, **columns: object) -> None:
        """Columns of the server's row that a step learnt outside a transaction: written with the journal's next line.
        Whoever dies before that does the step again, and learns them again."""
        self.see(**columns)
        self.unwritten.update(columns)
