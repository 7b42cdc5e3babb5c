"""nova-manage cell_v2: scripts call it, and learn the truth of one cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova.model.host import cell_urls
from nova.model.host.cells import CELL, CELL0
from tests.fakes.rows import add_servers, server_row
from tests.unit.manage.cell_scene import BROKER, DATABASE, CellScene, cells

__all__ = ["cells"]

NOWHERE = "00000000-0000-4000-8000-00000000ffff"
OTHER = ("--transport-url", "rabbit://u:own-word@h9/v", "--database_connection", "mysql://u:own-word@d9/cell9")


@pytest.mark.parametrize("words", [
    "simple_cell_setup --transport-url rabbit://x", "map_cell0 --database_connection mysql://x", "map_cell0",
    "map_cell_and_hosts --name x --verbose", f"map_instances --cell_uuid {CELL} --max-count 5 --reset",
    f"discover_hosts --verbose --strict --by-service --cell_uuid {CELL}",
    f"update_cell --cell_uuid {CELL} --name x --enable"])
def test_command_when_it_is_repeated_then_it_succeeds_with_a_line_each_time(cells: CellScene, words: str) -> None:
    cells.report("compute1")
    for _again in range(3):
        code, text = cells.run(*words.split())
        assert code == 0 and text.count("\n") == 1


def test_list_cells_when_nothing_is_recorded_then_no_cell_is_made_up(cells: CellScene) -> None:
    text = cells.run("list_cells")[1]
    assert text.count("\n") == 4 and "cell" not in text.lower().replace("cell database", "")


def test_list_cells_when_hosts_report_then_the_one_cell_is_there_and_no_password(cells: CellScene) -> None:
    cells.report("compute1")
    text = cells.run("list_cells")[1]
    assert " cell1 " in text and CELL in text and "nova:****@db:3306/nova?charset=utf8" in text and "-word" not in text
    assert DATABASE in cells.listed() and BROKER in cells.listed() and CELL0 not in cells.listed()


def test_create_cell_when_it_has_no_name_then_the_first_column_is_blank(cells: CellScene) -> None:
    assert cells.run("create_cell", "--verbose") == (0, f"{CELL}\n")
    row = cells.listed().splitlines()[3]
    assert row.split("|")[1].strip() == "" and row.split("|")[2].strip() == CELL


@pytest.mark.parametrize(("first", "second", "code", "said"), [
    ((), (), 2, "already exists"), (("--name", "cell1"), ("--name", "cell1"), 2, "already exists"),
    (("--name", "a"), ("--name", "b"), 2, "already exists"),
    (("--name", "a"), ("--name", "b", *OTHER[:2]), 2, "already"),
    (("--name", "a"), ("--name", "b", *OTHER[2:]), 2, "already exists: a")])
def test_create_cell_when_one_is_recorded_then_the_exit_status_tells(
        cells: CellScene, first: tuple[str, ...], second: tuple[str, ...], code: int, said: str) -> None:
    assert cells.run("create_cell", *first)[0] == 0
    before = cells.listed()
    found = cells.run("create_cell", *second)
    assert found[0] == code and said in found[1] and cells.listed() == before


def test_create_cell_when_no_url_is_known_then_1_and_the_option(cells: CellScene) -> None:
    cells.options.set_override("connection", None, "database")
    assert cells.run("create_cell") == (1, "--database_connection is missing, and the configuration does not "
                                        "have it either.\n")


def test_recorded_url_when_it_is_the_configurations_then_its_password_is_in_no_row(cells: CellScene) -> None:
    assert cells.run("map_cell0", "--database_connection", cell_urls.with_suffix(DATABASE))[0] == 0
    assert cells.run("create_cell", "--database_connection", DATABASE, "--transport-url", BROKER)[0] == 0
    assert b"-word" not in Path(cells.databases["api"].engine.url.database or "").read_bytes()
    assert DATABASE.replace("/nova?", "/nova_cell0?") in cells.listed() and "none:///" in cells.listed()


@pytest.mark.parametrize(("words", "code", "said"), [
    (f"update_cell --cell_uuid {NOWHERE} --name x", 1, "Unknown cell"), ("update_cell --name x", 1, "Unknown cell"),
    (f"update_cell --cell_uuid {CELL} --disable --enable", 3, "at the same time"),
    (f"update_cell --cell_uuid {CELL0} --disable", 3, "Cell0 cannot be disabled"),
    (f"update_cell --cell_uuid {CELL0} --name x", 1, "Unknown cell"),
    (f"delete_cell --cell_uuid {NOWHERE}", 1, "Unknown cell"), ("delete_cell --cell_uuid=", 1, "Unknown cell"),
    (f"delete_cell --cell_uuid {CELL}", 2, "has 2 compute hosts"),
    (f"delete_host --cell_uuid {CELL} --host a", 4, "openstack compute service delete"),
    (f"delete_host --cell_uuid {NOWHERE} --host a", 1, "Unknown cell"),
    (f"delete_host --cell_uuid {CELL} --host z", 2, "not in the cell")])
def test_what_cannot_be_done_when_asked_for_is_refused_with_the_way(cells: CellScene, words: str, code: int,
                                                                    said: str) -> None:
    cells.add_hosts("b", "a")
    cells.report("b")
    found = cells.run(*words.split())
    assert found[0] == code and said in found[1]


def test_update_cell_when_urls_are_given_then_they_are_shown_until_it_is_said_without(cells: CellScene) -> None:
    cells.report("compute1")
    assert cells.run("update_cell", "--cell_uuid", CELL, *OTHER)[0] == 0
    assert OTHER[1] in cells.listed() and OTHER[3] in cells.listed() and " cell1 " in cells.listed()
    assert cells.run("update_cell", "--cell_uuid", CELL, "--name", "east")[0] == 0
    assert BROKER in cells.listed() and " east " in cells.listed() and "own-word" not in cells.listed()


def test_delete_cell_when_it_has_no_hosts_then_what_was_recorded_is_gone(cells: CellScene) -> None:
    cells.run("map_cell0")
    cells.run("create_cell", "--name", "east")
    for uuid in (CELL, CELL0):
        assert cells.run("delete_cell", "--cell_uuid", uuid)[0] == 0
    assert CELL not in cells.listed() and CELL0 not in cells.listed()


def test_delete_cell_when_it_has_servers_then_it_stays(cells: CellScene) -> None:
    cells.run("create_cell")
    add_servers(cells.databases["cell"], server_row(deleted=7))
    add_servers(cells.databases["cell"], server_row())
    assert cells.run("delete_cell", "--cell_uuid", CELL, "--force") == (
        3, f"The record of cell without a name ({CELL}) is kept: it has servers.\n")


def test_update_cell_when_the_configuration_changed_then_it_takes_both_urls(cells: CellScene) -> None:
    cells.run("create_cell", *OTHER)
    cells.run("map_cell0")
    for uuid in (CELL, CELL0):
        assert cells.run("update_cell", "--cell_uuid", uuid)[0] == 0
    listed = cells.listed()
    assert listed.count(f" {DATABASE} ") == 2 and BROKER in listed and " none:/// " in listed and OTHER[1] not in listed


def test_update_cell_when_the_configuration_has_no_broker_then_the_transport_stays(cells: CellScene) -> None:
    cells.run("create_cell", *OTHER)
    cells.options.clear_override("transport_url")
    assert cells.run("update_cell", "--cell_uuid", CELL)[0] == 0
    assert OTHER[1] in cells.listed() and DATABASE in cells.listed()


@pytest.mark.parametrize(("words", "code"), [
    (f"map_instances --cell_uuid {NOWHERE}", 255), (f"map_instances --cell_uuid {CELL} --max-count 0", 127),
    (f"discover_hosts --cell_uuid {NOWHERE}", 1), ("discover_hosts --cell_uuid=", 1)])
def test_mapping_when_an_argument_is_wrong_then_no_status_asks_for_another_call(cells: CellScene, words: str,
                                                                               code: int) -> None:
    assert cells.run(*words.split())[0] == code


def test_discover_hosts_when_it_is_verbose_then_hosts_are_named(cells: CellScene) -> None:
    cells.add_hosts("b", "a")
    text = cells.run("discover_hosts", "--verbose")[1]
    assert text.index("Host a ") < text.index("Host b ") < text.index("Nothing to discover")


def test_list_hosts_when_there_are_daemons_then_compute_hosts_are_shown_in_a_frame(cells: CellScene) -> None:
    assert cells.run("list_hosts")[1].splitlines()[1] == "| Cell Name | Cell UUID | Hostname |"
    cells.add_hosts("b", "a")
    cells.add_hosts("c", binary="nova-scheduler")
    cells.run("create_cell", "--name", "east")
    code, text = cells.run("list_hosts", "--cell_uuid", CELL)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[3:-1]]
    assert code == 0 and rows == [["east", CELL, "a"], ["east", CELL, "b"]]
    assert cells.run("list_hosts", "--cell_uuid", NOWHERE)[0] == 1
    cells.run("map_cell0")
    assert cells.run("list_hosts", "--cell_uuid", CELL0)[1].count("\n") == 4


def test_verify_instance_when_the_server_is_there_or_not_then_the_exit_status_tells(cells: CellScene) -> None:
    [uuid] = add_servers(cells.databases["cell"], server_row())
    assert cells.run("verify_instance", "--uuid", uuid)[0] == 0
    assert cells.run("verify_instance", "--uuid", uuid, "--quiet") == (0, "")
    assert cells.run("verify_instance", "--uuid", NOWHERE)[0] == 1
