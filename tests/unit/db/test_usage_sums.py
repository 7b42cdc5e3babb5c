"""Usage in SQL: what part of a server's life counts, sums alike in one statement and page by page."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova.conductor.queries import usage as queries
from nova.db.models import cell as tables
from nova.db.quota import usage
from nova.db.sql.engine import Database
from nova.model.base import Page
from nova.model.flavor.flavors import Flavor
from nova.model.quota.usage import ProjectUsage, UsageQuery
from tests.fakes.rows import add_servers, server_row

HOUR = datetime.timedelta(hours=1)
START = datetime.datetime(2026, 3, 1)
END = START + 24 * HOUR
BIG = Flavor(flavorid="2", name="m2", memory_mb=2048, vcpus=4, root_gb=10, ephemeral_gb=5)


def lived(begin: float, end: float | None = None, **fields: Any) -> dict[str, Any]:
    """A server launched (and ended) so many hours after the start."""
    return server_row(launched_at=START + begin * HOUR, terminated_at=None if end is None else START + end * HOUR,
                      **fields)


def ask(**fields: Any) -> UsageQuery:
    return UsageQuery(**{"start": START, "end": END, **fields})


def summed(cell: Database, **fields: Any) -> dict[str, ProjectUsage]:
    with cell.reading() as tx:
        return {one.project_id: one for one in usage.sums(tx, ask(**fields))}


def paged(cell: Database, limit: int = 1000, **fields: Any) -> tuple[ProjectUsage, ...]:
    query = ask(servers=True, **fields)
    with cell.reading() as tx:
        project = usage.project_of(tx, query) if query.page.marker else None
        return queries._by_project(query, usage.page(tx, query, limit, project))


@pytest.mark.parametrize(("row", "hours"), [
    (lived(-5), 24), (lived(-5, 1), 1), (lived(2, 5.5), 3.5), (lived(23, 30), 1), (lived(-10, 30), 24),
    (lived(0, 24), 24), (lived(-5, 0), None), (lived(24), None), (lived(30), None), (lived(-5, -1), None),
    (server_row(launched_at=None), None), (lived(-5, 2, deleted_at=START + 2 * HOUR, deleted=1), 2)])
def test_hours_are_those_of_the_servers_life_in_the_time(cell: Database, row: dict[str, Any], hours: float | None
                                                         ) -> None:
    add_servers(cell, row)
    both = [list(summed(cell).values()), list(paged(cell))]
    for found in both:
        assert [one.hours for one in found] == ([] if hours is None else [pytest.approx(hours, abs=1e-6)])


def test_sums_weigh_hours_with_what_each_server_has(cell: Database) -> None:
    add_servers(cell, lived(0, 2), lived(0, 1, flavor=BIG), lived(22, project_id="other", flavor=BIG))
    demo, other = summed(cell)["demo"], summed(cell)["other"]
    assert (demo.hours, demo.vcpu_hours) == pytest.approx((3, 6), abs=1e-6)
    assert (demo.memory_mb_hours, demo.local_gb_hours) == pytest.approx((512 * 2 + 2048, 2 + 15), rel=1e-6)
    assert (other.hours, other.local_gb_hours) == pytest.approx((2, 30), rel=1e-6)
    for one, same in zip((demo, other), paged(cell), strict=True):
        assert one.project_id == same.project_id
        assert (one.hours, one.vcpu_hours, one.memory_mb_hours, one.local_gb_hours) == pytest.approx(
            (same.hours, same.vcpu_hours, same.memory_mb_hours, same.local_gb_hours), rel=1e-6)
    assert list(summed(cell, project_id="other")) == ["other"]


def test_server_that_ended_is_terminated_and_its_uptime_stands(cell: Database) -> None:
    add_servers(cell, lived(-1, 2, vm_state="active", deleted=5), lived(1, vm_state="shelved", name="kept"))
    ended, kept = sorted(paged(cell)[0].servers, key=lambda one: one.name, reverse=True)
    assert (ended.state, ended.uptime_s, ended.hours, ended.ended_at) == ("terminated", 3 * 3600, 2.0, START + 2 * HOUR)
    assert (kept.state, kept.ended_at, kept.local_gb) == ("shelved", None, 1) and kept.uptime_s > 3600


def test_pages_go_by_project_then_uuid_and_meet_every_server_once(cell: Database) -> None:
    made = add_servers(cell, *[lived(1, project_id=project) for project in ("b", "a", "b", "a", "c")])
    seen: list[tuple[str, str]] = []
    marker = None
    for expected in (2, 2, 1, 0):
        page = paged(cell, 2, page=Page(marker=marker))
        seen += [(one.project_id, one.uuid) for project in page for one in project.servers]
        assert sum(len(project.servers) for project in page) == expected
        marker = seen[-1][1]
    assert seen == sorted(seen) and {uuid for _project, uuid in seen} == set(made)


def test_marker_that_is_nobodys_or_anothers_has_no_project(cell: Database) -> None:
    mine, theirs = add_servers(cell, lived(1), lived(1, project_id="other"))
    for marker, project, owner in (("nobody", None, None), (theirs, "demo", None), (theirs, None, "other")):
        with cell.reading() as tx:
            assert usage.project_of(tx, ask(project_id=project, page=Page(marker=marker))) == owner
    assert paged(cell, page=Page(marker=mine), project_id="demo") == ()


def test_usage_is_read_along_its_index(cell: Database) -> None:
    add_servers(cell, *[lived(1) for _ in range(3)])
    seen: list[Any] = []
    sa.event.listen(cell.engine, "before_cursor_execute", lambda *args: seen.append((args[2], args[3])))
    with cell.reading() as tx:
        usage.page(tx, ask(project_id="demo"), 5)
        usage.sums(tx, ask())
    assert len(seen) == 2
    with cell.reading() as tx:
        plans = [" ".join(str(row) for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values))
                 for text, values in seen[:2]]
    assert "ix_servers_usage" in plans[0] and not any("TEMP B-TREE" in plan for plan in plans), plans
    assert "ix_servers_usage" in {index.name for index in tables.servers.indexes}
