"""What a step is handed of all that a conductor works with, and how journals of older releases name it."""

from __future__ import annotations

import dataclasses

import pytest

from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.engine.workflow import Workflow
from nova.conductor.registry import ALL

STEPS = sorted({step for workflow in ALL for step in workflow.steps}, key=lambda step: step.name)


def deps() -> Deps:
    nothing: dict = dict.fromkeys(("api", "cell", "scheduler", "compute", "network", "images", "certs"))
    return Deps(settings=ConductorSettings(), host="ctl", **nothing)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_uses_then_they_are_members_of_deps_named_once(step) -> None:
    members = {field.name for field in dataclasses.fields(Deps)}
    assert set(step.uses) <= members and len(set(step.uses)) == len(step.uses)
    assert "runner" not in step.uses  # a step begins no operations


def test_only_when_another_member_is_read_then_it_is_not_there() -> None:
    part = deps().only(("settings", "host"))
    assert part.host == "ctl" and part.settings.max_attempts == 3
    with pytest.raises(AttributeError):
        part.cell  # noqa: B018


def test_position_when_a_step_had_another_name_then_a_journal_of_then_finds_it() -> None:
    renamed = [step for step in STEPS if step.formerly]
    assert {step.formerly for step in renamed} >= {
        "Settle", "SetAsideGuests", "TakeNextHost", "LeaveSource", "FetchDisks", "ForgetSource", "FindAtSource",
        "ReturnToSource"}
    for workflow in ALL:
        assert isinstance(workflow, Workflow)
        for index, step in enumerate(workflow.steps):
            assert workflow.position(step.name) == index
            assert not step.formerly or workflow.position(step.formerly) == index
