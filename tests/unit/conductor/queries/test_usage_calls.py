"""``get_usage`` as the API asks it: sums and pages, and what they cost."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.model.base import Page
from nova.model.quota.usage import UsagePage, UsageQuery
from tests.fakes.small_cloud import SmallCloud

START = datetime.datetime(2030, 1, 1)
END = START + datetime.timedelta(hours=10)


@pytest.fixture
def uuids(cloud: SmallCloud) -> list[str]:
    made = sorted(cloud.active(3))
    cloud.write("cell", sa.update(tables.servers).values(launched_at=START - datetime.timedelta(hours=1)))
    return made


def ask(cloud: SmallCloud, limit: int | None = None, marker: str | None = None, **fields: bool) -> UsagePage:
    return cloud.control.get_usage(UsageQuery(start=START, end=END, page=Page(limit=limit, marker=marker), **fields))


def test_sums_are_over_all_servers_unless_pages_are_asked_for(cloud: SmallCloud, uuids: list[str]) -> None:
    assert [one.hours for one in ask(cloud, 1).projects] == [pytest.approx(30)]
    page = ask(cloud, 1, paged=True)
    assert ([one.hours for one in page.projects], page.count, page.last) == ([10.0], 1, uuids[0])
    assert page.projects[0].servers == ()
    page = ask(cloud, 5, uuids[0], paged=True, servers=True)
    assert ([one.uuid for one in page.projects[0].servers], page.count, page.last) == (uuids[1:], 2, uuids[2])
    assert ask(cloud, 0, paged=True) == UsagePage() == ask(cloud, 5, uuids[2], paged=True)


def test_servers_without_pages_are_cut_at_the_limit_and_the_sums_are_not(cloud: SmallCloud, uuids: list[str]) -> None:
    one, = ask(cloud, 2, servers=True).projects
    assert [server.uuid for server in one.servers] == uuids[:2] and one.hours == pytest.approx(30)
    one, = ask(cloud, 4, servers=True).projects
    assert len(one.servers) == 3 and one.hours == 30.0


def test_deleted_server_counts_until_it_ended(cloud: SmallCloud, uuids: list[str]) -> None:
    cloud.delete(uuids[0])
    ended = START + datetime.timedelta(hours=4)
    of_it = tables.servers.c.uuid == uuids[0]
    cloud.write("cell", sa.update(tables.servers).where(of_it).values(terminated_at=ended, deleted_at=ended))
    one, = ask(cloud, servers=True).projects
    assert one.hours == 24.0 == sum(server.hours for server in one.servers)
    assert [(server.state, server.ended_at) for server in one.servers if server.uuid == uuids[0]] == [
        ("terminated", ended)]


def test_usage_costs_a_fixed_number_of_statements(cloud: SmallCloud, uuids: list[str]) -> None:
    seen: list[str] = []
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    for limit, marker, fields, count in ((None, None, {}, 1), (9, None, {"paged": True}, 1),
                                         (9, uuids[0], {"paged": True, "servers": True}, 2),
                                         (2, None, {"servers": True}, 2)):
        seen.clear()
        ask(cloud, limit, marker, **fields)
        assert len(seen) == count, seen


def test_marker_that_is_nobodys_is_invalid(cloud: SmallCloud, uuids: list[str]) -> None:
    with pytest.raises(errors.Invalid):
        ask(cloud, 1, "nobody", paged=True)
