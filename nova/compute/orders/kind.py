"""Properties that distinguish kinds of orders; each kind is a row of ``nova.compute.order_table``."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from nova.model.base import HostName
from nova.model.guest.orders import (
    BuildOrder,
    GuestOrder,
    InterfaceOrder,
    LiveOrder,
    MoveOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
    SnapshotOrder,
    VolumeOrder,
    VolumeSnapshotOrder,
)
from nova.rpc.contracts.compute import ComputeRPC

if TYPE_CHECKING:
    from nova.compute.order_table import OrderHandlers
    from nova.compute.orders.batches import Do

#: An order of any kind.
Order = (BuildOrder | GuestOrder | InterfaceOrder | LiveOrder | MoveOrder | PasswordOrder | RebuildOrder | RescueOrder
         | SnapshotOrder | VolumeOrder | VolumeSnapshotOrder)
#: The orders of one kind.
OrderT = TypeVar("OrderT", bound=Order)

#: Pool name -> number of its orders that run at the same time, if the operator set no limit.
POOLS = {
    "orders": 64,  # mostly wait for guests
    "destroys": 64,  # separate, so that a destroy never waits behind guests that are shutting down
    "builds": 200,
    "snapshots": 200,
    "copies": 8,  # whole disks: more at the same time would only share the disk's speed
    "migrations": 12,  # may take hours, so no other orders share the pool; each has one of libvirtd's 20 workers
}


class ResourceUse(enum.Enum):
    """Use of this host's resources by an order's guest: NUMA nodes, processors, pages, devices."""

    NEW = "new"  # the order brings a new claim, and the resources that all guests share must suffice, too
    SAME = "same"  # the guest is here; an order without a claim keeps its current one


@dataclasses.dataclass(frozen=True, eq=False)
class OrderKind(Generic[OrderT]):
    """A kind of order. ``name``: the action on a guest, as used in logs and errors. ``call``: the method of
    ComputeRPC."""

    name: str
    call: Callable[[ComputeRPC, HostName, tuple[OrderT, ...]], tuple[Outcome, ...]]
    #: Selects the handler of the order.
    handler: Callable[[OrderHandlers], Do[OrderT]]
    pool: str = "orders"
    #: Creates a guest on this host; an older record of its removal is then no longer valid.
    makes: bool = False
    #: A long order that is one piece of work, however often its operation requests it, even under a later epoch by a
    #: runner that took the operation over. The later order joins it, and gets its outcome.
    lasts: bool = False
    #: Undoes other orders of the same operation; they stop.
    undoes: bool = False
    #: Closes its epoch: earlier orders of the same operation that arrive afterwards are late.
    closes: bool = False
    #: Restores a move's source copy: earlier orders of its operation that arrive afterwards are late.
    returns: bool = False
    #: The host was selected among others, so a reschedule may succeed where this one failed.
    chosen: bool = False
    #: Asks the guest to shut down, and waits.
    asks: bool = False
    #: Hands the running guest over to another host.
    migrates: bool = False
    #: The guest may run after the order, so its packet filter rules are applied before it. (Building has its own step.)
    starts: bool = False
    #: The guest may have a new tap after the order. (A live-migrated guest has it when it has landed.)
    plugs: bool = False
    #: Counts as a build of this host, whose failures are reported to the scheduler.
    counts: bool = False
    place: ResourceUse | None = None
    #: True if the guest continues in memory in its place, so that its claim needs no check.
    in_memory: Callable[[OrderT], bool] = lambda order: False
    #: Redefines a guest first if its claim has changed.
    redefines: bool = False

    def __str__(self) -> str:
        return self.name


def build_of(order: Order) -> BuildOrder | None:
    """Return the facts to define the order's guest; None if the order has none."""
    if isinstance(order, BuildOrder):
        return order
    return None if isinstance(order, PasswordOrder) else order.build
