"""A sync of the schema that dies at any step is gone on with by the next one, on each kind of database for real."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models import api, cell
from nova.db.schema import migrate, revisions
from nova.db.sql.engine import Database
from tests.functional.backends import KINDS, Absent
from tests.unit.db.test_migrated_schema import described

pytestmark = pytest.mark.in_turn(1, 10)

SCHEMAS = {"api": api, "cell": cell}
DDL = ("CREATE", "ALTER", "DROP")


class Killed(BaseException):
    pass


def sync_until(database: Database, schema: str, steps: int) -> bool:
    """Sync, killed after so many statements that change the schema; whether it came to its end before."""
    done = 0

    def count(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        nonlocal done
        done += statement.lstrip().upper().startswith(DDL)
        if done > steps:
            raise Killed
    sa.event.listen(database.engine, "before_cursor_execute", count)
    try:
        migrate.sync(schema, database)
    except Killed:
        return False
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", count)
    return True


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("schema", SCHEMAS)
def test_sync_when_it_died_at_each_step_then_the_next_goes_on(backends: Any, kind: str, schema: str) -> None:
    try:
        server = backends.database(kind)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    database, whole = (Database(server.create(f"resumed_{schema}_{name}")) for name in ("killed", "whole"))
    SCHEMAS[schema].metadata.create_all(whole.engine)
    patience = range(1, 200, 1 if kind == "mariadb" else 9)  # the others take back all of a revision that died
    assert any(sync_until(database, schema, steps) for steps in patience)
    wanted, found = described(whole), described(database)
    assert {table: found.get(table) for table in wanted} == wanted
    whole.dispose()
    database.dispose()


SYNC = ("import sys; from nova.db.schema import migrate; from nova.db.sql.engine import Database; "
        "migrate.sync(sys.argv[1], Database(sys.argv[2]))")


@pytest.mark.parametrize("kind", list(KINDS))
def test_sync_when_several_hosts_begin_at_once_then_all_come_to_the_end(backends: Any, kind: str) -> None:
    try:
        url = backends.database(kind).create("raced_api")
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    racers = [subprocess.Popen([sys.executable, "-c", SYNC, "api", url], stderr=subprocess.PIPE, text=True)
              for _ in range(3)]
    said = [racer.communicate(timeout=60)[1] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0], said
    database = Database(url)
    assert revisions.current("api", database) == revisions.newest("api")
    database.dispose()
