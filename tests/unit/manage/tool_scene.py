"""nova-manage and nova-status as a deployment tool calls them: with its own files, over databases that it makes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova import conf
from nova.cmd import tool_ending
from nova.conf._options import Options
from nova.db.models.cell import services
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from nova.manage import main, upgrade_checks
from nova.rpc import transport
from tests.fakes.databases import as_if_synced
from tests.fakes.rows import new_uuid

BROKER = "rabbit://nova:broker-word@h1:5672,nova:broker-word@h2:5672/nova"


class Tool(NamedTuple):
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def url(self, name: str) -> str:
        return f"sqlite:///{self.folder}/{name}"

    def write(self, file: str, database: str = "", api: bool = False, broker: bool = True) -> str:
        """A nova.conf as the tool renders it: of which databases, and whether with the broker."""
        lines = ["[DEFAULT]", *([f"transport_url = {BROKER}"] if broker else [])]
        lines += ["[database]", f"connection = {self.url(database)}"] if database else []
        lines += ["[api_database]", f"connection = {self.url('nova_api')}"] if api else []
        (self.folder / file).write_text("\n".join([*lines, ""]))
        return file

    def options(self, *files: str) -> Options:
        """Those of the files, the later one of which wins."""
        made = conf.register(cfg.ConfigOpts())
        made([], default_config_files=[str(self.folder / file) for file in files], default_config_dirs=[])
        transport.has_broker(made)  # it declares transport_url
        return made

    def call(self, files: str, words: str) -> tuple[int, str]:
        """The exit status, and what stands on standard output; nothing is on standard error but one line."""
        given = main.parser().parse_args(words.split())
        options = self.options(*files.split())
        code = tool_ending.status(options, main.BINARY, lambda: given.command.run(options, given))
        said = self.capsys.readouterr()
        assert said.err.count("\n") <= 1
        return code, said.out

    def ok(self, files: str, words: str) -> str:
        code, out = self.call(files, words)
        assert code == 0, out
        return out

    def sync(self, **schemas: str) -> None:
        """Create databases, quickly: name -> schema."""
        for name, schema in schemas.items():
            database = Database(self.url(name))
            as_if_synced(schema, database)
            database.dispose()

    def check(self, *files: str) -> dict[str, upgrade_checks.UpgradeFinding]:
        """What ``nova-status upgrade check`` finds."""
        return dict(upgrade_checks.check(self.options(*files)))

    def add_host(self, database: str, name: str) -> None:
        """A nova-compute that registered."""
        made = Database(self.url(database))
        with made.engine.begin() as tx:
            tx.execute(sa.insert(services).values(host=name, binary="nova-compute", uuid=new_uuid(),
                                                  created_at=utc_now()))
        made.dispose()


@pytest.fixture
def tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(tmp_path, capsys)
