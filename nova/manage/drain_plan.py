"""How each server of a host leaves it, or why it cannot: a table, and one function without I/O."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from nova.model.server.action_restrictions import built_with, restriction
from nova.model.server.servers import ServerDetail
from nova.model.server.states import TaskState, VmState

LIVE, COLD, OFFLOAD = "live migration", "cold migration", "offload"
#: How a server leaves -> the names that the journal has for it.
ACTION = {LIVE: "live-migration", COLD: "migrate", OFFLOAD: "shelveOffload"}


class Move(NamedTuple):
    how: str


class Wait(NamedTuple):
    """Somebody works on the server: it is looked at again. ``moving``: it is on its way already."""

    task: str
    moving: bool = False


class Stay(NamedTuple):
    reason: str
    skipped: bool = False


Plan = Move | Wait | Stay


@dataclasses.dataclass(frozen=True)
class DrainRequest:
    """What the operator wants. ``to``: the one host that servers shall go to; the scheduler chooses, for None.
    ``timeout_s`` None: as long as it takes."""

    host: str
    to: str | None = None
    cold: bool = False
    skip: frozenset[str] = frozenset()
    parallel: int = 4
    timeout_s: float | None = None


#: While these are shown the server is on its way to another host (or back from there).
MOVING = frozenset({TaskState.MIGRATING, TaskState.RESIZE_PREP, TaskState.RESIZE_MIGRATING, TaskState.RESIZE_MIGRATED,
                    TaskState.RESIZE_FINISH, TaskState.RESIZE_REVERTING, TaskState.SHELVING_OFFLOADING})

PLANS: dict[VmState, Plan] = {
    VmState.ACTIVE: Move(LIVE),
    VmState.PAUSED: Move(LIVE),
    VmState.STOPPED: Move(COLD),
    VmState.SHELVED: Move(OFFLOAD),
    VmState.BUILDING: Wait("building"),
    VmState.SUSPENDED: Stay("it is suspended: resume it, or shelve it"),
    VmState.RESCUED: Stay("it is in rescue: unrescue it"),
    VmState.RESIZED: Stay("its resize or migration waits to be confirmed or reverted"),
    VmState.ERROR: Stay("it is in ERROR: reset its state when it is sound, or rebuild or delete it"),
    VmState.SOFT_DELETED: Stay("it is deleted, but can be restored still: restore it, or delete it by force"),
}
DOWN = Stay("nova-compute is down there: start it, or evacuate the server")
ONLY_LIVE = Stay("it is paused, which only a live migration keeps: leave --cold out, or unpause it")
#: What else an operator can do with a server that may not leave by live migration.
BESIDES_LIVE = {VmState.ACTIVE: "the option --cold moves it", VmState.PAUSED: "unpause it, and use --cold"}


def plan(server: ServerDetail, request: DrainRequest, up: bool = True) -> Plan:
    """What to do with a server of the host now. ``up``: whether nova-compute answers there."""
    if server.uuid in request.skip:
        return Stay("skipped, as asked", skipped=True)
    if server.task_state is not None:
        return Wait(str(server.task_state), moving=server.task_state in MOVING)
    found = PLANS.get(server.vm_state) or Stay(f"its state is {server.vm_state}")
    if not isinstance(found, Move):
        return found
    if not up:
        return DOWN
    return _leaving(server, found, request.cold)


def _leaving(server: ServerDetail, move: Move, cold: bool) -> Plan:
    """The way it goes, or what it has that does not go that way: in the words that refuse the order."""
    if cold and move.how == LIVE and server.vm_state == VmState.ACTIVE:
        move = Move(COLD)
    why = restriction(ACTION[move.how], built_with(server))
    if why is not None:
        besides = f"; {BESIDES_LIVE[server.vm_state]}" if move.how == LIVE else ""
        return Stay(f"no {move.how}: it {why}{besides}")
    return ONLY_LIVE if cold and move.how == LIVE else move
