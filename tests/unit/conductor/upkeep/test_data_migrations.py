"""Online data migrations: resumed where they stopped, by whoever comes, over when nothing can write old rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.upkeep import data_migrations
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.models import api, cell
from nova.db.schema import data_migrations as rows
from nova.db.sql.engine import Database
from nova.db.sql.types import later
from nova.manage import database_commands, main, upgrade_checks
from nova.version import RELEASE
from tests.fakes.databases import as_if_synced
from tests.fakes.rows import add_ledger, add_servers, new_uuid, server_row
from tests.unit.manage.test_api_rebuild import Options

[LEDGER_FACTS] = data_migrations.DATA_MIGRATIONS
#: As upstream's command frames it, of so many rows.
TABLE = """\
+--------------+--------------+-----------+
|  Migration   | Total Needed | Completed |
+--------------+--------------+-----------+
| ledger_facts |      {0}       |     {0}     |
+--------------+--------------+-----------+
"""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    made = Stores(*[as_if_synced(name, Database(f"sqlite:///{tmp_path}/{name}")) for name in ("api", "cell")])
    yield made
    for database in (made.api, made.cell):
        database.dispose()


@pytest.fixture
def manage(stores: Stores, monkeypatch: Any, capsys: Any) -> Any:
    monkeypatch.setattr(database_commands, "stores", lambda options: stores)

    def run(*words: str) -> tuple[int, str]:
        given = main.parser().parse_args(["db", "online_data_migrations", *words])
        return given.command.run(Options(), given), capsys.readouterr().out
    return run


def add_old(stores: Stores, count: int = 1) -> list[str]:
    """Servers whose ledger rows an older release wrote."""
    uuids = add_ledger(stores.api, count)
    add_servers(stores.cell, *[server_row(uuid=uuid, image_id="image") for uuid in uuids])
    return uuids


def lacking(stores: Stores) -> int:
    with stores.api.reading() as tx:
        return tx.execute(sa.select(sa.func.count()).where(api.ledger.c.classes.is_(None))).scalar_one()


def walk(stores: Stores) -> rows.Walk:
    with stores.cell.reading() as tx:
        return rows.walk(tx, data_migrations.walk_of(LEDGER_FACTS))


def register(stores: Stores, release: str) -> None:
    stores.cell.transact(lambda tx: tx.execute(sa.insert(cell.services).values(
        uuid=new_uuid(), host=f"host-{release}", binary="nova-conductor", release=release, created_at=later(0))))


def test_command_when_rows_are_old_then_they_say_what_their_servers_are(stores: Stores, manage: Any) -> None:
    [uuid] = add_old(stores)
    assert manage() == (0, TABLE.format(1) + "1 rows were changed.\n")
    with stores.api.reading() as tx:
        row = tx.execute(sa.select(api.ledger).where(api.ledger.c.server_uuid == uuid)).one()
    assert (row.facts.flavor.name, row.facts.image_id) == ("m1", "image")
    assert row.classes == {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    assert manage() == (0, TABLE.format(0) + "No rows need changes.\n") and walk(stores).done


def test_turns_when_pages_are_small_then_each_goes_on_where_the_last_one_stopped(stores: Stores, monkeypatch: Any
                                                                                ) -> None:
    monkeypatch.setattr(data_migrations, "PAGE", 2)
    add_old(stores, 5)
    for left in (3, 1, 0):
        outcome = data_migrations.turn(stores, LEDGER_FACTS)
        assert outcome is not None and not outcome.clean and lacking(stores) == left
    assert not walk(stores).done, "rows were found in this pass"
    assert [outcome.clean for _ in range(3) if (outcome := data_migrations.turn(stores, LEDGER_FACTS))] == [
        False, False, True]
    assert walk(stores).done


def test_turn_when_it_died_in_its_page_then_the_next_one_does_the_page_again(stores: Stores, monkeypatch: Any) -> None:
    add_old(stores, 3)
    written = rows.describe
    with monkeypatch.context() as patch:
        patch.setattr(rows, "describe", lambda tx, **words: written(tx, **words) and (_ for _ in ()).throw(
            KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            data_migrations.turn(stores, LEDGER_FACTS)
    assert data_migrations.turn(stores, LEDGER_FACTS) is None, "its turn is not over yet"
    stores.cell.transact(lambda tx: tx.execute(sa.update(cell.audit_walks).values(taken_until=later(-1))))
    outcome = data_migrations.turn(stores, LEDGER_FACTS)
    assert outcome is not None and outcome.changed == 3 and lacking(stores) == 0


def test_turn_when_another_process_has_it_then_nothing_is_done(stores: Stores) -> None:
    add_old(stores)
    stores.cell.transact(lambda tx: rows.take_turn(tx, data_migrations.walk_of(LEDGER_FACTS), 50))
    assert data_migrations.turn(stores, LEDGER_FACTS) is None and lacking(stores) == 1


@pytest.mark.parametrize(("release", "done"), [("0.1.0", False), ("", False), (RELEASE, True)])
def test_migration_when_a_daemon_of_an_older_release_is_there_then_it_is_not_over(stores: Stores, release: str,
                                                                                 done: bool, manage: Any) -> None:
    register(stores, release)
    assert manage()[0] == 0 and walk(stores).done == done
    add_old(stores)
    assert manage()[1].splitlines()[-1] == ("No rows need changes." if done else "1 rows were changed.")


def test_command_when_the_count_is_limited_then_it_stops_there_and_says_so(stores: Stores, manage: Any,
                                                                          monkeypatch: Any) -> None:
    monkeypatch.setattr(data_migrations, "PAGE", 2)
    add_old(stores, 5)
    code, said = manage("--max-count", "2")
    assert code == 1 and "--max-count was reached" in said and lacking(stores) == 3
    assert manage("--max-count", "0")[0] == 127
    assert manage("--max-count", "100")[0] == 0 and lacking(stores) == 0


def test_command_when_a_page_fails_then_it_says_so_and_a_repetition_goes_on(stores: Stores, manage: Any,
                                                                           monkeypatch: Any) -> None:
    add_old(stores)

    def away(tx: Any, **words: Any) -> bool:
        raise errors.Unavailable("The database does not answer.")
    with monkeypatch.context() as patch:
        patch.setattr(rows, "describe", away)
        code, said = manage()
    assert code == 2 and "does not answer" in said
    stores.cell.transact(lambda tx: tx.execute(sa.update(cell.audit_walks).values(taken_until=later(-1))))
    assert manage()[0] == 0 and lacking(stores) == 0


def test_status_when_rows_are_old_then_it_warns_until_they_are_changed(stores: Stores, manage: Any, monkeypatch: Any
                                                                       ) -> None:
    monkeypatch.setattr(upgrade_checks, "serving",
                        lambda options, schema: stores.api if schema == "api" else stores.cell)
    assert upgrade_checks.data_migrations(Options()) == upgrade_checks.WELL
    add_old(stores)
    found = upgrade_checks.data_migrations(Options())
    assert found.result is upgrade_checks.Result.WARNING and "ledger_facts" in str(found.details)
    manage()
    assert upgrade_checks.data_migrations(Options()) == upgrade_checks.WELL
