"""The connections of a super conductor to other cells, while their records change and they are away."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nova import errors
from nova.cmd import conductor_cells
from nova.cmd.conductor_cells import OtherCells
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.zones import ForgottenHosts
from nova.db.host import cell_mappings, hosts, services
from nova.db.sql.engine import DatabaseUnavailable
from nova.model.host.cells import CELL, CELL0, CellMapping
from nova.model.host.services import Registration
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud
from tests.unit.cmd.test_cell_conductor_role import options

EAST = CellMapping("00000000-0000-4000-8000-00000000000e", "east", "rabbit://h/east", "mysql://u:secret-word@d/east")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[CellMapping]:
    found = [CellMapping(CELL, "cell1", is_entry=True), EAST]
    monkeypatch.setattr(conductor_cells.Records, "read", lambda _self: tuple(found))
    return found


def others(cells: LiveCells) -> OtherCells:
    nothing: Any = None
    return OtherCells(options(), cells, nothing, nothing, first=True)


def test_cell_when_it_is_away_and_tried_again_then_it_counts_as_a_cell_meanwhile(
        cloud: SmallCloud, recorded: list[CellMapping], monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its servers would not be found, which a client takes for a deletion."""
    cells, seen = LiveCells(cloud.deps), list[bool]()

    def check(_cell: Any) -> None:
        seen.append(cells.several and cells.is_away(EAST.uuid))
        raise DatabaseUnavailable
    monkeypatch.setattr(conductor_cells, "check_schema", check)
    looking = others(cells)
    for _turn in range(3):
        looking.look()
        assert cells.several and cells.is_away(EAST.uuid)
    assert seen == [False, True, True]
    with pytest.raises(errors.Unavailable):
        cells.named(EAST.uuid)
    assert cells.read(lambda tx: 1) == [1]
    del recorded[1]
    looking.look()
    assert not cells.several


@pytest.mark.parametrize("url, cell, starts_again", [
    ("mysql://d/own", CELL0, True), ("mysql://d/own", CELL, False), ("mysql://d/new", CELL0, False),
    ("mysql://d/own-by-another-name", CELL0, False)])
def test_conductor_when_the_cell_of_its_database_is_recorded_after_its_start_then_it_starts_again(
        cloud: SmallCloud, recorded: list[CellMapping], url: str, cell: str, starts_again: bool) -> None:
    """It began as the first cell's, as its database was not recorded; one that is recorded nowhere may be replaced by
    an operator just now."""
    nothing: Any = None
    configured = options(database__connection="mysql://d/own")
    looking = OtherCells(configured, LiveCells(cloud.deps), nothing, nothing, first=True)
    recorded.clear()
    looking.look()
    assert not looking.why_not_ours
    recorded.append(CellMapping(cell, "late", "none:///", url, is_entry=True))
    looking.look()
    assert bool(looking.why_not_ours) is starts_again


def test_super_conductor_when_the_url_of_cell0_changes_first_then_it_does_not_take_itself_for_another(
        cloud: SmallCloud, recorded: list[CellMapping], monkeypatch: pytest.MonkeyPatch) -> None:
    """The record has another name of the same database, in which the conductor itself is up."""
    cloud.daemons.register(Registration(host="super", binary="nova-conductor", topic="conductor"))
    monkeypatch.setattr(conductor_cells, "cell_database", lambda _options, _url: cloud.cell.alone())
    monkeypatch.setattr(conductor_cells, "check_schema", lambda _cell: None)
    nothing: Any = None
    cloud.deps.cell_uuid = CELL0
    looking = OtherCells(options(database__connection="mysql://d/cell0"), LiveCells(cloud.deps), nothing, nothing,
                         first=True)
    for url in ("mysql://alias/cell0", "mysql://d/cell0"):
        recorded[:] = [CellMapping(CELL0, "cell0", "none:///", url, is_entry=True)]
        looking.look()
        assert not looking.why_not_ours


def test_super_conductor_when_the_first_cell_is_deleted_then_cell0_is_still_its_place(cloud: SmallCloud) -> None:
    """Other cells have hosts, so the first cell is known without a record, with the configured database."""
    made = options(database__connection="mysql://d/cell0", api_database__connection="mysql://u:word@d/api")
    cloud.api.transact(lambda tx: cell_mappings.put(tx, CellMapping(CELL0, "cell0", "none:///", "mysql://d/cell0",
                                                                    is_entry=True)))
    assert conductor_cells.own_place(made, cloud.api) == conductor_cells.OwnPlace(CELL0)


def test_conductor_when_super_conductors_come_back_after_its_start_then_it_starts_again(
        cloud: SmallCloud, recorded: list[CellMapping], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them it serves all cells; the entry's database is asked now and then."""
    asked, clock, nothing = list[str](), [0.0], None  # type: list[str], list[float], Any
    monkeypatch.setattr(conductor_cells, "cell_database", lambda _options, url: asked.append(url) or cloud.cell.alone())
    monkeypatch.setattr(conductor_cells, "check_schema", lambda _cell: None)
    looking = OtherCells(options(database__connection="mysql://d/own"), LiveCells(cloud.deps), nothing, nothing,
                         first=True, clock=lambda: clock[0])
    recorded[:] = [CellMapping(CELL0, "cell0", "none:///", "mysql://d/cell0", is_entry=True),
                   CellMapping(CELL, "cell1", "rabbit://h", "mysql://d/own")]
    for clock[0] in (1.0, 2.0, 3.0, 22.0):
        looking.look()
    assert asked == ["mysql://d/cell0"] * 2 and not looking.why_not_ours
    cloud.daemons.register(Registration(host="super", binary="nova-conductor", topic="conductor"))
    clock[0] = 50.0
    looking.look()
    assert "super conductors" in looking.why_not_ours


@pytest.mark.parametrize("url", ["", "no-url", "{nothing}", "mysql://u:secret-word@["])
def test_cell_when_its_record_has_no_url_then_it_alone_is_away(
        cloud: SmallCloud, recorded: list[CellMapping], caplog: pytest.LogCaptureFixture, url: str) -> None:
    recorded[1] = EAST._replace(database_connection=url)
    cells = LiveCells(cloud.deps)
    with caplog.at_level(logging.WARNING):
        others(cells).look()
    assert cells.is_away(EAST.uuid) and "nova-manage cell_v2 update_cell" in caplog.text
    assert "secret-word" not in caplog.text


def test_sweep_of_forgotten_hosts_when_a_recorded_cell_is_not_served_then_its_hosts_stay(cloud: SmallCloud) -> None:
    """A conductor that cannot decrypt a new record does not know the cell, whose hosts other conductors carry."""
    unserved = CellMapping(new_uuid(), "west", "rabbit://h/west", "mysql://d/west")
    cloud.cell.transact(lambda tx: leave_no_service(tx, "b"))
    cloud.api.transact(lambda tx: cell_mappings.put(tx, unserved))
    sweep = ForgottenHosts()
    for _turn in range(3):
        with pytest.raises(errors.cell.NotServed):
            sweep(LiveCells(cloud.deps).entry)
    with cloud.api.reading() as tx:
        assert hosts.providers_of_hosts(tx, "b")


def leave_no_service(tx: Any, host: str) -> None:
    """Let a host be in no cell that this conductor serves."""
    services.delete(tx, services.locked(tx, None, host, "nova-compute"))
