"""The revisions of the schemas, read without Alembic, are those that Alembic finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from nova import errors
from nova.db.schema import migrate, revisions
from nova.db.sql.engine import Database


@pytest.mark.parametrize("schema", revisions.SCHEMAS)
def test_known_then_it_is_the_history_that_alembic_walks(schema: str) -> None:
    config = Config()
    config.set_main_option("script_location", os.fspath(revisions.folder(schema)))
    config.set_main_option("path_separator", "os")
    walked = [one.revision for one in ScriptDirectory.from_config(config).walk_revisions()]
    assert list(revisions.known(schema)) == walked[::-1] and revisions.newest(schema) == walked[0]


HEAD = 'revision = "{}"\ndown_revision = {}\n'


@pytest.mark.parametrize("files", [{}, {"0001": "None", "0003": '"0002"'}], ids=["empty", "a file is missing"])
def test_known_when_the_history_is_incomplete_then_that_is_a_bug_and_no_revision(
        files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions").mkdir()
    for name, follows in files.items():
        (tmp_path / "versions" / f"{name}.py").write_text(HEAD.format(name, follows))
    # the place of the history is the code's own
    monkeypatch.setattr(revisions, "folder", lambda _schema: tmp_path)
    with pytest.raises(errors.Bug, match="incomplete"):
        revisions.known("cell")


@pytest.mark.parametrize("schema", revisions.SCHEMAS)
def test_check_when_a_database_is_migrated_then_current_is_what_was_asked_for(schema: str, tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/one")
    assert revisions.current(schema, database) is None
    with pytest.raises(errors.daemon.DbSchemaBehind, match="nothing"):
        revisions.check(schema, database)
    migrate.sync(schema, database, "0002")
    assert revisions.current(schema, database) == "0002"
    with pytest.raises(errors.daemon.DbSchemaBehind, match="0002"):
        revisions.check(schema, database)
    migrate.sync(schema, database)
    revisions.check(schema, database)
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {revisions.version_table(schema)} SET version_num = '9999'")
    revisions.check(schema, database)  # a newer release, in the middle of an upgrade
    database.dispose()
