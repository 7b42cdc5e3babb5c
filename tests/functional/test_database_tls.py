"""TLS of connections to a real MariaDB, whose URL does not ask for it: as the server offers it, and prepared once."""

from __future__ import annotations

import shutil
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova.db.sql.engine import Database
from tests.fakes.console_papers import Authority
from tests.functional.backends import Absent, MariaDB

CONNECTIONS = 3


@pytest.fixture(scope="module", params=["offered", "not offered"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[MariaDB, bool]]:
    root, offered = Path(tempfile.mkdtemp(prefix="nova-mariadb-")), request.param == "offered"
    root.chmod(0o755)  # for the database's user
    try:
        made = MariaDB(root, _with_tls(root) if offered else ["--skip-ssl"])
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    yield made, offered
    made.close()
    shutil.rmtree(root, ignore_errors=True)


def _with_tls(root: Path) -> list[str]:
    files = Authority(root).issue("server", server=True)
    for file in files:
        Path(file).chmod(0o644)
    return [f"--ssl-cert={files.cert}", f"--ssl-key={files.key}"]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the system's certificates were loaded."""
    found: list[int] = []
    real = ssl.SSLContext.load_default_certs

    def load(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        found.append(1)
        real(context, purpose)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", load)
    return found


def ciphers(database: Database) -> list[str]:
    """The cipher of each of several connections; empty: none."""
    opened = [database.engine.connect() for _ in range(CONNECTIONS)]
    try:
        return [one.execute(sa.text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")).one()[1] for one in opened]
    finally:
        for one in opened:
            one.close()


def test_connections_when_the_url_does_not_say_then_as_the_server_offers_and_prepared_once(
        server: tuple[MariaDB, bool], loaded: list[int]) -> None:
    database = Database(server[0].create("asked"))
    loaded.clear()
    found = ciphers(database)
    assert [bool(cipher) for cipher in found] == [server[1]] * CONNECTIONS
    assert len(loaded) == 1
    database.dispose()


def test_connections_when_the_url_has_options_of_tls_then_they_decide(server: tuple[MariaDB, bool]) -> None:
    database = Database(f"{server[0].create('plain')}?ssl_disabled=true")
    assert ciphers(database) == [""] * CONNECTIONS
    database.dispose()
