"""Rows of the journal that are in clouds: one of each action, as releases wrote them, is in ``tests/golden``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova.conductor.engine.operation import Arguments, Op, OperationProgress
from nova.conductor.engine.workflow import Workflow
from nova.conductor.registry import ALL
from nova.db.server.server_row import ServerRow
from nova.db.server.states import Entry
from tests.fakes.rows import server_value

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "operations"
ROWS = {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))}
PROGRESS = ROWS.pop("progress")
WORKFLOWS = {workflow.action.name: workflow for workflow in ALL}


def unread(row: Any, known: type[msgspec.Struct]) -> set[str]:
    return set(row) - set(known.__struct_fields__)


def test_actions_then_each_has_a_row():
    assert set(ROWS) == set(WORKFLOWS)


@pytest.mark.parametrize("action", WORKFLOWS)
def test_row_when_read_then_nothing_of_it_is_lost(action: str) -> None:
    kind, row = WORKFLOWS[action].asks, ROWS[action]
    read = msgspec.convert(row["arguments"], kind)
    assert unread(row["arguments"], kind) == unread(row["data"], OperationProgress) == set()
    assert msgspec.convert(msgspec.to_builtins(read), kind) == read


@pytest.mark.parametrize("action", WORKFLOWS)
def test_steps_when_they_depend_on_an_argument_then_the_workflow_has_it(action: str) -> None:
    workflow: Workflow = WORKFLOWS[action]
    assert issubclass(workflow.asks, Arguments)
    assert {step.when for step in workflow.steps if step.when} <= set(workflow.asks.__struct_fields__)


@pytest.mark.parametrize("field", OperationProgress.__struct_fields__)
def test_progress_when_read_then_each_field_is_as_it_was_written(field: str) -> None:
    read = msgspec.convert(PROGRESS, OperationProgress)
    written = json.loads(msgspec.json.encode(read))
    assert _without_nulls(written[field]) == _without_nulls(PROGRESS[field])


def _without_nulls(value: Any) -> Any:
    """What a row says: releases wrote more or fewer of the fields that say nothing."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one not in (None, [], {}, "", False, 0)}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def an_op(**data: Any) -> Op:
    server: ServerRow = server_value()
    return Op(Entry(id=1, server_uuid=server.uuid, action="create", epoch=1, data=data), server)


def test_note_when_a_newer_release_wrote_more_then_that_is_kept():
    op = an_op(of_tomorrow=[1], host="a")
    op.note(host="b", tried=("a", "b"))
    assert op.entry.data == {"of_tomorrow": [1], "host": "b", "tried": ("a", "b")}


def test_note_when_something_is_not_known_any_more_then_the_row_does_not_say_it():
    op = an_op(arrival={"shared": True}, shared=True, committed=True)
    op.note(arrival=None, shared=None, committed=False)
    assert op.entry.data == {}


def test_note_when_no_step_has_such_a_result_then_it_is_a_mistake():
    with pytest.raises(TypeError, match="hostt"):
        an_op().note(hostt="b")


def test_server_row_then_its_fields_are_the_columns():
    from nova.db.models.cell import servers
    assert [column.name for column in servers.c] == list(ServerRow.__struct_fields__)
