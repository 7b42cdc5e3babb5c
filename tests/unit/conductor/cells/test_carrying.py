"""Carrying: what a cell's hosts reported reaches the api database and the schedulers, once and however often."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.cells.carrying import COMPARE_S, Carrying
from nova.db.host import hosts
from nova.db.models import cell as tables
from nova.db.models.api import providers
from nova.db.sql.engine import DatabaseUnavailable
from nova.model.guest.guests import GuestFacts, GuestQuery
from nova.model.host.services import Heartbeat, ServiceQuery, ServiceUpdate
from nova.service import PeriodicTask
from tests.fakes.cell_hosts import CellConductor
from tests.fakes.small_cloud import SmallCloud, node_id
from tests.unit.conductor.cells.test_cell_parts import owed


@pytest.fixture
def cell(cloud: SmallCloud) -> Iterator[CellConductor]:
    made = CellConductor(cloud)
    made.carrying.carry()
    cloud.scheduler.calls.clear()
    yield made


def memory(cloud: SmallCloud, host: str) -> int | None:
    """Return the memory that schedulers may give on the host; None without a provider."""
    with cloud.api.reading() as tx:
        found = hosts.provider_rows(tx, host=host)
    return sum(one.classes["MEMORY_MB"].total for one in found.values()) if found else None


def told(cloud: SmallCloud) -> list[str]:
    """Return the hosts whose states the schedulers were sent since the last call."""
    found = [state.host for message in cloud.scheduler.received for state in message.states]
    cloud.scheduler.calls.clear()
    return found


class Statements:
    """The statements to both databases."""

    def __init__(self, cloud: SmallCloud) -> None:
        self.seen: list[str] = []
        for database in (cloud.api, cloud.cell):
            sa.event.listen(database.engine, "before_cursor_execute", lambda *args: self.seen.append(str(args[2])))


# -- reports

def test_report_when_it_is_new_or_newer_then_its_capacity_is_used_and_schedulers_know(
        cloud: SmallCloud, cell: CellConductor) -> None:
    cell.join("c")
    cell.carrying.carry()
    assert memory(cloud, "c") == 100_000 and told(cloud) == ["c"]
    cell.report("c", version=2, memory_mb=120_000)
    cell.carrying.carry()
    assert memory(cloud, "c") == 120_000 and told(cloud) == ["c"]


def test_report_when_it_claims_more_than_is_accepted_then_the_limit_counts(
        cloud: SmallCloud, cell: CellConductor) -> None:
    cell.join("c")
    cell.report("c", version=2, memory_mb=5_000_000)
    cell.carrying.carry()
    with cloud.api.reading() as tx:
        [row] = hosts.provider_rows(tx, host="c").values()
    assert row.classes["MEMORY_MB"].total - row.classes["MEMORY_MB"].reserved == 200_000


def test_turn_when_nothing_has_changed_then_three_statements_whatever_the_hosts(
        cloud: SmallCloud, cell: CellConductor) -> None:
    for host in ("c", "d", "e"):
        cell.join(host)
    cell.carrying.carry()
    statements = Statements(cloud)
    told(cloud)
    cell.carrying.carry()
    assert len(statements.seen) == 3 and told(cloud) == []


def test_turn_when_it_died_before_the_schedulers_knew_then_the_next_one_repeats_it(
        cloud: SmallCloud, cell: CellConductor, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: object) -> None:
        raise DatabaseUnavailable("restarts")
    cell.join("c")
    with monkeypatch.context() as patched:
        patched.setattr(cloud.api, "transact", away)
        with pytest.raises(DatabaseUnavailable):
            cell.carrying.carry()
    assert memory(cloud, "c") is None
    cell.carrying.carry()
    assert memory(cloud, "c") == 100_000 and told(cloud) == ["c"]


def test_turns_when_several_super_conductors_have_theirs_at_once_then_each_host_has_one_provider(
        cloud: SmallCloud, cell: CellConductor) -> None:
    carryings = [Carrying(cloud.deps) for _ in range(4)]
    names = [f"c{number}" for number in range(6)]
    for host in names:
        cell.join(host)
    barrier, failed = threading.Barrier(len(carryings)), []

    def turn(one: Carrying) -> None:
        barrier.wait()
        try:
            one.carry()
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=turn, args=(one,)) for one in carryings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and {host: memory(cloud, host) for host in names} == dict.fromkeys(names, 100_000)


def test_provider_when_it_is_lost_then_the_next_complete_comparison_writes_it_again(
        cloud: SmallCloud, cell: CellConductor) -> None:
    cloud.write("api", sa.delete(providers).where(providers.c.host == "a"))
    cell.carrying.carry()
    assert memory(cloud, "a") is None
    cloud.clock_s += COMPARE_S
    cell.carrying.carry()
    assert memory(cloud, "a") == 100_000


def test_report_when_the_api_database_refuses_it_then_logged_once_and_others_go_on(
        cloud: SmallCloud, cell: CellConductor, caplog: pytest.LogCaptureFixture) -> None:
    cell.join("c")
    cell.join("d")
    cloud.api.transact(lambda tx: tx.execute(sa.insert(providers).values(
        uuid=node_id("c"), name="c", host="elsewhere", host_id=node_id("elsewhere"))))
    for version in (2, 3):
        cell.carrying.carry()
        assert memory(cloud, "d") == 100_000
        cell.report("c", version=version)
    cell.carrying.carry()
    said = [record.getMessage() for record in caplog.records if "host c is not used" in record.getMessage()]
    assert len(said) == 1 and "rename" in said[0] and memory(cloud, "c") is None


# -- services

def test_service_when_an_administrator_changes_it_then_schedulers_know(cloud: SmallCloud, cell: CellConductor) -> None:
    row, = cloud.control.list_services(ServiceQuery(host="a", binary="nova-compute"))
    told(cloud)
    for update in ({"disabled": True}, {"forced_down": True}):
        cloud.control.update_service(ServiceUpdate(uuid=row.uuid, **update))
        told(cloud)  # what the conductor that changed it sent
        cell.carrying.carry()
        assert told(cloud) == ["a"]


def test_host_when_its_service_is_deleted_then_schedulers_forget_it_and_it_does_not_come_back(
        cloud: SmallCloud, cell: CellConductor) -> None:
    cell.join("c")
    cell.carrying.carry()
    row, = cloud.control.list_services(ServiceQuery(host="c", binary="nova-compute"))
    cloud.control.delete_service(ServiceQuery(uuid=row.uuid))
    cloud.scheduler.calls.clear()
    cell.carrying.carry()
    assert [message.gone for message in cloud.scheduler.received if message.gone] == [(("c", "c"),)]
    cloud.clock_s += COMPARE_S
    cell.carrying.carry()
    assert memory(cloud, "c") is None
    cell.join("c")
    cell.carrying.carry()
    assert memory(cloud, "c") == 100_000


# -- heartbeats

def alive(cloud: SmallCloud) -> list[str]:
    found = [host for message in cloud.scheduler.received for host, _at in message.alive if not message.states]
    cloud.scheduler.calls.clear()
    return found


def test_heartbeats_then_each_is_sent_to_the_schedulers_once(cloud: SmallCloud, cell: CellConductor) -> None:
    for _ in range(2):
        cell.hosts.heartbeat("b", Heartbeat(host="b", binary="nova-compute"))
        cell.daemons.flush()
        cell.carrying.carry()
        assert alive(cloud) == ["b"]
        cell.carrying.carry()
        assert alive(cloud) == []


def test_heartbeats_when_hosts_are_excused_after_a_gap_then_schedulers_know(
        cloud: SmallCloud, cell: CellConductor) -> None:
    def at(seconds: int) -> Any:
        return sa.text(f"strftime('%Y-%m-%d %H:%M:%f000', 'now', '-{seconds} seconds')")
    cloud.write("cell", sa.update(tables.services).values(last_seen_at=at(80)))
    cell.carrying.carry()
    alive(cloud)
    cell.hosts.heartbeat("a", Heartbeat(host="a", binary="nova-compute"))
    cell.daemons.flush()  # ends the gap: b has half of service_down_time left
    cell.carrying.carry()
    assert sorted(alive(cloud)) == ["a", "b"]


# -- cleanups

def test_cleanup_when_its_host_did_it_then_its_claim_is_released_and_its_row_dropped(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(host="b"))
    key = owed(cloud, uuid)
    cell.carrying.carry()
    assert ("a", uuid) in cloud.claims() and cloud.debts()
    cell.hosts.debt_paid("a", key)
    cell.carrying.carry()
    assert ("a", uuid) not in cloud.claims() and not cloud.debts()


def test_cleanup_when_the_turn_died_after_the_release_then_the_next_one_drops_its_row(
        cloud: SmallCloud, cell: CellConductor, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: object) -> None:
        raise DatabaseUnavailable("restarts")
    uuid, = cloud.active()
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(host="b"))
    cell.hosts.debt_paid("a", owed(cloud, uuid))
    with monkeypatch.context() as patched:
        patched.setattr(cloud.cell, "transact", away)
        with pytest.raises(DatabaseUnavailable):
            cell.carrying.carry()
    assert ("a", uuid) not in cloud.claims() and cloud.debts()
    cell.carrying.carry()
    assert not cloud.debts()


def test_cleanup_when_another_of_its_host_is_pending_then_the_claim_stays_for_that(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(host="b"))
    first, second = owed(cloud, uuid), owed(cloud, uuid, step="undo_arrival")
    cell.hosts.debt_paid("a", first)
    cell.carrying.carry()
    assert ("a", uuid) in cloud.claims() and [row.id for row in cloud.debts()] == [second]
    cell.hosts.debt_paid("a", second)
    cell.carrying.carry()
    assert ("a", uuid) not in cloud.claims() and not cloud.debts()


def test_host_when_it_is_removed_before_its_done_cleanup_is_carried_then_that_is_dropped(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(host="b"))
    cell.hosts.debt_paid("a", owed(cloud, uuid))
    row, = cloud.control.list_services(ServiceQuery(host="a", binary="nova-compute"))
    cloud.control.delete_service(ServiceQuery(uuid=row.uuid))
    assert memory(cloud, "a") is None
    cell.carrying.carry()
    assert not cloud.debts()


# -- facts of guests

def asked(cell: CellConductor, uuid: str) -> GuestFacts:
    return cell.hosts.guest_facts("a", GuestQuery(server_uuid=uuid, project_id="demo"))


def test_facts_when_a_guest_asks_then_they_are_carried_once_and_are_those_of_the_api_database(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    for _ in range(2):
        with pytest.raises(errors.guest.FactsNotHere):
            asked(cell, uuid)
    cell.carrying.carry()
    wanted = cloud.hosts.guest_facts("a", GuestQuery(server_uuid=uuid, project_id="demo"))
    assert asked(cell, uuid) == wanted and wanted.ec2_numbers[uuid]
    statements = Statements(cloud)
    cell.carrying.carry()
    assert len(statements.seen) == 3


def test_facts_when_an_operation_may_have_changed_them_then_older_ones_serve_until_newer_are_carried(
        cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    with pytest.raises(errors.guest.FactsNotHere):
        asked(cell, uuid)
    cell.carrying.carry()
    cloud.write("cell", sa.update(tables.servers).values(epoch=7, task_state="rebuilding", image_id=node_id("image")))
    assert node_id("image") not in asked(cell, uuid).ec2_numbers
    cell.carrying.carry()
    assert node_id("image") in asked(cell, uuid).ec2_numbers  # and wants them again: the operation is under way
    assert cloud.rows("cell", sa.select(tables.guest_facts.c.wanted))[0].wanted
    cloud.write("cell", sa.update(tables.servers).values(task_state=None))
    cell.carrying.carry()
    asked(cell, uuid)
    assert not cloud.rows("cell", sa.select(tables.guest_facts.c.wanted))[0].wanted


def test_facts_when_the_guest_is_gone_then_its_request_is_dropped(cloud: SmallCloud, cell: CellConductor) -> None:
    uuid, = cloud.active()
    with pytest.raises(errors.guest.FactsNotHere):
        asked(cell, uuid)
    cloud.delete(uuid)
    cell.carrying.carry()
    assert cloud.rows("cell", sa.select(tables.guest_facts)) == []


# -- the cell's database is away

def test_job_when_the_cells_database_is_away_then_one_warning_and_it_goes_on(
        cloud: SmallCloud, cell: CellConductor, monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture) -> None:
    def away() -> None:
        raise DatabaseUnavailable("restarts")
    job = PeriodicTask(1.0, cell.carrying.carry, "cell1", again_s=1.0)
    cell.join("c")
    with monkeypatch.context() as patched:
        patched.setattr(cloud.cell, "reading", away)
        for _ in range(3):
            job._once()
    assert [record.levelname for record in caplog.records if record.getMessage().startswith("cell1")] == ["WARNING"]
    job._once()
    assert memory(cloud, "c") == 100_000
