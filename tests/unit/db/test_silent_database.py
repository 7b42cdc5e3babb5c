"""A database server that takes connections and says nothing is away, within a bound."""

from __future__ import annotations

import socket
import time
import types
from pathlib import Path

import pytest

from nova.db.sql import engine
from nova.db.sql.engine import Database, DatabaseUnavailable

pytestmark = pytest.mark.in_turn(1, 5)  # waits for time-outs


@pytest.mark.parametrize("patience", ["CONNECT_S", "url"])
def test_server_when_it_never_answers_then_it_is_away_in_time(patience: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_S", 2 if patience == "CONNECT_S" else 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = Database(f"postgresql://nova@127.0.0.1:{silent.getsockname()[1]}/cell"
                            + ("?connect_timeout=2" if patience == "url" else ""))
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable) as away, database.reading():
            pass
        assert time.monotonic() - started < 10
        database.dispose()
        assert away.value.message == "The database does not answer. Try again later."
        assert "timeout" in away.value.reason and not away.value.data


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_check_when_the_server_never_answers_then_it_ends_in_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_S", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        assert not Database(f"{kind}://nova@127.0.0.1:{silent.getsockname()[1]}/cell").answers()
        assert time.monotonic() - started < 10


def test_check_when_there_is_a_database_then_it_answers(tmp_path: Path) -> None:
    assert Database(f"sqlite:///{tmp_path}/cell").answers()
    assert not Database(f"sqlite:///{tmp_path}/absent/cell").answers()
    assert not Database("mysql://nova@127.0.0.1:1/cell").answers()
    assert not Database("nothing://nova@127.0.0.1/cell").answers()  # an error would end the thread that tries the cell


def test_database_when_nobody_listens_then_its_place_is_in_the_log_and_not_in_the_message(
        caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic() + 1.1 * engine.LOG_AGAIN_S  # whatever other tests logged
    monkeypatch.setattr(engine, "time", types.SimpleNamespace(monotonic=lambda: now))
    database = Database("mysql://nova:secret@127.0.0.1:1/cell")
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable) as away, database.reading():
            pass
        assert "127.0.0.1" not in away.value.message and "127.0.0.1" in away.value.reason
    assert len(caplog.records) == 1, "one line for many requests"
    assert "127.0.0.1" in caplog.text and "secret" not in caplog.text
