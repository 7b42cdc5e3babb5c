"""nova-manage cell_v2 with several cells, each of which has a database of its own."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from nova.db.host import cell_mappings
from nova.db.models import api as api_tables
from nova.db.sql.engine import Database
from nova.model.host.cells import CELL, CELL0, CellMapping
from nova.model.security.secret_wrap import MARK, new_key
from tests.fakes.rows import add_servers, new_uuid, server_row
from tests.unit.manage.tool_scene import BROKER, Tool, tool

__all__ = ["tool"]

NOWHERE = "00000000-0000-4000-8000-00000000ffff"


def urls(tool: Tool, name: str) -> str:
    """A cell's URLs, as options."""
    return f"--transport-url rabbit://nova:own-word@broker/{name} --database_connection {tool.url(name)}"


def on_api(tool: Tool, work: Callable[[sa.Connection], object]) -> object:
    """The result of ``work`` in the api database."""
    database = Database(tool.url("nova_api"))
    found = database.transact(work)
    database.dispose()
    return found


def records(tool: Tool) -> dict[str, CellMapping]:
    """The records by name, as the database has them."""
    found = on_api(tool, cell_mappings.by_uuid)
    assert isinstance(found, dict)
    return {one.name: one for one in found.values()}


def entries(tool: Tool) -> list[str]:
    return [name for name, one in records(tool).items() if one.is_entry]


@pytest.fixture
def two(tool: Tool) -> Tool:
    """A cloud with two cells: "west" is the first."""
    tool.write("west.conf", "west", api=True)
    tool.write("east.conf", "east")
    tool.sync(nova_api="api", west="cell", east="cell")
    tool.ok("west.conf", "cell_v2 create_cell --name west")
    tool.ok("west.conf", f"cell_v2 create_cell --name east {urls(tool, 'east')}")
    return tool


def uuid_of(tool: Tool, name: str) -> str:
    return records(tool)[name].uuid


# -- several cells

def test_create_cell_when_it_is_the_second_then_it_has_its_own_uuid_and_encrypted_urls(two: Tool) -> None:
    found = records(two)
    assert found["west"].uuid == CELL != uuid_of(two, "east") and re.fullmatch(r"[0-9a-f-]{36}", found["east"].uuid)
    assert all(url and url.startswith(MARK) for cell in found.values() for url in cell[2:4])
    assert b"-word" not in (two.folder / "nova_api").read_bytes()
    masked = two.ok("west.conf", "cell_v2 list_cells")
    shown = two.ok("west.conf", "cell_v2 list_cells --verbose")
    assert "-word" not in masked and "rabbit://nova:****@broker/east" in masked
    assert BROKER in shown and "rabbit://nova:own-word@broker/east" in shown and two.url("east") in shown


@pytest.mark.parametrize("option", range(2))
def test_create_cell_when_it_shares_a_database_or_a_broker_then_it_already_exists(two: Tool, option: int) -> None:
    shared = f"--{urls(two, 'east').split('--')[option + 1]}"
    other = f"--{urls(two, 'north').split('--')[2 - option]}"
    code, said = two.call("west.conf", f"cell_v2 create_cell --name north {shared} {other}")
    assert code == 2 and "already exists: east" in said and set(records(two)) == {"east", "west"}
    assert two.call("west.conf", f"cell_v2 create_cell --name east {urls(two, 'north')}")[0] == 0, "names are free"


def test_create_cell_when_two_run_at_once_then_one_of_them_finds_the_others(two: Tool) -> None:
    from nova.manage.cell_store import CellStore
    from nova.model.host.cell_urls import CellUrls

    start, found = threading.Barrier(2), list[bool]()
    database = Database(two.url("nova_api"))
    store = CellStore.of(two.options("west.conf"), database)
    wrap = store.writer()

    def create() -> None:
        start.wait()
        found.append(store.create(wrap, "north", CellUrls("rabbit://h/north", two.url("north")))[1])
    threads = [threading.Thread(target=create) for _turn in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.dispose()
    assert sorted(found) == [False, True] and len(records(two)) == 3


# -- the state

def test_cell_when_it_is_disabled_or_enabled_then_the_list_shows_it(two: Tool) -> None:
    uuid = uuid_of(two, "east")
    before = records(two)["east"][2:4]
    for words, said, disabled in (("--disable", "is updated.", True), ("--disable", "was already disabled", True),
                                  ("--enable", "is updated.", False), ("--enable", "was already enabled", False)):
        assert said in two.ok("west.conf", f"cell_v2 update_cell --cell_uuid {uuid} {words}")
        row = next(line for line in two.ok("west.conf", "cell_v2 list_cells").splitlines() if " east " in line)
        assert row.split("|")[5].strip() == str(disabled)
    assert records(two)["east"][2:4] == before, "the configured URLs are those of west"
    two.ok("west.conf", f"cell_v2 create_cell --name north --disabled {urls(two, 'north')}")
    assert records(two)["north"].disabled and not records(two)["west"].disabled


def test_update_cell_when_another_cell_has_the_url_then_3_and_nothing_changes(two: Tool) -> None:
    before = records(two)
    code, said = two.call("west.conf", f"cell_v2 update_cell --cell_uuid {CELL} --name x {urls(two, 'east')}")
    assert code == 3 and "east" in said and records(two) == before


def test_update_cell_when_the_file_is_another_cells_then_the_urls_stay(two: Tool) -> None:
    before = records(two)["east"]
    text = (two.folder / "west.conf").read_text()
    (two.folder / "west.conf").write_text(text.replace("h1:5672", "moved:5672").replace("h2:5672", "moved:5673"))
    two.ok("west.conf", f"cell_v2 update_cell --cell_uuid {before.uuid} --name north")
    assert records(two)["north"] == before._replace(name="north")
    two.ok("west.conf", f"cell_v2 update_cell --cell_uuid {CELL}")
    assert "moved:5672" in two.ok("west.conf", "cell_v2 list_cells --verbose")


# -- the entry

@pytest.mark.parametrize("words", ["map_cell0 --database_connection {cell0}", "map_cell0",
                                   f"update_cell --cell_uuid {CELL0}", "simple_cell_setup", "map_cell_and_hosts"])
def test_cell0_when_the_configured_database_is_its_own_then_it_becomes_the_entry(tool: Tool, words: str) -> None:
    tool.write("api", "nova_cell0", api=True)
    tool.write("cell", "nova", api=True)
    tool.ok("api", "api_db sync")
    tool.ok("cell", "cell_v2 create_cell --name cell1")
    if "connection" not in words:
        tool.ok("cell", "cell_v2 map_cell0")
        assert entries(tool) == []
    tool.ok("api", f"cell_v2 {words.format(cell0=tool.url('nova_cell0'))}")
    assert entries(tool) == ["cell0"]
    tool.ok("cell", "cell_v2 map_cell0")
    tool.ok("cell", f"cell_v2 update_cell --cell_uuid {CELL0} --database_connection {tool.url('other')}")
    assert entries(tool) == ["cell0"], "it never goes back by itself"


def test_cell0_when_it_has_no_database_of_its_own_then_the_first_cell_stays_the_entry(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    tool.ok("nova.conf", "api_db sync")
    tool.ok("nova.conf", f"cell_v2 map_cell0 --database_connection {tool.url('nova')}")
    assert entries(tool) == ["cell0"], "no other cell is recorded"
    tool.ok("nova.conf", "cell_v2 create_cell --name cell1")
    assert entries(tool) == ["cell1"]
    tool.ok("nova.conf", "cell_v2 map_cell0")
    assert entries(tool) == ["cell1"]


# -- hosts and servers

def test_hosts_when_cells_have_databases_of_their_own_then_all_are_listed_by_cell(two: Tool) -> None:
    two.add_host("west", "b")
    two.add_host("west", "a")
    two.add_host("east", "c")
    east = uuid_of(two, "east")
    rows = [[word.strip() for word in line.split("|")[1:-1]]
            for line in two.ok("west.conf", "cell_v2 list_hosts").splitlines()[3:-1]]
    assert rows == [["east", east, "c"], ["west", CELL, "a"], ["west", CELL, "b"]]
    assert " a " not in two.ok("west.conf", f"cell_v2 list_hosts --cell_uuid {east}")
    assert f"Host c is in cell east ({east})." in two.ok("west.conf", "cell_v2 discover_hosts --verbose")
    assert "Host c" not in two.ok("west.conf", f"cell_v2 discover_hosts --verbose --cell_uuid {CELL}")
    code, said = two.call("west.conf", "cell_v2 delete_host --host c")
    assert code == 4 and "leaves cell east" in said
    assert two.call("west.conf", f"cell_v2 delete_host --host c --cell_uuid {CELL}")[0] == 2
    assert two.call("west.conf", "cell_v2 delete_host --host z")[0] == 2


def test_hosts_when_a_cell_does_not_answer_then_a_line_says_so_and_the_others_are_listed(two: Tool) -> None:
    two.add_host("west", "a")
    away = "mysql://nova:secret-word@127.0.0.1:1/north"
    two.ok("west.conf", "cell_v2 create_cell --name north --transport-url rabbit://h/north "
                        f"--database_connection {away}")
    two.ok("west.conf", f"cell_v2 create_cell --name south {urls(two, 'south')}")  # without tables
    lines = two.ok("west.conf", "cell_v2 list_hosts").splitlines()
    assert [line[:27] for line in lines[-2:]] == ["cell north does not answer:", "cell south does not answer:"]
    assert " a " in lines[3] and "secret-word" not in "".join(lines)
    assert two.ok("west.conf", "cell_v2 discover_hosts --verbose").count("does not answer") == 2


@pytest.mark.parametrize("name", ["west", "east"])
def test_verify_instance_when_the_server_is_in_a_cell_then_the_cell_is_named(two: Tool, name: str) -> None:
    database = Database(two.url(name))
    [found] = add_servers(database, server_row())
    database.dispose()
    known = {"west": "", "east": uuid_of(two, "east")}[name]
    ledgered, gone = new_uuid(), new_uuid()
    on_api(two, lambda tx: tx.execute(sa.insert(api_tables.ledger).values([
        {"server_uuid": uuid, "project_id": "p", "user_id": "u", "cell": known, "vcpus": 1, "memory_mb": 1,
         "closed": uuid == gone, "created_at": sa.func.now()} for uuid in (ledgered, gone)])))
    for uuid in (found, ledgered):
        assert f"is in cell {name} (" in two.ok("west.conf", f"cell_v2 verify_instance --uuid {uuid}")
        assert two.ok("west.conf", f"cell_v2 verify_instance --uuid {uuid} --quiet") == ""
    assert two.call("west.conf", f"cell_v2 verify_instance --uuid {gone}")[0] == 1


def test_delete_cell_when_its_own_database_has_hosts_or_servers_then_the_record_stays(two: Tool) -> None:
    east = uuid_of(two, "east")
    two.add_host("east", "c")
    assert two.call("west.conf", f"cell_v2 delete_cell --cell_uuid {east}")[0] == 2
    database = Database(two.url("east"))
    add_servers(database, server_row())
    assert two.call("west.conf", f"cell_v2 delete_cell --cell_uuid {east} --force")[0] == 3
    with database.engine.begin() as tx:
        tx.execute(sa.text("delete from servers"))
    database.dispose()
    assert "1 compute hosts stay registered" in two.ok("west.conf", f"cell_v2 delete_cell --cell_uuid {east} --force")
    assert set(records(two)) == {"west"}


def test_delete_cell_when_its_database_is_away_then_4_and_with_force_the_ledger_decides(two: Tool) -> None:
    two.ok("west.conf", "cell_v2 create_cell --name north --transport-url rabbit://h/north --database_connection "
                   "mysql://nova:secret-word@127.0.0.1:1/north")
    north = uuid_of(two, "north")
    code, said = two.call("west.conf", f"cell_v2 delete_cell --cell_uuid {north}")
    assert code == 4 and "does not answer" in said and "secret-word" not in said
    rows = sa.insert(api_tables.ledger).values(server_uuid=new_uuid(), project_id="p", user_id="u", cell=north, vcpus=1,
                                               memory_mb=1, created_at=sa.func.now())
    on_api(two, lambda tx: tx.execute(rows))
    assert two.call("west.conf", f"cell_v2 delete_cell --cell_uuid {north} --force")[0] == 3
    on_api(two, lambda tx: tx.execute(sa.update(api_tables.ledger).values(closed=True)))
    assert two.call("west.conf", f"cell_v2 delete_cell --cell_uuid {north} --force")[0] == 0


# -- keys

def test_cells_when_a_key_is_configured_then_only_files_with_it_read_them(
        tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {"right": new_key(), "wrong": new_key()}
    for file, key in keys.items():
        tool.write(file, "nova", api=True)
        with (tool.folder / file).open("a") as opened:
            opened.write(f"[conductor]\nhost_secret_key = {key}\n")
    for words in ("api_db sync", "cell_v2 map_cell0", "cell_v2 create_cell --name cell1"):
        tool.ok("right", words)
    assert BROKER in tool.ok("right", "cell_v2 list_cells --verbose")
    wrong = tool.ok("wrong", "cell_v2 list_cells")
    assert BROKER not in wrong and wrong.count(" undecryptable ") == 3 and " none:/// " in wrong
    assert tool.call("wrong", "cell_v2 list_hosts")[1].count("[conductor]host_secret_key") == 1
    tool.ok("wrong", f"cell_v2 update_cell --cell_uuid {CELL}")
    assert BROKER in tool.ok("wrong", "cell_v2 list_cells --verbose")


def test_wrong_key_when_cells_are_listed_then_one_line_on_standard_error_names_the_option(
        tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    from nova.manage import main

    tool.write("nova.conf", "nova", api=True)
    for words in ("api_db sync", "cell_v2 map_cell0", "cell_v2 create_cell"):
        tool.ok("nova.conf", words)
    options = tool.options("nova.conf")
    options.set_override("host_secret_key", [new_key()], "conductor")  # type: ignore[attr-defined]
    on_api(tool, lambda tx: tx.execute(sa.delete(api_tables.api_settings)))
    given = main.parser().parse_args(["cell_v2", "list_cells"])
    assert given.command.run(options, given) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "[conductor]host_secret_key" in err


def test_cells_when_the_databases_password_changed_then_update_cell_makes_another_key(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for words in ("api_db sync", "cell_v2 map_cell0", "cell_v2 create_cell --name cell1"):
        tool.ok("nova.conf", words)
    with sqlite3.connect(tool.folder / "nova_api") as database:  # SQLite's password is its URL
        database.execute("vacuum into ?", (str(tool.folder / "moved_api"),))
    text = (tool.folder / "nova.conf").read_text()
    (tool.folder / "nova.conf").write_text(text.replace("/nova_api", "/moved_api"))
    assert " undecryptable " in tool.ok("nova.conf", "cell_v2 list_cells")
    assert "already setup" in tool.ok("nova.conf", "cell_v2 map_cell0")
    assert tool.call("nova.conf", "cell_v2 create_cell --name cell1")[0] == 2
    tool.ok("nova.conf", "db sync")
    for uuid in (CELL, CELL0):
        tool.ok("nova.conf", f"cell_v2 update_cell --cell_uuid {uuid}")
    assert " undecryptable " not in tool.ok("nova.conf", "cell_v2 list_cells")
    assert BROKER in tool.ok("nova.conf", "cell_v2 list_cells --verbose")


def test_create_cell_when_hosts_have_a_vhost_of_their_own_then_it_is_the_cells_broker(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    text = (tool.folder / "nova.conf").read_text()
    own = "rabbit://conductor:hosts-word@h1/nova-hosts"
    (tool.folder / "nova.conf").write_text(text.replace("[DEFAULT]\n", f"[DEFAULT]\nhosts_transport_url = {own}\n"))
    tool.ok("nova.conf", "api_db sync")
    tool.ok("nova.conf", "cell_v2 create_cell")
    listed = tool.ok("nova.conf", "cell_v2 list_cells --verbose")
    assert f" {own} " in listed and BROKER not in listed


# -- a first cell without a record

@pytest.fixture
def unrecorded(tool: Tool) -> Tool:
    """A cloud whose only cell, "west", has a host but no record, and the schema of another one, "east"."""
    tool.write("west.conf", "west", api=True)
    tool.write("east.conf", "east", api=True)
    tool.sync(nova_api="api", west="cell", east="cell")
    on_api(tool, lambda tx: tx.execute(sa.insert(api_tables.providers).values(
        uuid=new_uuid(), name="h1", host="h1", host_id=new_uuid())))
    return tool


def test_create_cell_when_the_first_cell_has_no_record_then_both_are_recorded(unrecorded: Tool) -> None:
    unrecorded.ok("west.conf", f"cell_v2 create_cell --name east {urls(unrecorded, 'east')}")
    found = records(unrecorded)
    assert found["cell1"].uuid == CELL != found["east"].uuid
    assert unrecorded.url("west") in unrecorded.ok("west.conf", "cell_v2 list_cells --verbose")


def test_create_cell_when_another_cells_file_is_used_before_the_first_ones_then_it_is_refused(
        unrecorded: Tool) -> None:
    code, said = unrecorded.call("east.conf", "cell_v2 create_cell --name east")
    assert code == 1 and "The first cell has hosts but no record" in said and not records(unrecorded)
