"""The kill matrix: which process dies at which moment of which operation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from nova.conductor.registry import CREATE_SERVER, DELETE_SERVER
from tests.fakes.taken_steps import without_volumes

#: Calls of the driver during a build and during a destroy, in their order.
BUILD_CALLS, DESTROY_CALLS = ("create_disks", "plug", "start_new"), ("destroy", "unplug", "remove_disks")


class Kill(NamedTuple):
    """``what``: kill (it is replaced or restarted), pause (it sleeps and wakes too late), stay (it stays dead)."""

    victim: str  # conductor, compute, scheduler
    action: str  # create, delete; "failing create" is one whose guests can't start, so that it is undone
    point: str  # a step of the workflow, a call of the driver or of the scheduler
    when: str  # before, after; undo, undone
    what: str = "kill"

    def __str__(self) -> str:
        return "-".join(self).replace(" ", "_")


def matrix() -> list[Kill]:
    """Every combination."""
    create, delete = [step.name for step in without_volumes(CREATE_SERVER)], [
        step.name for step in without_volumes(DELETE_SERVER)]
    undone = [step.name for step in without_volumes(CREATE_SERVER) if step.undoes]
    steps = [("create", step) for step in create] + [("delete", step) for step in delete]
    calls = [("create", call) for call in BUILD_CALLS] + [("delete", call) for call in DESTROY_CALLS]
    return [
        *(Kill("conductor", action, step, when, what) for what in ("kill", "pause") for action, step in steps
          for when in ("before", "after")),
        *(Kill("conductor", "failing create", step, when) for step in undone for when in ("undo", "undone")),
        *(Kill("compute", action, call, when, what) for what in ("kill", "stay") for action, call in calls
          for when in ("before", "after")),
        *(Kill("scheduler", "create", "select_hosts", when) for when in ("before", "after"))]


def sample(kills: Sequence[Kill], seed: int, count: int) -> list[Kill]:
    """One of each victim at least, and as many of all in all, the same for the same seed."""
    chooser = random.Random(seed)
    victims = sorted({kill.victim for kill in kills})
    chosen = [chooser.choice([kill for kill in kills if kill.victim == victim]) for victim in victims]
    rest = [kill for kill in kills if kill not in chosen]
    return [*chosen, *chooser.sample(rest, max(0, count - len(chosen)))]
