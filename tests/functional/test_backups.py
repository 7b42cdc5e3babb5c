"""``nova-manage backup`` and ``restore``: the databases of a living cloud, and a cloud that goes on from older ones."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.schema.backup import TABLES, BackupFile
from nova.db.sql.engine import Database
from nova.db.sql.types import Json
from tests.functional.backends import KINDS, Absent
from tests.functional.cloud import HOST_SECRET_KEY, Cloud, Plan, render

pytestmark = pytest.mark.in_turn(0, 10)

BACKUPS = 3  # while servers come and go


@pytest.fixture(scope="module", params=list(KINDS))
def cloud(request: pytest.FixtureRequest, make_cloud) -> Cloud:
    return make_cloud(Plan(database=request.param, computes=2, upstream=False)).start()


@pytest.fixture(autouse=True)
def empty(cloud: Cloud) -> Any:
    yield
    cloud.empty()


def new_databases(cloud: Cloud, kind: str) -> dict[str, str]:
    try:
        server = cloud.backends.database(kind)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    name = f"again_{os.urandom(3).hex()}"
    return {"api_database": server.create(f"{name}_api"), "database": server.create(f"{name}_cell")}


def configure_restored(cloud: Cloud, urls: dict[str, str]) -> str:
    """A host's files whose databases are these; the host's name."""
    cloud.configure("ctlnew")
    secret = cloud.root / "etc" / "ctlnew" / "nova-conductor.conf"
    secret.write_text(render({**{name: {"connection": url} for name, url in urls.items()},
                              "conductor": {"host_secret_key": HOST_SECRET_KEY}}))
    return "ctlnew"


def rows_of(urls: dict[str, str]) -> dict[str, list[Any]]:
    found = {}
    for schema, url in (("api", urls["api_database"]), ("cell", urls["database"])):
        database = Database(url)
        with database.reading() as tx:
            for table in TABLES[schema].sorted_tables:
                raw = [sa.type_coerce(column, sa.Text) if isinstance(column.type, Json) else column
                       for column in table.columns]
                rows = tx.execute(sa.select(*raw).order_by(*table.primary_key.columns))
                found[f"{schema}.{table.name}"] = [tuple(row) for row in rows]
        database.dispose()
    return found


#: What a restore changes on purpose.
ADAPTED = {"api.ledger", "cell.servers", "cell.operations", "cell.owed", "cell.runners", "cell.console_tokens"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", list(KINDS))
def test_restore_when_the_database_is_of_any_make_then_every_row_is_as_it_was(cloud: Cloud, tmp_path: Path, kind: str
                                                                             ) -> None:
    cloud.api().boot("vm ä \N{SNOWMAN} 'quoted'", metadata={"k": "v\n\t"})
    for daemon in cloud.daemons.values():
        daemon.hang()  # so that nothing is written between the two looks
    try:
        file = tmp_path / "backup"
        said = cloud.manage("backup", str(file))
        before = rows_of(cloud.database_urls)
    finally:
        for daemon in cloud.daemons.values():
            daemon.wake()
    assert "at one moment" in said and file.stat().st_mode & 0o777 == 0o600
    urls = new_databases(cloud, kind)
    host = configure_restored(cloud, urls)
    assert "Repeat with --yes" in cloud.manage("restore", str(file), host=host)
    cloud.manage("restore", str(file), "--yes", host=host)
    after = rows_of(urls)
    assert {name: rows for name, rows in after.items() if name not in ADAPTED} == {
        name: rows for name, rows in before.items() if name not in ADAPTED}
    assert {name: len(rows) for name, rows in after.items()} == {
        name: 0 if name in ("cell.runners", "cell.console_tokens") else len(rows) for name, rows in before.items()}
    assert "not empty" in cloud.manage("restore", str(file), "--yes", host=host, code=1)


def test_backup_when_the_cloud_is_busy_then_each_server_has_its_ledger_row_and_its_operation(cloud: Cloud,
                                                                                            tmp_path: Path) -> None:
    stop = threading.Event()

    def work(number: int) -> None:
        api = cloud.api(f"user{number}", f"project{number}")
        while not stop.wait(0.05):  # a cloud without rest would starve the backups, and other tests' clouds
            api.delete(api.boot(f"vm{number}")["id"])
    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    try:
        for number in range(BACKUPS):
            time.sleep(0.3)
            cloud.manage("backup", str(tmp_path / f"backup{number}"))
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    for number in range(BACKUPS):
        file = BackupFile(tmp_path / f"backup{number}")
        file.check()
        found = {f"{schema}.{table.name}": [row for batch in rows for row in batch]
                 for schema, table, rows in file.tables()}
        alive = {row["uuid"] for row in found["cell.servers"] if not row["deleted"]}
        ledger = {row["server_uuid"] for row in found["api.ledger"]}
        assert alive <= ledger, "a server without its ledger row would never be counted, nor given up"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("harm", ["cut", "changed", "other", "none"])
def test_restore_when_the_file_is_not_whole_then_it_is_refused_and_nothing_is_written(cloud: Cloud, tmp_path: Path,
                                                                                     harm: str) -> None:
    file = tmp_path / "backup"
    cloud.manage("backup", str(file))
    assert "exists already" in cloud.manage("backup", str(file), code=1)
    lines = gzip.decompress(file.read_bytes()).split(b"\n")
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:-40])
    elif harm == "changed":  # a row is lost
        at = next(number for number, line in enumerate(lines) if line.startswith(b"["))
        file.write_bytes(gzip.compress(b"\n".join(lines[:at] + lines[at + 1:])))
    elif harm == "other":
        file.write_bytes(gzip.compress(json.dumps({"something": "else"}).encode()))
    else:
        file.unlink()
    urls = new_databases(cloud, cloud.plan.database)
    said = cloud.manage("restore", str(file), "--yes", host=configure_restored(cloud, urls), code=1)
    assert "cannot be read as a backup" in said and "Traceback" not in said
    with Database(urls["database"]).reading() as tx:
        assert sa.inspect(tx).get_table_names() == []
