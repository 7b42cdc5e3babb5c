"""Requests that share a transaction or a call: each is counted, placed and refused as if it were alone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.engine.operation import Op
from nova.conductor.steps.placement import ClaimResources, FenceLedger
from nova.db.models import cell as cell_tables
from nova.db.quota import ledger
from nova.db.server.states import Entry
from nova.db.sql.engine import Connection, Database, DatabaseUnavailable
from nova.model.quota.quotas import QuotaUpdate
from nova.model.server.server_groups import NewServerGroup
from nova.model.server.server_orders import MigrateServer
from nova.model.server.servers import NewServer, ServerOrder
from nova.model.server.states import VmState
from tests.fakes.assembled import assemble
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud, changed

ANN = changed(DEMO, user_id="ann")
TIMEOUT_S = 20.0


def together(*calls: Callable[[], object]) -> list[object]:
    """Return the results of calls side by side, in their order; the error of one that fails."""
    results: list[object] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            results[number] = calls[number]()
        except Exception as error:  # the test looks at it
            results[number] = error
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
    return results


def boot(cloud: SmallCloud, who: context.RequestContext, **fields: object) -> tuple[str, ...]:
    with context.entered(who):
        return cloud.control.create_servers(NewServer(**{"name": "vm", "flavor_id": "1", **fields})).uuids


def group(cloud: SmallCloud, who: context.RequestContext = DEMO) -> str:
    with context.entered(who):
        return cloud.control.create_server_group(NewServerGroup(uuid=new_uuid(), name="g",
                                                                policy="soft-affinity")).uuid


def limit(cloud: SmallCloud, **limits: int) -> None:
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits=limits, force=True))


def of_three(cloud: SmallCloud, who: context.RequestContext, name: str) -> Callable[[], object]:
    return lambda: boot(cloud, who, min_count=1, max_count=3, scheduler_hints={"group": name})


def test_creates_when_two_users_join_a_group_then_each_has_the_limit_of_its_own(cloud: SmallCloud, monkeypatch) -> None:
    limit(cloud, server_group_members=3)
    name, made = group(cloud), assemble(monkeypatch, 2)
    found = together(of_three(cloud, DEMO, name), of_three(cloud, ANN, name))
    assert [len(one) for one in found] == [3, 3] and made[2]


def test_creates_when_one_user_joins_a_group_twice_then_the_limit_holds(cloud: SmallCloud, monkeypatch) -> None:
    limit(cloud, server_group_members=4)
    name = group(cloud)
    assemble(monkeypatch, 2)
    found = together(of_three(cloud, DEMO, name), of_three(cloud, DEMO, name))
    assert sorted(len(one) for one in found) == [1, 3]


def test_creates_when_quota_is_for_one_then_the_other_is_refused_and_a_third_project_is_not(cloud: SmallCloud,
                                                                                           monkeypatch) -> None:
    limit(cloud, instances=1)
    assemble(monkeypatch, 3)
    other = changed(DEMO, project_id="other", user_id="eve")
    found = together(*(lambda who=who: boot(cloud, who) for who in (DEMO, ANN, other)))
    refused = [one for one in found if isinstance(one, errors.OverQuota)]
    assert len(refused) == 1 and not isinstance(found[2], Exception)


def test_creates_when_they_share_an_insert_then_each_builds_its_own_servers(cloud: SmallCloud, monkeypatch) -> None:
    assemble(monkeypatch, 2)
    found = together(lambda: boot(cloud, DEMO, name="a", min_count=2, max_count=2), lambda: boot(cloud, ANN, name="b"))
    users = {uuid: user for uuids, user in zip(found, ("joe", "ann"), strict=True) for uuid in uuids}
    assert len(users) == 3 and {uuid: cloud.ended(uuid).user_id for uuid in users} == users
    built = {uuid: order.name for host in cloud.computes.values() for uuid, order in host.guests.items()}
    assert {uuid: cloud.server(uuid).name for uuid in users} == {uuid: built[uuid] for uuid in users}


def test_orders_when_one_server_gets_two_then_the_second_meets_the_first(cloud: SmallCloud, monkeypatch) -> None:
    uuid, other = cloud.active(2)
    assemble(monkeypatch, 3)

    def stop(server: str) -> Callable[[], None]:
        def order() -> None:
            with context.entered(DEMO):
                cloud.control.order_server(ServerOrder(uuid=server, action="stop"))
        return order
    found = together(stop(uuid), stop(uuid), stop(other))
    assert [type(one) for one in found if one] == [errors.WrongState] and found[2] is None
    assert {cloud.ended(one).vm_state for one in (uuid, other)} == {VmState.STOPPED.value}


def test_hosts_when_a_create_and_a_move_are_alike_then_the_scheduler_is_asked_for_each(cloud: SmallCloud,
                                                                                      monkeypatch) -> None:
    [uuid] = cloud.active()
    before = len(cloud.scheduler.calls)
    assemble(monkeypatch, 2)

    def move() -> None:
        with context.entered(DEMO):
            cloud.control.migrate_server(MigrateServer(uuid=uuid))
    [new], _ = together(lambda: boot(cloud, DEMO), move)
    assert {cloud.ended(one).vm_state for one in (new, uuid)} == {"active", "resized"}
    assert len(cloud.scheduler.calls) - before >= 2


class LostCommit:
    """A database that loses the connection after the next commit, before the answer."""

    def __init__(self, database: Database) -> None:
        self._database, self.lost = database, 0

    def transact(self, work: Callable[[Connection], object]) -> object:
        result = self._database.transact(work)
        if not self.lost:
            self.lost += 1
            raise DatabaseUnavailable("the connection was lost")
        return result

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)


@pytest.mark.parametrize("schema", ["api", "cell"])
def test_creates_when_their_commit_is_lost_then_each_user_hears_it_and_nothing_is_made_twice(
        cloud: SmallCloud, monkeypatch, schema: str) -> None:
    cloud.active()  # it makes the project's default security group
    assemble(monkeypatch, 2)
    losing = LostCommit(getattr(cloud, schema))
    setattr(cloud.deps, schema, losing)
    found = together(lambda: boot(cloud, DEMO), lambda: boot(cloud, ANN))
    assert losing.lost == 1 and [isinstance(one, errors.Unavailable) for one in found] == [True, True]
    assert len(cloud.open_ledger()) == 1 + 2
    rows = cloud.rows("cell", sa.select(cell_tables.operations.c.server_uuid))
    assert len(rows) == 1 + (0 if schema == "api" else 2)  # the journal has the servers that were written


@pytest.mark.parametrize("step", [FenceLedger, ClaimResources])
def test_step_when_an_overtaken_operation_meets_its_successor_then_the_newer_epoch_counts(
        cloud: SmallCloud, monkeypatch, step: type) -> None:
    [uuid] = cloud.active()
    row = cloud.deps.journal.servers([Entry(id=0, server_uuid=uuid, action="delete", epoch=0)])[uuid]
    place = next(choice for choice in cloud.scheduler.choices if choice.host == row.host)
    data = {"host": place.host, "node": place.node, "provider_id": place.provider_id}
    ops = [Op(Entry(id=epoch, server_uuid=uuid, action="delete", epoch=epoch, data=data), row) for epoch in (7, 9, 8)]
    assemble(monkeypatch, 3)
    found = together(*(lambda op=op: step().do(cloud.deps, [op])[0] for op in ops))
    assert not cloud.api.transact(lambda tx: ledger.raise_epochs(tx, {uuid: 8}))
    assert cloud.api.transact(lambda tx: ledger.raise_epochs(tx, {uuid: 9})) == {uuid}
    if step is ClaimResources:
        assert [isinstance(one, errors.Overtaken) for one in found] == [True, False, True]
