"""The cloud's figures: which daemons count as down, and which hosts as silent."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest

from nova.db.models.cell import services
from nova.db.sql.engine import Database
from nova.db.upkeep import cloud_figures
from nova.model.base import utcnow

DOWN_AFTER_S = 60
COMPUTE = "nova-compute"


def report(cell: Database, host: str, silent_s: float = 0.0, binary: str = COMPUTE, **columns: Any) -> None:
    """A daemon that was heard of so many seconds ago."""
    now = utcnow()
    with cell.engine.begin() as tx:
        tx.execute(services.insert().values(uuid=str(uuid.uuid4()), host=host, binary=binary, created_at=now,
                                            last_seen_at=now - datetime.timedelta(seconds=silent_s), **columns))


def told(cell: Database) -> cloud_figures.CellFigures:
    with cell.reading() as tx:
        return cloud_figures.cell(tx, DOWN_AFTER_S)


@pytest.mark.parametrize(("silent_s", "columns", "state"), [
    (0, {}, "up"), (600, {}, "down"), (0, {"forced_down": True}, "down"),
    (0, {"disabled": True}, "disabled"), (600, {"disabled": True}, "disabled"),
    (600, {"disabled": True, "forced_down": True}, "disabled")])
def test_daemon_when_counted_then_it_is_in_one_state_and_a_disabled_one_is_not_down(
        cell: Database, silent_s: float, columns: dict[str, Any], state: str) -> None:
    report(cell, "cn1", silent_s, **columns)
    counts = told(cell).services
    assert {one: count for (_, one), count in counts.items() if count} == {state: 1}


def test_daemons_when_several_are_counted_then_the_states_add_up_by_binary(cell: Database) -> None:
    for number in range(3):
        report(cell, f"up{number}")
    report(cell, "repaired", 9000, disabled=True)
    report(cell, "lost", 9000)
    report(cell, "ctl", binary="nova-scheduler")
    assert told(cell).services == {
        (COMPUTE, "up"): 3, (COMPUTE, "down"): 1, (COMPUTE, "disabled"): 1,
        ("nova-scheduler", "up"): 1, ("nova-scheduler", "down"): 0, ("nova-scheduler", "disabled"): 0}


def test_heartbeats_when_a_host_is_disabled_then_its_age_says_so(cell: Database) -> None:
    report(cell, "lost", 900)
    report(cell, "repaired", 9000, disabled=True)
    assert [(beat.host, beat.enabled) for beat in told(cell).heartbeats] == [("repaired", False), ("lost", True)]
