"""Hosts are enrolled in the cell that the operator names, and in no second one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import errors
from nova.conductor.cells.host_records import MergedHostRecords
from nova.conductor.hosts.enrolment import Enrolments
from nova.db.host import cell_mappings, enrolments
from nova.model.host.cells import CELL, CELL0, CellMapping
from tests.fakes.small_cloud import SmallCloud
from tests.fakes.two_cells import OTHER, TwoCells

RUNS = ("nova-compute",)
UNREACHED = "0e3ff0a5-0000-4000-8000-000000000003"


@pytest.fixture
def two(tmp_path: Path, templates: Path) -> Iterator[TwoCells]:
    made = TwoCells(tmp_path, templates)
    for record in (CellMapping(CELL, "cell1"), CellMapping(OTHER, "cell2"), CellMapping(CELL0, "cell0"),
                   CellMapping(UNREACHED, "cell3")):
        made.entry.api.transact(lambda tx, record=record: cell_mappings.add(tx, record))
    yield made
    made.close()


@pytest.fixture
def records(two: TwoCells) -> MergedHostRecords:
    return MergedHostRecords(two.cells, Enrolments)  # type: ignore[arg-type]


def enrolled(cell: SmallCloud) -> set[str]:
    with cell.deps.cell.reading() as tx:
        return set(enrolments.names(tx))


@pytest.mark.parametrize("name", ["cell2", OTHER])
def test_enroll_when_a_cell_is_named_then_the_host_is_in_its_database_alone(
        two: TwoCells, records: MergedHostRecords, name: str) -> None:
    assert records.enroll_host("new", RUNS, cell=name)
    assert "new" in enrolled(two.other) and "new" not in enrolled(two.entry)
    assert records.enroll_host("new", RUNS), "the second time, its cell is known"
    assert "new" not in enrolled(two.entry)
    records.enroll_host("newer", RUNS, cell="cell1")
    assert "newer" in enrolled(two.entry) and "newer" not in enrolled(two.other)


def test_enroll_when_the_cell_of_a_new_host_is_open_then_the_message_asks_for_it(records: MergedHostRecords) -> None:
    with pytest.raises(errors.cell.SeveralForHosts) as caught:
        records.enroll_host("new", RUNS)
    assert "--cell" in caught.value.cure


def test_enroll_when_the_host_is_in_another_cell_then_refused_until_it_is_revoked_there(
        two: TwoCells, records: MergedHostRecords) -> None:
    records.enroll_host("new", RUNS, cell="cell2")
    with pytest.raises(errors.cell.HasHost):
        records.enroll_host("new", RUNS, cell="cell1")
    assert "new" not in enrolled(two.entry)
    records.expel_host("new")
    assert records.enroll_host("new", RUNS, cell="cell1")
    assert "new" in enrolled(two.entry) and "new" not in enrolled(two.other)


@pytest.mark.parametrize("name", ["cell9", "cell0", CELL0])
def test_enroll_when_no_cell_of_hosts_has_the_name_then_not_found(records: MergedHostRecords, name: str) -> None:
    with pytest.raises(errors.cell.NotOne, match="^0 cells"):
        records.enroll_host("new", RUNS, cell=name)


def test_enroll_when_two_cells_have_the_name_then_a_uuid_is_needed(two: TwoCells, records: MergedHostRecords) -> None:
    two.entry.api.transact(lambda tx: cell_mappings.add(tx, CellMapping(OTHER[:-1] + "4", "cell2")))
    with pytest.raises(errors.cell.NotOne, match="^2 cells"):
        records.enroll_host("new", RUNS, cell="cell2")
    assert records.enroll_host("new", RUNS, cell=OTHER)


def test_enroll_when_the_cell_is_not_served_yet_then_unavailable(records: MergedHostRecords) -> None:
    with pytest.raises(errors.cell.NotServed):
        records.enroll_host("new", RUNS, cell="cell3")
