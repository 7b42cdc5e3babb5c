"""nova-manage cell_v2: scripts call it, and learn the truth of one cell."""

from __future__ import annotations

import argparse

import pytest

from nova.manage import cell_commands, main, output
from nova.model.services import Service
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.local import connect
from tests.fakes.conductor import FakeConductor
from tests.unit.manage.test_doctor import options

NOWHERE = "00000000-0000-4000-8000-00000000ffff"


@pytest.fixture
def conductor(monkeypatch: pytest.MonkeyPatch) -> FakeConductor:
    fake = FakeConductor()
    fake.services = [Service(id=number, uuid=f"s{number}", host=host, binary=binary) for number, (host, binary)
                     in enumerate([("b", "nova-compute"), ("a", "nova-compute"), ("c", "nova-scheduler")])]
    rows = cell_commands.actions(lambda _options: connect(ConductorRPC, fake),
                                 output.say, output.table)
    monkeypatch.setitem(main.COMMANDS, "cell_v2", rows)
    return fake


def run(capsys: pytest.CaptureFixture[str], words: str, **values: str) -> tuple[int, str]:
    given = main.parser().parse_args(["cell_v2", *words.split()])
    return given.command.run(options(**values) if values else argparse.Namespace(), given), capsys.readouterr().out


@pytest.mark.parametrize("words", [
    "simple_cell_setup --transport-url rabbit://x", "map_cell0 --database_connection mysql://x", "map_cell0",
    "map_cell_and_hosts --name x --verbose", f"map_instances --cell_uuid {NOWHERE} --max-count 5 --reset",
    "discover_hosts --verbose --strict --by-service", "create_cell --name cell1 --verbose --disabled",
    f"update_cell --cell_uuid {NOWHERE} --name x --enable"])
def test_command_with_nothing_to_do_says_so_in_a_line_and_succeeds(conductor: FakeConductor, capsys,
                                                                   words: str) -> None:
    code, text = run(capsys, words)
    assert code == 0 and text.count("\n") == 1 and text.startswith("No")


def test_list_cells_shows_the_one_cell_and_no_password(capsys) -> None:
    urls = {"database__connection": "mysql://nova:secret@db/cell"}
    code, text = run(capsys, "list_cells", **urls)
    assert code == 0 and cell_commands.CELL in text and "mysql://nova:****@db/cell" in text and "secret" not in text
    assert "secret" in run(capsys, "list_cells --verbose", **urls)[1]


@pytest.mark.parametrize(("url", "expected"), [
    ("rabbit://nova:sec1@h1:5672,nova:sec2@h2:5672/v", "rabbit://nova:****@h1:5672,nova:****@h2:5672/v"),
    ("mysql://nova:se@cret@db/cell", "mysql://nova:****@db/cell"),
    ("mysql://nova:sec/ret@db/cell?charset=utf8", "mysql://nova:****@db/cell?charset=utf8"),
    ("mysql://nova:sec,ret@db/cell", "mysql://****@db/cell"), ("sqlite:////var/lib/nova/cell.db", ) * 2, ("", "")])
def test_url_when_it_has_passwords_then_none_is_shown(url: str, expected: str) -> None:
    assert cell_commands.without_passwords(url) == expected


def test_list_hosts_shows_compute_hosts_of_the_one_cell(conductor: FakeConductor, capsys) -> None:
    code, text = run(capsys, f"list_hosts --cell_uuid {cell_commands.CELL}")
    assert code == 0 and [line.split()[-1] for line in text.splitlines()[-2:]] == ["a", "b"]
    assert run(capsys, f"list_hosts --cell_uuid {NOWHERE}")[0] == 1


def test_verify_instance_looks_for_the_server(conductor: FakeConductor, capsys) -> None:
    server = conductor.add_server()
    assert run(capsys, f"verify_instance --uuid {server.uuid}")[0] == 0
    assert run(capsys, f"verify_instance --uuid {server.uuid} --quiet") == (0, "")
    assert run(capsys, f"verify_instance --uuid {NOWHERE}")[0] == 1


@pytest.mark.parametrize(("words", "code", "said"), [
    (f"delete_cell --cell_uuid {cell_commands.CELL}", 2, "the only one"),
    (f"delete_cell --cell_uuid {NOWHERE}", 1, "no cell"),
    (f"delete_host --cell_uuid {cell_commands.CELL} --host a", 4, "openstack compute service delete"),
    (f"delete_host --cell_uuid {cell_commands.CELL} --host z", 2, "not in cell")])
def test_what_can_not_be_deleted_is_refused_with_the_way(conductor: FakeConductor, capsys, words: str, code: int,
                                                         said: str) -> None:
    found = run(capsys, words)
    assert found[0] == code and said in found[1]
