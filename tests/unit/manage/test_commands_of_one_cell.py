"""Commands that work on one cell's database, in a cloud with several: they are about that cell's servers alone."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import cell_mappings
from nova.db.models import api
from nova.db.quota import ledger, server_cells
from nova.db.sql.engine import Database
from nova.manage import main
from nova.model.host.cells import CELL, CellMapping
from nova.model.security.secret_wrap import new_key
from tests.fakes.databases import as_if_synced
from tests.fakes.rows import add_provider, add_servers, new_uuid, server_row
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool"]

EAST = new_uuid()


class Scene(NamedTuple):
    tool: Tool
    api: Database
    east: Database
    consumer: str  # a server of the first cell, which has allocations

    def run(self, words: str) -> int:
        given = main.parser().parse_args(words.split())
        return int(given.command.run(self.tool.options("east.conf"), given))


@pytest.fixture
def scene(tool: Tool) -> Scene:
    """A configuration with the database of the second cell."""
    tool.write("east.conf", "east", api=True)
    with (tool.folder / "east.conf").open("a") as file:
        file.write(f"[conductor]\nhost_secret_key = {new_key()}\n")
    for schema, name in (("api", "nova_api"), ("cell", "nova"), ("cell", "east")):
        as_if_synced(schema, Database(tool.url(name))).dispose()
    made, consumer = Database(tool.url("nova_api")), new_uuid()
    for cell in (CellMapping(CELL, "west", "rabbit://h/west", tool.url("nova")),
                 CellMapping(EAST, "east", "rabbit://h/east", tool.url("east"))):
        made.transact(lambda tx, cell=cell: cell_mappings.put(tx, cell))
    provider = add_provider(made, "host1")
    made.transact(lambda tx: ledger.open_rows(tx, [{
        "server_uuid": consumer, "project_id": "p", "user_id": "u", "cell": CELL, "vcpus": 1, "memory_mb": 1,
        "facts": None, "classes": {}}]))
    made.transact(lambda tx: tx.execute(sa.update(api.ledger).values(created_at=sa.text("'2020-01-01 00:00:00'"))))
    made.transact(lambda tx: tx.execute(sa.insert(api.allocations).values(
        provider_id=provider, consumer=consumer, resource_class="VCPU", used=1)))
    return Scene(tool, made, Database(tool.url("east")), consumer)


@pytest.mark.parametrize("words", ["placement audit --delete", "placement rebuild"])
def test_repair_when_the_database_is_another_cells_then_the_first_cells_allocations_stay(
        scene: Scene, words: str) -> None:
    assert scene.run(words) == 0
    with scene.api.reading() as tx:
        assert tx.execute(sa.select(api.allocations.c.consumer)).scalars().all() == [scene.consumer]
    assert "cell east alone" in scene.tool.capsys.readouterr().err


def test_rebuild_when_the_database_is_another_cells_then_its_servers_are_counted_there(scene: Scene) -> None:
    uuid, = add_servers(scene.east, server_row())
    assert scene.run("api_db rebuild") == 0
    with scene.api.reading() as tx:
        assert server_cells.cells_of(tx, [uuid]) == {uuid: EAST}


@pytest.mark.parametrize("words", ["db archive_deleted_rows", "db purge --all", "db online_data_migrations"])
def test_command_when_there_are_several_cells_then_it_names_its_cell(scene: Scene, words: str) -> None:
    scene.run(words)
    assert "cell east alone" in scene.tool.capsys.readouterr().err


def test_command_when_no_recorded_cell_has_the_database_then_it_changes_nothing(scene: Scene) -> None:
    scene.api.transact(lambda tx: cell_mappings.put(tx, CellMapping(
        EAST, "east", "rabbit://h/east", scene.tool.url("elsewhere"))))
    with pytest.raises(errors.config.Unusable, match="update_cell"):
        scene.run("placement audit --delete")
