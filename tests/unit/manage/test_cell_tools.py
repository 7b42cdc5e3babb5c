"""Deployment tools cut the text of ``nova-manage cell_v2``: each one's own way of cutting, run on what is printed."""

from __future__ import annotations

import re
import subprocess
import uuid
from collections.abc import Callable

import pytest

from nova.model.host.cells import CELL, CELL0
from tests.unit.manage.cell_scene import BROKER, DATABASE, CellScene, cells

__all__ = ["cells"]

KOLLA = re.compile(r"\|\s*(?P<name>\S*)\s*\|\s*(?P<uuid>[0-9a-f-]{36})\s*\|\s*(?P<transport>\S+)\s*\|"
                   r"\s*(?P<database>\S+)\s*\|\s*(?P<disabled>\S+)\s*\|")


def shell(command: str, text: str) -> str:
    """What a script's pipe makes of it."""
    return subprocess.run(["sh", "-c", command], input=text, capture_output=True, text=True, check=False).stdout.strip()


def kolla(text: str, name: str) -> str:
    """Rows by one expression over the whole line; two of a name are its error."""
    found = [match["uuid"] for line in text.splitlines() if (match := KOLLA.fullmatch(line)) and match["name"] == name]
    assert len(found) <= 1
    return "".join(found)


def openstack_ansible(text: str, name: str) -> str:
    """A row by its name between blanks, its fourth word; cell0 by 36 zeros and dashes."""
    mark = r" [0-]{36} " if name == "cell0" else f" {re.escape(name)} "
    rows = [line for line in text.splitlines() if re.search(mark, line)]
    return rows[0].split()[3] if rows else ""


def openstack_helm(text: str, name: str) -> str:
    return shell(f"awk -F '|' '/ {name} /{{print $3}}' | tr -d ' '", text)


def nova_operator(text: str, name: str) -> str:
    return shell(f"tr ' ' '|' | tr --squeeze-repeats '|' | grep -e '^|{name}|' | cut -d '|' -f 3", text)


def puppet(text: str, name: str) -> str:
    """Without the first three lines and the last."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()[3:-1]]
    return {row[1]: row[2] for row in rows}.get(name, "")


def tripleo(text: str, name: str) -> str:
    return shell(f"sed -e '1,3d' -e '$d' | awk '$2 == \"{name}\" {{print $4}}'", text)


def charms(text: str, name: str) -> str:
    """Rows whose second column is a uuid."""
    found = {}
    for line in text.splitlines():
        columns = [cell.strip() for cell in line.split("|")[1:-1]]
        try:
            found[columns[0]] = str(uuid.UUID(columns[1]))
        except (IndexError, ValueError):
            continue
    return found.get(name, "")


#: A tool's way, and the name that it gives the cell.
TOOLS: dict[str, tuple[Callable[[str, str], str], str]] = {
    "kolla-ansible": (kolla, ""), "openstack-ansible": (openstack_ansible, "cell1"),
    "openstack-helm": (openstack_helm, "cell1"), "nova-operator": (nova_operator, "cell1"),
    "puppet-nova": (puppet, "default"), "tripleo": (tripleo, "default"), "charms": (charms, "cell1")}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_when_it_makes_both_cells_then_it_finds_them_again(cells: CellScene, tool: str) -> None:
    find, name = TOOLS[tool]
    assert find(cells.listed(), "cell0") == ""
    assert cells.run("map_cell0")[0] == 0
    words = ["create_cell", "--verbose", *(["--name", name] if name else [])]
    assert cells.run(*words) == (0, f"{CELL}\n")
    assert find(cells.listed(), name) == CELL and find(cells.listed(), "cell0") == CELL0
    assert find(cells.listed(), "cell7") == ""
    assert cells.run("update_cell", "--cell_uuid", find(cells.listed(), name))[0] == 0
    assert cells.run("discover_hosts", "--by-service", "--cell_uuid", find(cells.listed(), name))[0] == 0


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_when_the_cell_is_there_then_its_second_run_is_told_so(cells: CellScene, tool: str) -> None:
    name = TOOLS[tool][1]
    words = ["create_cell", *(["--name", name] if name else [])]
    assert "Cell0 is already setup" not in cells.run("map_cell0")[1] and cells.run(*words)[0] == 0
    assert cells.run("map_cell0") == (0, "Cell0 is already setup\n")
    code, text = cells.run(*words)
    assert code == 2 and "already exists" in text


def test_tables_when_they_are_printed_then_each_line_is_as_wide_as_the_others(cells: CellScene) -> None:
    cells.add_hosts("compute-1", "c2")
    cells.run("map_cell0")
    for words in ("list_cells", "list_cells --verbose", "list_hosts"):
        lines = cells.run(*words.split())[1].splitlines()
        assert {len(line) for line in lines} == {len(lines[0])}
        assert [lines[index] for index in (0, 2, -1)] == [lines[0]] * 3 and set(lines[0]) == {"+", "-"}
        assert all(line.startswith("| ") and line.endswith(" |") for line in (lines[1], *lines[3:-1]))


def test_urls_when_a_tool_compares_them_with_nova_conf_then_they_are_equal(cells: CellScene) -> None:
    cells.run("map_cell0")
    cells.run("create_cell")
    rows = {match["name"]: match for line in cells.listed().splitlines() if (match := KOLLA.fullmatch(line))}
    assert rows[""]["transport"] == BROKER and rows[""]["database"] == DATABASE
    assert rows["cell0"]["transport"] == "none:///" and rows["cell0"]["disabled"] == "False"
    assert rows["cell0"]["database"] == DATABASE.replace("/nova?", "/nova_cell0?")
