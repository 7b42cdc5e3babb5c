"""Plans of how each server leaves a host, or why it cannot: a table, and one function without I/O."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from nova.model.server.action_restrictions import built_with, restriction
from nova.model.server.servers import ServerDetail
from nova.model.server.states import TaskState, VmState

LIVE, COLD, OFFLOAD = "live migration", "cold migration", "offload"
#: How a server leaves -> its action name in the journal.
ACTION = {LIVE: "live-migration", COLD: "migrate", OFFLOAD: "shelveOffload"}


class Move(NamedTuple):
    how: str


class Wait(NamedTuple):
    """A task is in progress on the server: check it again later. ``moving``: the server is leaving the host already."""

    task: str
    moving: bool = False


class Stay(NamedTuple):
    reason: str
    skipped: bool = False


Plan = Move | Wait | Stay


@dataclasses.dataclass(frozen=True)
class DrainRequest:
    """The operator's request. ``to``: the destination of all servers; None: the scheduler selects hosts.
    ``timeout_s`` None: no timeout."""

    host: str
    to: str | None = None
    cold: bool = False
    skip: frozenset[str] = frozenset()
    parallel: int = 4
    timeout_s: float | None = None


#: Task states in which the server is moving to another host (or back from there).
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
    VmState.RESIZED: Stay("its resize or migration must be confirmed or reverted first"),
    VmState.ERROR: Stay("it is in ERROR: reset its state if it is healthy, or rebuild or delete it"),
    VmState.SOFT_DELETED: Stay("it is soft-deleted: restore it, or delete it by force"),
}
DOWN = Stay("nova-compute is down there: start it, or evacuate the server")
ONLY_LIVE = Stay("it is paused, and only a live migration keeps this state: omit --cold, or unpause it")
#: Alternatives for a server that cannot leave by live migration.
BESIDES_LIVE = {VmState.ACTIVE: "the option --cold moves it", VmState.PAUSED: "unpause it, and use --cold"}


def plan(server: ServerDetail, request: DrainRequest, up: bool = True) -> Plan:
    """Return the next step for a server of the host. ``up``: whether nova-compute answers there."""
    if server.uuid in request.skip:
        return Stay("skipped, as requested", skipped=True)
    if server.task_state is not None:
        return Wait(str(server.task_state), moving=server.task_state in MOVING)
    found = PLANS.get(server.vm_state) or Stay(f"its state is {server.vm_state}")
    if not isinstance(found, Move):
        return found
    if not up:
        return DOWN
    return _leaving(server, found, request.cold)


def _leaving(server: ServerDetail, move: Move, cold: bool) -> Plan:
    """Return how the server leaves, or the property that prevents it, in the words of the API's refusal."""
    if cold and move.how == LIVE and server.vm_state == VmState.ACTIVE:
        move = Move(COLD)
    why = restriction(ACTION[move.how], built_with(server))
    if why is not None:
        besides = f"; {BESIDES_LIVE[server.vm_state]}" if move.how == LIVE else ""
        return Stay(f"no {move.how}: it {why}{besides}")
    return ONLY_LIVE if cold and move.how == LIVE else move
