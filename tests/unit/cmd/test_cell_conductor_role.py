"""Which role nova.conf gives a conductor, and the cell's role in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.cmd import conductor, conductor_databases
from nova.cmd.cell_conductor import CellConductor
from nova.conf._options import Options
from nova.db.host import services
from nova.manage import doctor
from nova.model.host.services import DatabaseConnections, ServiceQuery
from nova.model.security.secret_wrap import new_key
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.service import PeriodicTask
from tests.fakes.databases import QuickDatabase, as_if_synced


def options(**values: Any) -> Options:
    source = conf.register(cfg.ConfigOpts())
    source([], project="nova", prog="nova-conductor", default_config_files=[])
    for name, value in values.items():
        group, _, option = name.rpartition("__")
        source.set_override(option, value, group=group or None)
    return Options.of(source)


@pytest.fixture
def in_a_cell(tmp_path: Path) -> Options:
    as_if_synced("cell", QuickDatabase(tmp_path / "cell"))
    return options(host="cellctl", state_path=str(tmp_path), use_neutron=False, conductor__workers=2,
                   database__connection=f"sqlite:///{tmp_path}/cell", hosts_transport_url=f"local://{tmp_path}",
                   conductor__host_secret_key=[new_key()])


@pytest.fixture
def started(in_a_cell: Options, monkeypatch: pytest.MonkeyPatch) -> Iterator[CellConductor]:
    made = CellConductor(in_a_cell, 0)
    monkeypatch.setattr(PeriodicTask, "start", lambda job: job)
    made.start()
    yield made
    made.stop(1.0)


def test_role_then_it_follows_the_databases_in_the_configuration(in_a_cell: Options) -> None:
    conductor.check(in_a_cell)
    assert conductor_databases.serves_a_cell(in_a_cell)
    assert not conductor_databases.serves_a_cell(options(api_database__connection="sqlite://"))
    with pytest.raises(errors.config.Missing, match=r"\[database\]connection"):
        conductor.check(options())
    made = conductor.make(in_a_cell, 0)
    assert isinstance(made, CellConductor)
    made.stop(0.0)


def test_connections_of_a_cell_conductor_then_none_to_the_api_database_and_none_for_a_lease(in_a_cell: Options) -> None:
    pool = in_a_cell.database.max_pool_size + in_a_cell.database.max_overflow
    assert conductor_databases.connections(in_a_cell) == DatabaseConnections(api=0, cell=2 * pool)


def test_cell_conductor_then_it_serves_hosts_and_shows_itself_as_a_service(
        started: CellConductor) -> None:
    with started.deps.cell.reading() as tx:
        [(row, _clock)] = services.select(tx, ServiceQuery(binary="nova-conductor"))
    assert row.host == "cellctl" and [one.name for one in row.contracts or ()] == [ConductorHostRPC.__name__]
    assert {job.name for job in started.periodic} == {
        "heartbeats", "hosts that came back", "enrolled hosts", "own heartbeat", "known daemons", "silence"}
    for job in started.periodic:
        job.function()
    assert started.deps.journal.runner_id == 0


def test_health_of_a_cell_conductor_then_the_api_database_is_no_part_of_it(started: CellConductor) -> None:
    found = started.health_checks()
    assert set(found.checks) == {"hosts' bus", "cell database"} and found.why_not_receiving() == ""
    for check in found.checks.values():
        check()
    assert found.collectors == ()


def test_doctor_on_a_cell_conductors_host_then_it_checks_the_cells_database(in_a_cell: Options) -> None:
    found = doctor.databases(in_a_cell)
    assert found.state == doctor.OK and found.what.startswith("the cell schema is current on SQLite")
