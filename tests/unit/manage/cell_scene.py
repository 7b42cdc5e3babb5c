"""``nova-manage cell_v2`` over databases of a test's own, as a deployment tool calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from nova.conf._options import Options
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from nova.manage import cell_commands, databases, main, output
from nova.model.host.cell_urls import of_one_database
from nova.rpc import transport
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import new_uuid
from tests.unit.manage.test_doctor import options

BROKER = "rabbit://nova:broker-word@h1:5672,nova:broker-word@h2:5672/nova"
DATABASE = "mysql+pymysql://nova:db-word@db:3306/nova?charset=utf8"


class CellScene(NamedTuple):
    databases: dict[str, Database]
    options: Options
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> tuple[int, str]:
        """The exit status, and what stands on standard output."""
        given = main.parser().parse_args(["cell_v2", *words])
        return given.command.run(self.options, given), self.capsys.readouterr().out

    def listed(self) -> str:
        """What tools read."""
        code, text = self.run("list_cells", "--verbose")
        assert code == 0
        return text

    def add_hosts(self, *names: str, binary: str = "nova-compute") -> None:
        rows = [{"host": name, "binary": binary, "uuid": new_uuid(), "created_at": utc_now()} for name in names]
        with self.databases["cell"].engine.begin() as tx:
            for row in rows:
                tx.execute(sa.insert(cell_tables.services).values(row))

    def report(self, host: str) -> None:
        """What a host has, as the api database knows it."""
        with self.databases["api"].engine.begin() as tx:
            tx.execute(sa.insert(api_tables.providers).values(uuid=new_uuid(), name=host, host=host,
                                                              host_id=new_uuid()))


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[CellScene]:
    made: dict[str, Database] = {name: QuickDatabase(tmp_path / name) for name in ("api", "cell")}
    api_tables.metadata.create_all(made["api"].engine)
    cell_tables.metadata.create_all(made["cell"].engine)

    def open_cell(options: Options, url: str) -> Database:
        """The configured database is the test's own; others are real."""
        return made["cell"] if of_one_database(url, DATABASE) else databases.of_cell(options, url)
    rows = cell_commands.actions(lambda _options, schema: made[schema], open_cell, output.say, output.framed)
    monkeypatch.setitem(main.COMMANDS, "cell_v2", lambda: rows)
    configured = options(database__connection=DATABASE, api_database__connection="mysql://nova:api-word@db/nova_api")
    transport.has_broker(configured)  # it declares transport_url
    configured.set_override("transport_url", BROKER)
    yield CellScene(made, configured, capsys)
    for database in made.values():
        database.dispose()
