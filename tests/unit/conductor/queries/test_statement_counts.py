"""What a call costs in SQL: the same for one server and for a page of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from nova.db.models import cell as tables
from nova.model.base import Page
from nova.model.host.services import ServiceQuery, ServiceUpdate
from nova.model.server.servers import ServerListQuery, ServerQuery
from tests.fakes.rows import add_servers, server_row
from tests.fakes.small_cloud import SmallCloud, until


@contextmanager
def statements(cloud: SmallCloud) -> Iterator[list[str]]:
    """Those of both databases, BEGIN and COMMIT apart."""
    seen: list[str] = []

    def note(*args: object) -> None:
        if not str(args[2]).startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            seen.append(str(args[2]))
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", note)
    yield seen
    for database in (cloud.api, cloud.cell):
        sa.event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("count", [1, 7])
def test_page_with_details_costs_three_statements_with_a_marker(cloud: SmallCloud, count: int) -> None:
    uuids = cloud.active(count + 1, metadata={"k": "v"}, tags=("t",))
    marker = cloud.control.list_servers(ServerListQuery(page=Page(limit=1))).servers[0].uuid
    with statements(cloud) as seen:
        page = cloud.control.list_servers(ServerListQuery(page=Page(marker=marker)))
    assert len(page.servers) == count == len(uuids) - 1 and page.servers[0].host_status == "UP"
    assert len(seen) == 3, seen
    with statements(cloud) as seen:
        cloud.control.list_servers(ServerListQuery())
    assert len(seen) == 2, seen


def test_page_of_1000_with_details_costs_as_many_statements_and_no_more_time_a_server_than_one_of_100(
        cloud: SmallCloud) -> None:
    """Of the processor, the best of a few tries: what grew faster than the page would show here, on any machine."""
    add_servers(cloud.cell, *(server_row() for _ in range(1000)))
    counts: dict[int, int] = {}

    def seconds(limit: int) -> float:
        query = ServerListQuery(page=Page(limit=limit))
        with statements(cloud) as seen:
            began = time.process_time()
            assert len(cloud.control.list_servers(query).servers) == limit
            spent = time.process_time() - began
        counts[limit] = len(seen)
        return spent
    few, many = (min(seconds(limit) for _ in range(4)) for limit in (100, 1000))
    assert counts == {100: 2, 1000: 2}
    assert many / few < 15, f"{few:.4f} s of 100, {many:.4f} s of 1000"


@pytest.mark.parametrize("update, status", [
    ({}, "UP"), ({"disabled": True}, "MAINTENANCE"), ({"disabled": True, "forced_down": True}, "DOWN")])
def test_server_shows_the_state_of_its_host(cloud: SmallCloud, update: dict[str, bool], status: str) -> None:
    uuid, = cloud.active()
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", **update))
    with statements(cloud) as seen:
        assert cloud.control.get_server(ServerQuery(uuid=uuid)).host_status == status
    assert len(seen) == 2, seen


def test_server_when_its_host_was_never_seen_or_is_gone_then_it_is_shown(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    of_a = tables.services.c.host == "a"
    cloud.write("cell", sa.update(tables.services).where(of_a).values(last_seen_at=None))
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).host_status == "UNKNOWN"
    cloud.write("cell", sa.delete(tables.services).where(of_a))
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).host_status == ""
    assert cloud.control.list_services(ServiceQuery(host="a")) == ()


def cost(cloud: SmallCloud, count: int) -> list[str]:
    """The statements of a request for so many servers, until they are ACTIVE."""
    with statements(cloud) as seen:
        uuids = cloud.boot(count)
        until(lambda: not cloud.deps.runner.running, "the request ends")
    assert {cloud.server(uuid).vm_state for uuid in uuids} == {"active"}
    return seen


def test_boot_stays_below_its_bound(cloud: SmallCloud) -> None:
    cost(cloud, 1)  # a project's first makes the row of its quota's lock
    seen = cost(cloud, 1)
    may_proceed = 1  # what a real host asks besides
    assert len(seen) + may_proceed <= 34, seen


def test_many_servers_of_one_host_cost_no_statement_each(cloud: SmallCloud) -> None:
    cost(cloud, 1)  # a project's first makes more: its quota's lock, its default group
    assert len(cost(cloud, 40)) <= len(cost(cloud, 2)) + 3
