"""Servers that were resized to a host of another cell: audits, restored databases, cells that are away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.steps import moves
from nova.conductor.upkeep import allocation_audit, continuous_audit, held_cleanups
from nova.conductor.upkeep.allocation_audit import Stores
from nova.conductor.upkeep.held_cleanups import HeldCleanups
from nova.db.host import cell_mappings, host_cleanups, services
from nova.db.host.host_cleanups import HELD_STEP
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.sql.engine import DatabaseUnavailable
from nova.model.host.cells import CELL, CellMapping
from nova.model.host.services import ContractVersion
from nova.model.server.server_orders import MigrateServer
from nova.model.server.server_parts import StateReset
from nova.model.server.servers import ServerOrder
from tests.fakes import living_cloud
from tests.fakes.living_cells import LivingCells
from tests.fakes.small_cloud import DEMO, until
from tests.fakes.two_cells import OTHER
from tests.fakes.walking_cloud import IMAGES, walking_cells

SOURCE, DESTINATION = HOSTS = ("host1", "host2")


@pytest.fixture
def cloud(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingCells]:
    living_cloud.impatient(monkeypatch)
    with walking_cells(tmp_path, templates, HOSTS) as made:
        yield made


@pytest.fixture
def uuid(cloud: LivingCells) -> str:
    """A server that was migrated to the other cell, and waits for a confirmation."""
    [uuid] = cloud.active(image_id=IMAGES[0], host=SOURCE)
    with context.entered(DEMO):
        cloud.control.migrate_server(MigrateServer(uuid=uuid, host=DESTINATION, cross_cell=True))
    cloud.settle()
    assert cloud.server(uuid).vm_state == "resized"
    return uuid


def order(cloud: LivingCells, uuid: str, action: str) -> None:
    with context.entered(DEMO):
        cloud.control.order_server(ServerOrder(uuid=uuid, action=action))


def held(cloud: LivingCells) -> list[tuple[str, bool]]:
    """Return (host, whether it is held) of all cleanups."""
    return [(row.host, row.step == HELD_STEP) for row in cloud.debts()]


def age(cloud: LivingCells) -> None:
    cloud.write("cell", sa.update(cell_tables.cleanups).values(created_at=sa.text("'2020-01-01 00:00:00'")))


class Away:
    """A cell's database that does not answer."""

    def __getattr__(self, name: str) -> Any:
        raise DatabaseUnavailable("away")

    def answers(self) -> bool:
        return False


# -- cleanups that are held

def test_host_when_a_cleanup_is_held_then_it_is_not_told_and_its_service_stays(cloud: LivingCells, uuid: str) -> None:
    assert held(cloud) == [(SOURCE, True)]
    assert cloud.control.list_debts(SOURCE) == ()
    with cloud.cell.reading() as tx:
        row = services.locked(tx, None, SOURCE, "nova-compute")
    with pytest.raises(errors.Conflict, match=uuid):
        cloud.cell.transact(lambda tx: services.delete(tx, row))


@pytest.mark.parametrize("action", ["confirmResize", "delete"])
def test_end_when_the_sources_host_is_down_then_its_cleanup_is_due_and_its_claim_stays(
        cloud: LivingCells, uuid: str, action: str) -> None:
    cloud.computes[SOURCE].kill()
    order(cloud, uuid, action)
    cloud.settle()
    assert held(cloud) == [(SOURCE, False)]
    assert SOURCE in {host for host, _consumer in cloud.claims()}
    for part in cloud.parts:
        continuous_audit.run(part.deps)
        assert [*allocation_audit.review(allocation_audit.stores_of(part.deps))] == []
    assert SOURCE in {host for host, _consumer in cloud.claims()}
    cloud.computes[SOURCE].start()
    cloud.do_cleanups()
    assert held(cloud) == [] and SOURCE not in {host for host, _consumer in cloud.claims()}


def test_placement_audit_when_a_claim_waits_in_another_cell_then_it_is_left_to_that_cell(cloud: LivingCells, uuid: str
                                                                                     ) -> None:
    """The command reaches the databases of one cell, and knows from the records that there are others."""
    cloud.computes[SOURCE].kill()
    order(cloud, uuid, "confirmResize")
    cloud.settle()
    stores = Stores(cloud.api, cloud.other.cell, OTHER)
    assert [*allocation_audit.review(stores)] == [uuid]
    for cell in (CELL, OTHER):
        cloud.api.transact(lambda tx, cell=cell: cell_mappings.add(tx, CellMapping(cell, cell)))
    assert [*allocation_audit.review(stores)] == []


# -- cells that are away

@pytest.mark.parametrize("action", ["confirmResize", "delete"])
def test_end_when_the_sources_cell_is_away_then_it_waits_for_the_cell(
        cloud: LivingCells, uuid: str, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deps = cloud.deps
    with monkeypatch.context() as patched:
        patched.setattr(deps, "cell", Away())
        order(cloud, uuid, action)
        until(lambda: not cloud.other.deps.runner.running, "the operation is parked")
        assert cloud.other.open_operations((uuid,))
    cloud.settle()
    cloud.do_cleanups()
    assert held(cloud) == []
    assert (cloud.server(uuid).vm_state, bool(cloud.server(uuid).deleted)) == {
        "confirmResize": ("active", False), "delete": ("deleted", True)}[action]


def test_revert_when_the_source_is_down_or_its_cell_is_away_then_it_is_refused(
        cloud: LivingCells, uuid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.computes[SOURCE].kill()
    cloud.write("cell", sa.update(cell_tables.services).where(cell_tables.services.c.host == SOURCE).values(
        last_seen_at=sa.text("'2020-01-01 00:00:00'")))
    with pytest.raises(errors.Conflict, match=SOURCE):
        order(cloud, uuid, "revertResize")
    with monkeypatch.context() as patched:
        patched.setattr(cloud.deps, "cell", Away())
        with pytest.raises(errors.Unavailable):
            order(cloud, uuid, "revertResize")
    assert cloud.server(uuid).vm_state == "resized" and not cloud.open_operations()


def test_revert_when_the_record_of_the_source_copy_is_lost_then_nothing_is_removed(cloud: LivingCells, uuid: str
                                                                               ) -> None:
    cloud.write("cell", sa.delete(cell_tables.cleanups))
    order(cloud, uuid, "revertResize")
    cloud.settle()
    row = cloud.server(uuid)
    assert (row.vm_state, row.host) == ("resized", DESTINATION) and "no source copy" in row.fault.message
    assert uuid in {server for _host, server in cloud.guests()}


# -- databases that were restored

def test_held_cleanup_when_the_move_waits_then_no_turn_changes_it(cloud: LivingCells, uuid: str) -> None:
    age(cloud)
    assert [HeldCleanups()(part.deps) for part in cloud.parts] == [0, 0]
    assert held(cloud) == [(SOURCE, True)]


def restored(cloud: LivingCells, uuid: str, action: str) -> None:
    """Do the action, and restore the database of the source's cell from before it."""
    [row] = cloud.debts()
    order(cloud, uuid, action)
    cloud.settle()
    cloud.do_cleanups()
    cloud.cell.transact(lambda tx: tx.execute(sa.insert(cell_tables.cleanups).values(row._asdict())))
    age(cloud)


@pytest.mark.parametrize("action, due", [("confirmResize", True), ("delete", True), ("revertResize", False)])
def test_held_cleanup_when_the_database_is_older_than_the_end_of_the_move_then_the_next_turn_settles_it(
        cloud: LivingCells, uuid: str, action: str, due: bool) -> None:
    restored(cloud, uuid, action)
    assert HeldCleanups()(cloud.deps) == 1
    assert held(cloud) == ([(SOURCE, False)] if due else [])


def test_held_cleanup_when_its_server_is_unknown_then_the_guest_becomes_an_orphan(cloud: LivingCells, uuid: str
                                                                              ) -> None:
    age(cloud)
    cloud.api.transact(lambda tx: tx.execute(sa.delete(api_tables.ledger)))
    assert HeldCleanups()(cloud.deps) == 1 and held(cloud) == []


def test_held_cleanup_when_the_servers_cell_is_away_then_it_stays(cloud: LivingCells, uuid: str,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    age(cloud)
    monkeypatch.setattr(cloud.other.deps, "cell", Away())
    assert HeldCleanups()(cloud.deps) == 0 and held(cloud) == [(SOURCE, True)]


@pytest.mark.parametrize("change", [
    sa.update(cell_tables.migrations).values(status="error"),
    sa.update(cell_tables.migrations).values(status="reverted"),
    sa.update(cell_tables.servers).values(vm_state="error"), sa.update(cell_tables.servers).values(host="host1"),
    sa.update(cell_tables.servers).values(host=None)], ids=lambda change: str(change).split(" SET ")[1][:12])
def test_held_cleanup_when_the_move_ended_otherwise_than_by_a_confirm_then_the_disks_stay(
        cloud: LivingCells, uuid: str, change: Any) -> None:
    """The source may have the only disks."""
    age(cloud)
    confirmed = sa.update(cell_tables.migrations).values(status="confirmed")
    cloud.other.cell.transact(lambda tx: [tx.execute(one) for one in (confirmed, change)])
    assert HeldCleanups()(cloud.deps) == 0 and held(cloud) == [(SOURCE, True)]
    cloud.other.cell.transact(lambda tx: [tx.execute(one) for one in (confirmed, sa.update(cell_tables.servers).values(
        host=DESTINATION, vm_state="active"))])
    assert HeldCleanups()(cloud.deps) == 1 and held(cloud) == [(SOURCE, False)]


def test_held_cleanups_when_there_are_many_then_each_turn_reads_a_page(cloud: LivingCells, uuid: str,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_cleanups, "PAGE", 1)
    cloud.cell.transact(lambda tx: host_cleanups.hold(tx, {
        "host": SOURCE, "server_uuid": "of another cloud", "epoch": 1, "arguments": {}}))
    age(cloud)
    job = HeldCleanups()
    assert [job(cloud.deps) for _turn in range(3)] == [0, 1, 0]


# -- hosts and conductors that do what they should not

def test_host_when_it_claims_to_have_done_a_held_cleanup_then_nothing_changes(cloud: LivingCells, uuid: str) -> None:
    [row] = cloud.debts()
    before = cloud.claims()
    cloud.hosts.debt_paid(SOURCE, row.id)
    assert held(cloud) == [(SOURCE, True)] and cloud.claims() == before
    order(cloud, uuid, "revertResize")
    cloud.settle()
    assert (cloud.server(uuid).vm_state, cloud.server(uuid).host) == ("active", SOURCE)


def test_migration_when_a_conductor_has_an_older_release_then_the_server_stays_in_its_cell(
        cloud: LivingCells, monkeypatch: pytest.MonkeyPatch) -> None:
    [uuid] = cloud.active(image_id=IMAGES[0], host=SOURCE)
    lowest = (ContractVersion(name="ConductorRPC", version="1.11"),)
    monkeypatch.setattr(services, "lowest_versions", lambda tx, down: lowest)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="could not be found"):
        cloud.control.migrate_server(MigrateServer(uuid=uuid, host=DESTINATION, cross_cell=True))


def test_migrations_when_operations_of_two_cells_have_one_key_then_they_are_two(cloud: LivingCells) -> None:
    assert len({moves.uuid_of(OTHER, 7), moves.uuid_of(OTHER, 7, OTHER), moves.uuid_of(OTHER, 7, CELL)}) == 2


# -- services that do not answer

def test_migration_when_the_network_service_keeps_a_binding_of_an_overtaken_one_then_it_goes_on(
        tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    living_cloud.impatient(monkeypatch)
    with walking_cells(tmp_path, templates, ("host1", "host2", "host3")) as cloud, cloud.mortal():
        [uuid] = cloud.active(image_id=IMAGES[0], host="host1")

        def reset(action: str, step: str, when: str) -> None:
            if (step, when) == ("ClaimMove", "after"):
                cloud.on_point = lambda *point: None
                cloud.control.reset_state(StateReset(uuid=uuid, state="active"))
        cloud.on_point = reset
        for _order in range(2):  # the second one finds the claim of the first one at its only destination
            with context.entered(DEMO):
                cloud.control.migrate_server(MigrateServer(uuid=uuid))
            cloud.settle()
            cloud.neutron.trouble("DELETE", "bindings", 503, 2)  # the call and its repetition
        row = cloud.server(uuid)
        assert (row.vm_state, row.host) == ("resized", "host3"), row.fault
        assert "keeps a binding of an earlier move" in caplog.text
