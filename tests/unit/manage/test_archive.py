"""``nova-manage db archive_deleted_rows``, and the purge after it, as scripts call them."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.server import actions, server_lists, servers
from nova.db.sql.engine import Database
from nova.model.base import Page, Scope, utcnow
from nova.model.server.actions import ActionQuery
from nova.model.server.servers import ServerListQuery
from tests.fakes.databases import as_if_synced
from tests.fakes.rows import add_servers, server_row
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool"]

DAY = datetime.timedelta(days=1)
ARCHIVE = "db archive_deleted_rows"


class Cloud(NamedTuple):
    tool: Tool
    cell: Database
    live: str
    deleted: list[str]  # 10 days ago, 9 days ago, ...

    def call(self, words: str) -> tuple[int, str]:
        return self.tool.call("nova.conf", words)

    def listed(self, deleted: str) -> set[str]:
        with self.cell.reading() as tx:
            return {row.uuid for row in server_lists.select(tx, ServerListQuery(deleted=deleted), 100)}

    def rows(self) -> int:
        with self.cell.reading() as tx:
            return int(tx.execute(sa.select(sa.func.count()).select_from(tables.servers)).scalar_one())


@pytest.fixture
def cloud(tool: Tool) -> Cloud:
    tool.write("nova.conf", "nova", api=True)
    for schema, name in (("api", "nova_api"), ("cell", "nova")):
        as_if_synced(schema, Database(tool.url(name))).dispose()
    cell = Database(tool.url("nova"))
    [live] = add_servers(cell, server_row())
    gone = [server_row(deleted=number + 2, deleted_at=utcnow() - (10 - number) * DAY) for number in range(5)]
    return Cloud(tool, cell, live, add_servers(cell, *gone))


@pytest.mark.parametrize(("most", "left"), [(300, 155), (200, 255), (1_000_000, 0)])
def test_archive_when_more_are_asked_for_than_a_transaction_has_then_so_many_are_archived(
        cloud: Cloud, most: int, left: int) -> None:
    """A statement with a million parameters is refused by each of the databases."""
    add_servers(cloud.cell, *(server_row(deleted=number + 10, deleted_at=utcnow() - DAY) for number in range(450)))
    code, out = cloud.call(f"{ARCHIVE} --max_rows {most}")
    assert code == 1 and f"{455 - left} deleted servers are archived" in out
    with cloud.cell.reading() as tx:
        kept = sa.select(sa.func.count()).where(tables.servers.c.deleted != 0, tables.servers.c.archived_at.is_(None))
        assert tx.execute(kept).scalar_one() == left


def test_archive_when_a_script_calls_it_while_the_status_is_1_then_all_are_archived_and_purged(cloud: Cloud) -> None:
    assert cloud.listed("deleted") == set(cloud.deleted)
    codes = []
    while (code := cloud.call(f"{ARCHIVE} --max_rows 2")[0]) == 1:
        codes.append(code)
    assert (codes, code) == ([1, 1, 1], 0)
    assert cloud.listed("deleted") == set() and cloud.listed("any") == {cloud.live} == cloud.listed("live")
    assert cloud.rows() == 6, "archived ones are kept until they are purged"
    assert [cloud.call("db purge --verbose --all")[0] for _again in range(2)] == [0, 3]
    assert cloud.rows() == 1


def test_archive_when_a_date_is_given_then_only_servers_deleted_before_it(cloud: Cloud) -> None:
    before = (utcnow() - 7.5 * DAY).strftime("%b %d %Y %H:%M")
    code, out = cloud.call(f"{ARCHIVE} --verbose --until-complete --sleep 0 --all-cells --task-log --max_rows 1 "
                           f"--before {before.replace(' ', '-', 2).replace(' ', 'T')}")
    assert code == 1 and cloud.listed("deleted") == set(cloud.deleted[3:])
    rows = [[word.strip() for word in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
    assert rows == [["Table", "Number of Rows Archived"], ["cell.servers", "3"]]


def test_archive_when_it_purges_then_servers_that_are_not_archived_stay(cloud: Cloud) -> None:
    assert cloud.call(f"{ARCHIVE} --max_rows 2 --purge")[0] == 1
    assert cloud.rows() == 4 and cloud.listed("deleted") == set(cloud.deleted[2:])


def test_archived_server_when_it_is_asked_for_then_there_is_none(cloud: Cloud) -> None:
    uuid, scope = cloud.deleted[0], Scope()
    with cloud.cell.reading() as tx:
        assert servers.detail_row(tx, uuid, scope, with_deleted=True).uuid == uuid
        assert actions.select(tx, ActionQuery(server_uuid=uuid), 10) == ()
    cloud.call(ARCHIVE)
    for look in (lambda tx: servers.detail_row(tx, uuid, scope, with_deleted=True),
                 lambda tx: actions.select(tx, ActionQuery(server_uuid=uuid), 10)):
        with cloud.cell.reading() as tx, pytest.raises(errors.server.NotFound):
            look(tx)
    with cloud.cell.reading() as tx:
        assert uuid in servers.rows_of(tx, [uuid], with_deleted=True), "who finds its disk still learns whose it was"
        page = ServerListQuery(deleted="any", page=Page(marker=cloud.live))
        assert server_lists.select(tx, page, 10) == []


@pytest.mark.parametrize(("words", "code"), [
    ("--max_rows 0", 2), ("--max_rows -5", 2), ("--before soon", 4), ("--max_rows 0 --before soon", 2)])
def test_archive_when_an_argument_is_wrong_then_the_exit_status_tells_which(cloud: Cloud, words: str, code: int
                                                                           ) -> None:
    found = cloud.call(f"{ARCHIVE} {words}")
    assert found[0] == code and found[1].count("\n") == 1 and cloud.listed("deleted") == set(cloud.deleted)
