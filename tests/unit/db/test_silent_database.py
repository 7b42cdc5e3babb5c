"""A database server that takes connections and says nothing is away, within a bound."""

from __future__ import annotations

import socket
import time

import pytest

from nova.db import engine
from nova.db.engine import Database, DatabaseAway


@pytest.mark.parametrize("patience", ["CONNECT_S", "url"])
def test_server_when_it_never_answers_then_it_is_away_in_time(patience: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_S", 2 if patience == "CONNECT_S" else 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = Database(f"postgresql://nova@127.0.0.1:{silent.getsockname()[1]}/cell"
                            + ("?connect_timeout=2" if patience == "url" else ""))
        started = time.monotonic()
        with pytest.raises(DatabaseAway), database.reading():
            pass
        assert time.monotonic() - started < 10
        database.dispose()
