"""Orphans: guests, allocations and ports that have no record. They are removed only by order of an operator."""

from __future__ import annotations

import msgspec

from nova.model.base import HostName, Time, Value, WireEnum
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState, VmState


class OrphanKind(WireEnum):
    """Kinds of orphan. GUEST: a domain or its directory. SOURCE_COPY: the remains of a cold move on the old host.
    ALLOCATION: an allocation on a node. PORT: a Neutron port of a deleted server."""

    GUEST = "guest"
    SOURCE_COPY = "source copy"
    ALLOCATION = "allocation"
    PORT = "port"
    UNKNOWN = "unknown"


class FoundOrphan(Value):
    """An orphan, as its host reports it. ``epoch``: of the newest order for the server that the host has received; -1:
    none."""

    kind: OrphanKind
    server_uuid: str
    power_state: PowerState = PowerState.NOSTATE
    epoch: int = -1


class OrphanReport(Value):
    """All orphans of a host that were found in two checks in a row; ``more``: the number that exceeds a report's
    limit."""

    host: HostName
    found: tuple[FoundOrphan, ...] = ()
    more: int = 0


class OrphanRemoval(Value):
    """An orphan that a host may remove. ``epoch``: the host skips the removal if it has received a newer order since.
    ``keep_disks``: the server is on another host, and may use the disks."""

    kind: OrphanKind
    server_uuid: str
    epoch: int
    keep_disks: bool = False


class Orphan(Value):
    """An orphan, as operators see it. ``why``: the state of the records. ``ordered_at``: time of the removal order.
    ``ended_at`` and ``ending``: time and kind of its end."""

    id: int
    kind: OrphanKind
    host: str
    server_uuid: str
    why: str
    first_seen_at: Time | None = None
    ordered_at: Time | None = None
    ended_at: Time | None = None
    ending: str = ""


class StoredGuest(Value):
    """A guest as its host has it. ``order``: the newest order, as stored with the guest."""

    order: BuildOrder
    power_state: PowerState


class GuestTakeover(Value):
    """Result of a guest's import. ``former_host``: the host in its previous record. ``is_new``: the server had no
    record, and one is created. ``notes``: issues that an operator must resolve."""

    orphan: Orphan = msgspec.field(name="stranger")
    name: str
    project_id: str
    user_id: str
    flavor: str
    vm_state: VmState
    addresses: tuple[str, ...] = ()
    former_host: str | None = None
    is_new: bool = False
    notes: tuple[str, ...] = ()


MOST_ORPHANS = 200  # of one host in a report
