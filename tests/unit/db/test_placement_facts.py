"""What the scheduler is told of other servers: each in one statement, from the right rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models.api import aggregate_metadata
from nova.db.placement import placement_facts
from nova.db.sql.engine import Database
from nova.model.image.images import Image
from nova.model.server.states import TaskState
from tests.fakes.rows import add_servers, server_row


def read(database: Database, what: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """The answer, and how many statements it cost."""
    seen: list[str] = []

    def note(*args: Any) -> None:
        if not str(args[2]).startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            seen.append(str(args[2]))
    sa.event.listen(database.engine, "before_cursor_execute", note)
    with database.reading() as tx:
        found = what(tx, *arguments)
    sa.event.remove(database.engine, "before_cursor_execute", note)
    return found, len(seen)


def test_busy_counts_costly_tasks_by_host(cell: Database) -> None:
    add_servers(
        cell, *(server_row(host="a", task_state=task) for task in ("spawning", "image_uploading", "resize_finish")),
        server_row(host="b", task_state="unrescuing"), server_row(host="c", task_state="powering-on"),
        server_row(host="c", task_state=None), server_row(host=None, task_state="scheduling"),
        server_row(host=None, task_state="spawning"), server_row(host="d", task_state="rebuilding", deleted=7))
    assert read(cell, placement_facts.busy) == ({"a": 3, "b": 1}, 1)


def test_busy_is_read_from_an_index_alone(cell: Database) -> None:
    with cell.reading() as tx:
        text = str(placement_facts._BUSY.compile(tx.engine, compile_kwargs={"literal_binds": True}))
        plan = [row[3] for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
    assert any("USING COVERING INDEX ix_servers_tasks" in step for step in plan), plan


def test_tasks_that_cost_nothing_are_not_among_the_costly() -> None:
    free = {TaskState.SCHEDULING, TaskState.DELETING, TaskState.POWERING_ON, TaskState.PAUSING, TaskState.REBOOTING}
    assert free.isdisjoint(map(TaskState, placement_facts.COSTLY))


def test_hosts_of_named_servers(cell: Database) -> None:
    here, nowhere, gone = add_servers(cell, server_row(host="a"), server_row(host=None),
                                      server_row(host="a", deleted=9))
    asked = [here, here, nowhere, gone, "f" * 36]
    assert read(cell, placement_facts.hosts_of, asked) == ({here: "a"}, 1)


def image(name: str, **properties: str) -> dict[str, Any]:
    return {"image_id": name, "image": Image(id=name, properties=properties)}


@pytest.mark.parametrize(("properties", "counts", "expected"), [
    ({"os": "linux", "bus": "virtio"}, {}, {"a": 5.0, "b": 1.0}),
    ({"os": "linux", "bus": "virtio"}, {"os": 10.0}, {"a": 20.0, "b": 10.0}),
    ({"os": "linux", "bus": "virtio"}, {"os": 1.0, "bus": -2.0}, {"a": -4.0, "b": 1.0}),
    ({"os": "linux"}, {"os": 0.0}, {}), ({"os": "linux"}, {"other": 1.0}, {}), ({}, {}, {}),
    ({"os": "bsd"}, {}, {}), ({"x": "1"}, {}, {"b": 1.0}),
])
def test_image_matches(cell: Database, properties: dict[str, str], counts: dict[str, float],
                       expected: dict[str, float]) -> None:
    add_servers(cell, server_row(host="a", **image("one", os="linux", bus="virtio")),
                server_row(host="a", **image("one", os="linux", bus="virtio")),
                server_row(host="a", **image("two", os="windows", bus="virtio")),
                server_row(host="b", **image("three", os="linux", x="1")),
                server_row(host="b", image_id="", image=None),
                server_row(host=None, **image("three", os="linux", x="1")),
                server_row(host="c", deleted=3, **image("one", os="linux", bus="virtio")))
    found, statements = read(cell, placement_facts.image_matches, properties, counts)
    assert found == expected and statements <= 2


@pytest.mark.parametrize(("key", "value", "expected"), [
    ("filter_tenant_id", "demo", True), ("filter_tenant_id", "x, demo ,y", True), ("filter_tenant_id_17", "demo", True),
    ("filter_tenant_id", "demo2", False), ("filterXtenantXid", "demo", False), ("ssd", "demo", False)])
def test_has_aggregates(api: Database, key: str, value: str, expected: bool) -> None:
    api.transact(lambda tx: tx.execute(sa.insert(aggregate_metadata).values(aggregate_id=1, key=key, value=value)))
    assert read(api, placement_facts.has_aggregates, "demo") == (expected, 1)
