"""What tells one kind of order from another: a row of ``nova.compute.order_table``."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

#: A pool's name -> how many of its orders are carried out at one time, where the operator set no limit.
POOLS = {
    "orders": 64,  # they mostly wait for guests
    "destroys": 64,  # a pool of their own: they never wait behind guests that are asked to shut down kindly
    "builds": 200,
    "snapshots": 200,
    "copies": 8,  # whole disks: more at one time would only share the disk's speed
    "migrations": 12,  # nothing waits behind them, as they may take hours; each has one of libvirtd's 20 workers
}


class ResourceUse(enum.Enum):
    """How an order's guest has its place on this host: NUMA nodes, processors, pages, devices."""

    NEW = "new"  # it brings its place along, and what all guests share must be enough, too
    SAME = "same"  # it is there; ordered without a place, it keeps its own


@dataclasses.dataclass(frozen=True, eq=False)
class OrderKind:
    """A kind of order. ``name``: what is done to a guest, as logs and errors say it. ``call``: ComputeRPC's."""

    name: str
    call: Callable[..., Any]
    #: Of those that carry orders out, who does it: ``nova.compute.order_table.Doers`` -> ``Do``.
    doer: Callable[[Any], Any]
    pool: str = "orders"
    #: It makes a guest on this host: a record of its removal that is older says nothing any more.
    makes: bool = False
    #: It works for long and is one piece of work however often its operation asks for it, under a later epoch too (a
    #: runner that took the operation over): the later order joins it, and gets its outcome.
    lasts: bool = False
    #: It undoes what others of the same operation do: those stop.
    undoes: bool = False
    #: It closes its epoch: what the same operation ordered before it can only be late.
    closes: bool = False
    #: It restores what a move kept: what its operation ordered before can only be late.
    returns: bool = False
    #: Its host was chosen among others: what fails here may work on the next one.
    chosen: bool = False
    #: It asks the guest to shut down, and waits.
    asks: bool = False
    #: It hands the running guest over to another host.
    migrates: bool = False
    #: After it the guest may run: its packet filter's rules are there before. (Building has a step for it.)
    starts: bool = False
    #: After it the guest may have a new tap. (One that comes while it runs has it when it has landed.)
    plugs: bool = False
    #: It counts as a build of this host, whose failures the scheduler hears of.
    counts: bool = False
    place: ResourceUse | None = None
    #: Whether the guest goes on in memory where it is, so that its place needs no look.
    in_memory: Callable[[Any], bool] = lambda order: False
    #: Before it, a guest whose place is another now is defined anew.
    redefines: bool = False

    def __str__(self) -> str:
        return self.name
