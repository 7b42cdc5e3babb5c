"""The kill matrix of a server's life: what dies at which step of which action, and how each action is ordered."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.registry import ALL, MOVES
from tests.fakes.taken_steps import OF_VOLUMES, without_volumes
from tests.functional.client import IMAGE

OTHER_IMAGE = "6c2b1d4e-52f1-4c6e-9d0b-7a3f8e1c9b66"
BIGGER = "2"  # a flavor

#: action -> (what the API calls it, its argument)
ORDERS: dict[str, tuple[str, Any]] = {
    "start": ("os-start", None), "stop": ("os-stop", None), "soft_reboot": ("reboot", {"type": "SOFT"}),
    "hard_reboot": ("reboot", {"type": "HARD"}), "rescue": ("rescue", {"rescue_image_ref": OTHER_IMAGE}),
    "changePassword": ("changePassword", {"adminPass": "s3cret"}), "createImage": ("createImage", {"name": "kept"}),
    "createBackup": ("createBackup", {"name": "kept", "backup_type": "daily", "rotation": 1}),
    "rebuild": ("rebuild", {"imageRef": OTHER_IMAGE}), "resize": ("resize", {"flavorRef": BIGGER}),
    "live-migration": ("os-migrateLive", {"host": None, "block_migration": "auto"}), "evacuate": ("evacuate", {}),
    **{name: (name, None) for name in (
        "pause", "unpause", "suspend", "resume", "unrescue", "trigger_crash_dump", "restore", "shelve",
        "shelveOffload", "unshelve", "migrate", "confirmResize", "revertResize")}}

#: action -> what is done before it
BEFORE: dict[str, tuple[str, ...]] = {
    "start": ("stop",), "unpause": ("pause",), "resume": ("suspend",), "unrescue": ("rescue",),
    "confirmResize": ("resize",), "revertResize": ("resize",), "restore": ("soft_delete",),
    "shelveOffload": ("shelve",), "unshelve": ("shelve", "shelveOffload"), "detach_interface": ("attach_interface",)}

#: action -> arguments that its operation has here, of those that steps are left out without
GIVEN = {"resize": {"flavor"}, "createBackup": {"kept"}, "unshelve": {"offloaded"}, "restore": {"start"},
         "shelve": {"snapshot_image_id"}}

#: action -> the call of all drivers that fails, so that the action is undone
FAILING = {"resize": "fetch", "migrate": "start_new", "live-migration": "migrate", "evacuate": "create_disks",
           "unshelve": "start_new", "shelve": "take_snapshot", "createImage": "take_snapshot"}

MOVING = frozenset(one.action.name for one in MOVES)
#: Their server is on two hosts' minds before they begin.
ENDS_OF_MOVES = frozenset({"confirmResize", "revertResize"})


class LifeKill(NamedTuple):
    """``what``: kill (who dies is replaced, or started again at once), pause (a conductor sleeps, and wakes too late),
    stay (a host stays dead for longer than the cloud takes to notice)."""

    victim: str  # conductor, source, destination
    action: str  # a row of the table of states; "failing resize" is one that is undone
    step: str
    when: str  # before, after; undo, undone
    what: str = "kill"

    @property
    def ordered(self) -> str:
        return self.action.removeprefix("failing ")

    @property
    def fails(self) -> bool:
        return self.action != self.ordered

    def __str__(self) -> str:
        return "-".join(self).replace(" ", "_")


def workflows() -> list[Workflow]:
    """Those that the other matrix (``kills.py``) has not, but for the stop of a deleted server, which nobody orders."""
    return [one for one in ALL if one.action.name not in ("create", "delete", "stop_deleted", *OF_VOLUMES)]


def steps(workflow: Workflow) -> list[Step]:
    """Those that run in the cloud of these tests."""
    given = GIVEN.get(workflow.action.name, set())
    return [step for step in without_volumes(workflow) if step.when is None or step.when in given]


def matrix() -> list[LifeKill]:
    """Every combination that there is."""
    return [kill for workflow in workflows() for kill in (*_of_conductors(workflow), *_of_hosts(workflow))]


def _of_conductors(workflow: Workflow) -> list[LifeKill]:
    action, found = workflow.action.name, steps(workflow)
    whats = ("kill", "pause") if action in MOVING else ("kill",)
    kills = [LifeKill("conductor", action, step.name, when, what)
             for what in whats for step in found for when in ("before", "after")]
    if action in FAILING:
        kills += [LifeKill("conductor", f"failing {action}", step.name, when)
                  for step in found[:_failing_at(workflow, found) + 1] if step.undoes for when in ("undo", "undone")]
    return kills


def _failing_at(workflow: Workflow, found: Sequence[Step]) -> int:
    """The position of the step whose call fails."""
    where = {"resize": "CopyDisks", "migrate": "FinishResize", "live-migration": "MigrateGuests",
             "evacuate": "RebuildAtDestination", "unshelve": "RespawnGuests", "shelve": "TakeSnapshots",
             "createImage": "TakeSnapshots"}[workflow.action.name]
    return [step.name for step in found].index(where)


def _of_hosts(workflow: Workflow) -> list[LifeKill]:
    action, names = workflow.action.name, [step.name for step in steps(workflow)]
    chosen = names.index("SelectNextHost") + 1 if "SelectNextHost" in names else 0
    two = action in MOVING or action == "unshelve"
    kills = []
    if action not in ("evacuate", "unshelve"):  # the server's host is down already, or it has none
        kills += [("source", name) for name in names]
    if two:
        kills += [("destination", name) for name in names[chosen:]]
    return [LifeKill(victim, action, name, when, what) for what in ("kill", "stay") for victim, name in kills
            for when in ("before", "after")]


def sample(kills: Sequence[LifeKill], seed: int) -> list[LifeKill]:
    """One of each kind of death, the same for the same seed: in moves, on one host, and while something is undone."""
    chooser = random.Random(seed)

    def one(victim: str, moving: bool, fails: bool = False, what: str = "kill") -> LifeKill:
        return chooser.choice([kill for kill in kills if kill.victim == victim and kill.fails == fails
                               and kill.what == what and (fails or (kill.ordered in MOVING) == moving)])
    return [one("conductor", True), one("conductor", False), one("conductor", True, fails=True), one("source", True),
            one("destination", True), one("source", False), one("destination", True, what="stay")]


__all__ = ["BEFORE", "BIGGER", "ENDS_OF_MOVES", "FAILING", "IMAGE", "ORDERS", "OTHER_IMAGE", "LifeKill", "matrix",
           "sample"]
