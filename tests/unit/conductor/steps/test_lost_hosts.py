"""A host that does not answer, or not well: what it owes, who may go on, and what stays claimed."""

from __future__ import annotations

import datetime
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import host_cleanups
from nova.db.models.cell import operations, servers
from nova.db.sql.engine import DatabaseUnavailable
from nova.model.guest.orders import Outcome, Permission
from nova.model.scheduling.decisions import Selection
from nova.model.server.states import PowerState
from tests.fakes.compute_hosts import refused, silent
from tests.fakes.small_cloud import SmallCloud, until


def lose(cloud: SmallCloud, host: str) -> None:
    cloud.computes[host].answers |= {"build": silent, "destroy": silent}


def granted(cloud: SmallCloud, host: str, order: Any) -> bool:
    asked = Permission(server_uuid=order.server_uuid, epoch=order.fence.epoch)
    return cloud.hosts.may_proceed(host, (asked,))[0].granted


def test_boot_works_and_leaves_nothing_after_delete(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    assert cloud.server(uuid).host == "a" and cloud.claims() == {("a", uuid)}
    cloud.delete(uuid)
    assert not cloud.claims() and not cloud.addresses() and not cloud.open_ledger()


# -- who may go on

def test_build_when_its_host_is_lost_then_only_the_next_host_may_start_the_guest(cloud: SmallCloud) -> None:
    """The lost host may have the order yet (it was cut off from the broker) and come to its point of no return."""
    lose(cloud, "a")
    uuid, = cloud.active()
    lost, found = cloud.computes["a"].built()[0], cloud.computes["b"].built()[0]
    assert not granted(cloud, "a", lost) and granted(cloud, "b", found)
    debt, = cloud.debts()
    assert debt.host == "a" and debt.epoch == lost.fence.epoch < found.fence.epoch


def test_build_when_its_host_is_lost_then_the_claim_there_stays_until_the_debt_is_paid(cloud: SmallCloud) -> None:
    lose(cloud, "a")
    uuid, = cloud.active()
    assert cloud.claims() == {("a", uuid), ("b", uuid)}
    cloud.hosts.debt_paid("a", cloud.debts()[0].id)
    assert cloud.claims() == {("b", uuid)} and not cloud.debts()
    cloud.hosts.debt_paid("a", 1)  # an answer was lost: it says so again
    assert cloud.claims() == {("b", uuid)}


def test_debt_when_it_is_paid_while_the_next_host_is_claimed_already_then_that_claim_stays(cloud: SmallCloud) -> None:
    lose(cloud, "a")
    paying: list[bool] = []

    def run_cleanups(networks: Any) -> None:
        """After the claim on the next host, and before its name stands in the server's row."""
        if cloud.debts() and not paying:
            paying.append(True)
            cloud.hosts.debt_paid("a", cloud.debts()[0].id)

    claim = cloud.deps.feed.after_claims
    cloud.deps.feed.after_claims = lambda usages, claimed: (claim(usages, claimed), run_cleanups(None))
    uuid, = cloud.active()
    assert paying and cloud.claims() == {("b", uuid)}


def test_debt_when_the_conductor_dies_while_it_is_paid_then_nothing_stays_claimed(cloud: SmallCloud) -> None:
    lose(cloud, "a")
    uuid, = cloud.active()
    strike, cloud.deps.cell.transact = cloud.deps.cell.transact, _dies  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError):
        cloud.hosts.debt_paid("a", cloud.debts()[0].id)
    cloud.deps.cell.transact = strike  # type: ignore[method-assign]
    assert cloud.debts()
    cloud.hosts.debt_paid("a", cloud.debts()[0].id)
    assert cloud.claims() == {("b", uuid)} and not cloud.debts()


def _dies(*_arguments: Any) -> None:
    raise RuntimeError("killed")


def test_delete_when_the_host_is_lost_and_pays_before_the_end_then_nothing_stays_claimed(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    lose(cloud, "a")
    told, cloud.deps.feed.after_release = cloud.deps.feed.after_release, lambda _providers: paid()

    def paid() -> None:
        """After all that can be is given back, and before the server's row is gone."""
        cloud.deps.feed.after_release = told
        cloud.hosts.debt_paid("a", cloud.debts()[0].id)
    cloud.delete(uuid)
    assert not cloud.claims() and not cloud.debts() and not cloud.open_ledger()


def test_debt_when_it_is_owed_again_then_it_takes_the_newer_epoch(cloud: SmallCloud) -> None:
    for host in ("a", "b"):
        lose(cloud, host)
    uuid, = cloud.boot()
    assert cloud.ended(uuid).vm_state == "error"
    first = {debt.host: debt.epoch for debt in cloud.debts()}
    debts = [{"host": "a", "server_uuid": uuid, "epoch": epoch, "step": "destroy_guests", "arguments": {}}
             for epoch in (9, 8)]
    for debt in debts:
        cloud.cell.transact(lambda tx, debt=debt: host_cleanups.add(tx, [debt]))
    assert {debt.host: debt.epoch for debt in cloud.debts()} == {**first, "a": 9}
    cloud.delete(uuid)


def test_build_when_the_host_fails_to_undo_it_then_it_owes_it_and_the_next_host_is_tried(cloud: SmallCloud) -> None:
    cloud.computes["a"].answers = {"build": refused(errors.HostRefused()), "destroy": refused(errors.Bug("stuck"))}
    uuid, = cloud.active()
    assert cloud.server(uuid).host == "b"
    assert [(debt.host, debt.server_uuid) for debt in cloud.debts()] == [("a", uuid)]


def test_delete_when_the_host_fails_then_the_owner_learns_of_it(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].answers = {"destroy": refused(errors.Bug("stuck"))}
    cloud.order(uuid, "delete")
    row = cloud.ended(uuid)
    assert (row.vm_state, row.fault.message) == ("error", "stuck") and not cloud.debts()
    cloud.computes["a"].answers = {}
    cloud.delete(uuid)


# -- hosts with several nodes

def test_build_when_a_host_is_lost_then_its_other_nodes_are_not_tried(cloud: SmallCloud) -> None:
    """Paying the debt would remove the guest that the other node has by then."""
    twins = cloud.add_compute("c", nodes=("c1", "c2"))
    del cloud.scheduler.choices[:2]
    lose(cloud, "c")
    uuid, = cloud.boot()
    row = cloud.ended(uuid)
    assert row.vm_state == "error" and len(twins.built()) == 1


def test_batch_on_several_nodes_of_one_host_then_each_server_is_on_its_own(cloud: SmallCloud) -> None:
    cloud.add_compute("c", nodes=("c1", "c2"))
    choices = cloud.scheduler.choices[2:]

    def select(request: Any) -> tuple[Selection, ...]:
        return tuple(Selection(server_uuid=uuid, hosts=(choices[index % 2],))
                     for index, uuid in enumerate(request.server_uuids))
    cloud.scheduler.select_hosts = select  # type: ignore[method-assign]
    uuids = cloud.active(4)
    assert [cloud.server(uuid).node for uuid in uuids] == ["c1", "c2", "c1", "c2"]


# -- what the next host is told

def test_build_when_it_is_taken_over_and_refused_then_the_next_host_gets_its_own_addresses(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    old = cloud.server(uuid).interfaces
    cloud.write("cell", _server(uuid, vm_state="building", task_state="spawning"))
    dead, living = cloud.deps, cloud.conductor("ctl2")
    cloud.stand_at(uuid, dead)
    cloud.computes["a"].answers = {"build": refused(errors.HostRefused())}
    assert living.runner.sweep() == 1
    row = cloud.ended(uuid)
    told, = cloud.computes["b"].built()
    assert (row.vm_state, row.host) == ("active", "b")
    assert told.interfaces == row.interfaces != old


def _server(uuid: str, **values: Any) -> Any:
    return sa.update(servers).where(servers.c.uuid == uuid).values(**values)


# -- batches

def test_batch_when_the_host_falls_silent_then_guests_it_has_reported_stay(cloud: SmallCloud) -> None:
    def report_one(orders: Any) -> None:
        first = orders[0]
        cloud.hosts.report_outcomes("a", (first.fence.operation_id,), (
            Outcome(server_uuid=first.server_uuid, power_state=PowerState.RUNNING),))
        raise errors.Unavailable("killed")
    cloud.computes["a"].before["build"] = report_one
    uuids = cloud.active(3)
    placed = {uuid: cloud.server(uuid).host for uuid in uuids}
    kept = cloud.computes["a"].built()[0].server_uuid
    assert placed == {uuid: "a" if uuid == kept else "b" for uuid in uuids}
    assert kept not in [order.server_uuid for kind, order in cloud.computes["a"].orders if kind == "destroy"]
    assert cloud.claims() >= {(host, uuid) for uuid, host in placed.items()}


def test_batch_when_one_is_refused_then_the_others_are_not_touched(cloud: SmallCloud) -> None:
    spoilt: list[str] = []

    def spoil(kind: str, order: Any) -> Outcome:
        if not spoilt or order.server_uuid in spoilt:
            spoilt.append(order.server_uuid)
            return refused(errors.HostRefused())(kind, order)
        return Outcome(server_uuid=order.server_uuid, power_state=PowerState.RUNNING)
    cloud.computes["a"].answers["build"] = spoil
    uuids = cloud.active(5)
    assert {uuid for uuid in uuids if cloud.server(uuid).host == "b"} == set(spoilt)
    assert len(set(cloud.addresses().values())) == 5 and len(cloud.claims()) == 5


def test_batch_when_one_is_deleted_meanwhile_then_the_others_end_well(cloud: SmallCloud) -> None:
    reached, go = threading.Event(), threading.Event()

    def wait(orders: Any) -> None:
        reached.set()
        assert go.wait(10)
    cloud.computes["a"].before["build"] = wait
    uuids = cloud.boot(3)
    assert reached.wait(10)
    cloud.delete(uuids[1])
    go.set()
    assert [cloud.ended(uuid).vm_state for uuid in uuids] == ["active", "deleted", "active"]
    assert {uuid for _host, uuid in cloud.claims()} == {uuids[0], uuids[2]} == cloud.open_ledger()


# -- the database away within a step

def test_claim_when_the_database_is_away_then_the_operation_waits_for_it(cloud: SmallCloud) -> None:
    away = [True]

    def claim(usages: Any, claimed: Any) -> None:
        if away:
            away.clear()
            raise DatabaseUnavailable(reason="restarts")
    cloud.deps.feed.after_claims = claim
    uuid, = cloud.boot()
    until(lambda: not cloud.deps.runner.running, "it is put aside")
    row = cloud.server(uuid)
    assert (row.vm_state, row.fault) == ("building", None)
    cloud.write("cell", sa.update(operations).values(updated_at=datetime.datetime(2020, 1, 1)))
    assert cloud.deps.runner.sweep() == 1
    assert cloud.ended(uuid).host == "a"
