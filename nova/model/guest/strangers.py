"""What hosts and the ledger have that no record explains: an operator looks at it, and says what goes."""

from __future__ import annotations

from nova.model.base import HostName, Time, Value, WireEnum
from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState, VmState


class StrangerKind(WireEnum):
    """GUEST: a domain or its folder. SOURCE_COPY: what a cold move leaves on the old host. ALLOCATION: what is held of
    a node. PORT: Neutron's, of a deleted server."""

    GUEST = "guest"
    SOURCE_COPY = "source copy"
    ALLOCATION = "allocation"
    PORT = "port"
    UNKNOWN = "unknown"


class FoundStranger(Value):
    """As its host sees it. ``epoch``: of the newest order for the server that the host has seen; -1: none."""

    kind: StrangerKind
    server_uuid: str
    power_state: PowerState = PowerState.NOSTATE
    epoch: int = -1


class StrangerReport(Value):
    """All of a host, twice in a row; ``more``: how many more there are than a report has room for."""

    host: HostName
    found: tuple[FoundStranger, ...] = ()
    more: int = 0


class StrangerRemoval(Value):
    """What a host may remove now. ``epoch``: nothing is removed if the host has seen a newer order meanwhile.
    ``keep_disks``: the server is elsewhere, and may use them."""

    kind: StrangerKind
    server_uuid: str
    epoch: int
    keep_disks: bool = False


class Stranger(Value):
    """As operators see it. ``why``: what the records say. ``ordered_at``: its removal was asked for. ``ended_at`` and
    ``ending``: it is over, and how."""

    id: int
    kind: StrangerKind
    host: str
    server_uuid: str
    why: str
    first_seen_at: Time | None = None
    ordered_at: Time | None = None
    ended_at: Time | None = None
    ending: str = ""


class KeptGuest(Value):
    """A guest as its host has it. ``order``: the newest, as it is kept beside the guest."""

    order: BuildOrder
    power_state: PowerState


class Adoption(Value):
    """What becomes of a guest that is adopted. ``former_host``: where its record said that it was. ``is_new``: no
    record knew its server, and one is made. ``notes``: what an operator has to look after."""

    stranger: Stranger
    name: str
    project_id: str
    user_id: str
    flavor: str
    vm_state: VmState
    addresses: tuple[str, ...] = ()
    former_host: str | None = None
    is_new: bool = False
    notes: tuple[str, ...] = ()


MOST_STRANGERS = 200  # of one host in a report
