"""Servers whose cell's database is away: shown by what the ledger, in the other one, knows of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db.models import api as tables
from nova.db.sql.engine import DatabaseUnavailable
from nova.model.base import Page, Scope
from nova.model.server.server_groups import NewServerGroup
from nova.model.server.servers import ServerListQuery, ServerQuery
from nova.model.server.states import PowerState
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud, node_id
from tests.unit.conductor.queries.test_statement_counts import statements

HERS = Scope(project_id="demo")


class Away:
    """A database that does not answer, neither at first nor in the middle of a read."""

    @contextmanager
    def reading(self) -> Iterator[Any]:
        raise DatabaseUnavailable(reason="Connection refused")
        yield

    def transact(self, work: Any) -> Any:
        raise DatabaseUnavailable(reason="Connection refused")


@contextmanager
def away(cloud: SmallCloud, schema: str = "cell") -> Iterator[None]:
    there = getattr(cloud.deps, schema)
    setattr(cloud.deps, schema, Away())
    try:
        yield
    finally:
        setattr(cloud.deps, schema, there)


def shown(cloud: SmallCloud, uuid: str, scope: Scope = HERS) -> Any:
    return cloud.control.get_server(ServerQuery(uuid=uuid, scope=scope, with_unknown=True))


def listed(cloud: SmallCloud, **query: Any) -> list[Any]:
    page = cloud.control.list_servers(ServerListQuery(**{"scope": HERS, "silent_cells": "show", **query}))
    return [*page.servers, *page.summaries]


def test_server_when_its_cell_is_away_then_it_has_what_it_was_asked_for_with(cloud: SmallCloud) -> None:
    with context.entered(DEMO):
        group = cloud.control.create_server_group(NewServerGroup(name="near", policy="soft-affinity",
                                                                 uuid=new_uuid()))
    uuid, = cloud.active(availability_zone="nova", scheduler_hints={"group": group.uuid})
    before = cloud.control.get_server(ServerQuery(uuid=uuid))
    with away(cloud), statements(cloud) as seen:
        found = shown(cloud, uuid)
    assert len(seen) == 2, seen
    assert found.unknown and not before.unknown
    assert (found.uuid, found.project_id, found.user_id) == (uuid, "demo", "joe")
    assert (found.flavor, found.image_id, found.availability_zone) == (before.flavor, "", "nova")
    assert (found.flavor.name, found.flavor.memory_mb) == ("tiny", 64)
    assert (found.server_groups, found.power_state) == ((group.uuid,), PowerState.NOSTATE)
    assert abs((found.created_at - before.created_at).total_seconds()) < 5
    assert shown(cloud, uuid) == before  # the cell answers again


def test_server_when_no_zone_was_asked_for_then_its_zone_is_unknown(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with away(cloud):
        assert shown(cloud, uuid).availability_zone == "UNKNOWN"


def test_server_when_it_is_gone_or_another_projects_then_it_is_not_found(cloud: SmallCloud) -> None:
    gone, left = cloud.active(2)
    cloud.delete(gone)
    with away(cloud):
        assert shown(cloud, left, Scope()).uuid == left
        for uuid, scope in ((gone, Scope()), (left, Scope(project_id="other")), (node_id("never"), Scope()),
                            ("no uuid \u2713", Scope())):
            with pytest.raises(errors.NotFound):
                shown(cloud, uuid, scope)


def test_server_when_nobody_asked_for_unknown_ones_then_the_call_fails(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with away(cloud):
        for call in (cloud.control.get_server, cloud.control.get_target):
            with pytest.raises(errors.Unavailable):
                call(ServerQuery(uuid=uuid))
        with pytest.raises(errors.Unavailable):
            cloud.order(uuid, "stop")


def test_server_when_its_ledger_row_is_older_than_the_facts_then_it_is_listed_and_not_shown(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.write("api", sa.update(tables.ledger).values(facts=None))
    with away(cloud):
        assert [one.uuid for one in listed(cloud)] == [uuid]
        with pytest.raises(errors.Unavailable):
            shown(cloud, uuid)


def test_database_when_both_are_away_then_every_read_fails(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with away(cloud), away(cloud, "api"):
        with pytest.raises(errors.Unavailable):
            shown(cloud, uuid)
        with pytest.raises(errors.Unavailable):
            listed(cloud)


@pytest.mark.parametrize("detail", [True, False])
def test_list_when_the_cell_is_away_then_it_costs_one_statement_and_has_the_newest_of_the_scope(
        cloud: SmallCloud, detail: bool) -> None:
    uuids = [cloud.active()[0] for _ in range(4)]
    cloud.delete(uuids.pop(1))
    cloud.write("api", sa.update(tables.ledger).where(tables.ledger.c.server_uuid == uuids[0])
                .values(project_id="other"))
    newest = uuids[::-1]
    with away(cloud):
        with statements(cloud) as seen:
            found = listed(cloud, detail=detail)
        assert len(seen) == 1, seen
        assert [one.uuid for one in found] == newest[:2] and all(one.unknown for one in found)
        assert [one.uuid for one in listed(cloud, detail=detail, scope=Scope())] == newest
        assert [one.uuid for one in listed(cloud, detail=detail, page=Page(limit=1))] == newest[:1]
        assert listed(cloud, detail=detail, page=Page(limit=0)) == []


def test_list_when_silent_cells_are_skipped_then_it_is_empty_and_else_it_fails(cloud: SmallCloud) -> None:
    cloud.active()
    with away(cloud):
        assert listed(cloud, silent_cells="skip") == []
        for word in ("fail", "whatever a newer API says"):
            with pytest.raises(errors.Unavailable):
                listed(cloud, silent_cells=word)
    assert len(listed(cloud, silent_cells="skip")) == len(listed(cloud)) == 1


def test_list_when_the_cell_answers_then_it_is_whole(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    one, = listed(cloud)
    assert (one.uuid, one.name, one.unknown) == (uuid, "vm", False)
