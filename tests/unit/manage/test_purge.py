"""``nova-manage db purge``: dates are UTC wherever the operator sits."""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.db.engine import Database
from nova.db.models import api, cell
from nova.manage import database_commands
from nova.model.base import utcnow
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import add_servers, server_row


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Database]]:
    made = {name: QuickDatabase(tmp_path / name) for name in ("api", "cell")}
    api.metadata.create_all(made["api"].engine)
    cell.metadata.create_all(made["cell"].engine)
    monkeypatch.setattr(database_commands, "database_of", lambda _options, schema: made[schema])
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
