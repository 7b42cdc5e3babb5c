"""``nova-manage db purge``: dates are UTC wherever the operator sits."""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import errors
from nova.db.sql.engine import Database
from nova.manage import database_commands, databases
from nova.model.base import utcnow
from tests.fakes.databases import QuickDatabase, as_if_synced
from tests.fakes.rows import add_servers, server_row
from tests.unit.manage.test_doctor import options


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Database]]:
    made = {name: as_if_synced(name, QuickDatabase(tmp_path / name)) for name in ("api", "cell")}
    found = (made["api"], made["cell"], "")
    monkeypatch.setattr(database_commands, "stores", lambda _options: found)
    yield made
    for database in made.values():
        database.dispose()


@pytest.fixture(params=["America/New_York", "Asia/Tokyo"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def purge(**given: object) -> int:
    values = {"all": False, "before": None, "verbose": False, **given}
    return database_commands.purge(None, argparse.Namespace(**values))


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("suffix", ["", "+00:00"])
def test_purge_when_a_date_is_given_then_it_is_utc(stores: dict[str, Database], suffix: str) -> None:
    hour = datetime.timedelta(hours=1)
    add_servers(stores["cell"], server_row(deleted=1, deleted_at=utcnow() - 2 * hour))
    assert purge(before=(utcnow() - 3 * hour).isoformat() + suffix) == 3
    assert purge(before=(utcnow() - hour).isoformat() + suffix) == 0


@pytest.mark.parametrize("given, code", [({}, 1), ({"before": "yesterday"}, 2), ({"all": True}, 3)])
def test_purge_when_there_is_nothing_to_do_then_the_exit_code_says_so(stores, given, code) -> None:
    assert purge(**given) == code


@pytest.mark.parametrize("schema", ["api", "cell"])
def test_version_when_the_database_is_empty_or_at_a_revision_then_a_plain_number(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], schema: str) -> None:
    database = Database(f"sqlite:///{tmp_path}/db")
    monkeypatch.setattr(database_commands, "database_of", lambda _options, _schema: database)
    printed = []
    for number in (None, "2", "0003"):
        if number is not None:
            database_commands.sync(schema)(None, argparse.Namespace(version=number))
            capsys.readouterr()
        assert database_commands.version(schema)(None, argparse.Namespace()) == 0
        printed.append(capsys.readouterr().out)
    database.dispose()
    assert printed == ["0\n", "2\n", "3\n"]


@pytest.mark.parametrize(("schema", "url"), [("api", "api_database__connection"), ("cell", "database__connection")])
def test_database_when_the_other_one_has_no_url_then_it_is_opened_all_the_same(tmp_path: Path, schema: str,
                                                                              url: str) -> None:
    configured = options(**{url: f"sqlite:///{tmp_path}/own"})
    databases.database_of(configured, schema).dispose()
    with pytest.raises(errors.config.Missing):
        databases.database_of(configured, "cell" if schema == "api" else "api")
