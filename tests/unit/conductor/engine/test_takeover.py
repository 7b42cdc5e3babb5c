"""Several conductors: who takes what, what is left alone, and what a slow one may still do."""

from __future__ import annotations

import datetime
import threading
from typing import Any

import sqlalchemy as sa

from nova import context, errors
from nova.conductor.nova_network.network_updates import NetworkUpdates
from nova.db.models.cell import operations, servers
from nova.db.operation import runners
from tests.fakes.small_cloud import SmallCloud, until

LONG_AGO = datetime.datetime(2020, 1, 1)


def interrupted(cloud: SmallCloud, step: str = "BuildGuests") -> str:
    """A server whose create stands in the journal of a conductor that died."""
    uuid, = cloud.active()
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(vm_state="building",
                                                                               task_state="spawning"))
    cloud.stand_at(uuid, cloud.deps, step=step)
    return uuid


def test_orphan_when_another_conductor_was_quicker_then_its_row_stays_open(cloud: SmallCloud) -> None:
    """Else nobody would go on with it, should that one die too."""
    uuid = interrupted(cloud)
    quick, slow = cloud.conductor("ctl2").runner.journal, cloud.conductor("ctl3").runner.journal
    with cloud.cell.reading() as tx:
        seen, = runners.orphans(tx, slow.runner_id, set())
    assert quick._take(seen)
    assert slow._take(seen) is None
    slow._close_if_gone(seen)
    assert [row.runner_id for row in cloud.open(uuid)] == [quick.runner_id]


def test_orphan_when_its_server_is_gone_then_its_row_is_closed(cloud: SmallCloud) -> None:
    uuid = interrupted(cloud)
    cloud.write("cell", sa.update(servers).values(deleted=servers.c.id))
    assert cloud.conductor("ctl2").runner.sweep() == 0
    assert not cloud.open(uuid)


def test_sweep_when_many_long_operations_run_then_orphans_are_found_behind_them(cloud: SmallCloud) -> None:
    uuid = interrupted(cloud)
    living = cloud.conductor("ctl2")
    journal = living.runner.journal
    row = cloud.journal(uuid)[-1]._mapping
    values = {**row, "updated_at": LONG_AGO, "runner_id": journal.runner_id}
    running = range(row["id"] - 600, row["id"])
    for key in running:
        cloud.write("cell", sa.insert(operations).values(**{**values, "id": key}))
    with cloud.cell.reading() as tx:
        found = runners.orphans(tx, journal.runner_id, set(running))
    assert [entry.id for entry in found] == [row["id"]]
    cloud.write("cell", sa.delete(operations).where(operations.c.id < row["id"]))


def test_sweep_when_a_newer_release_has_begun_it_then_it_is_left_for_one(cloud: SmallCloud) -> None:
    uuid = interrupted(cloud)
    living = cloud.conductor("ctl2")
    for values in ({"action": "teleport"}, {"action": "create", "step": "AttachMoons"}):
        cloud.write("cell", sa.update(operations).values(**values))
        assert living.runner.sweep() == 0 and cloud.open(uuid)
    cloud.write("cell", sa.update(operations).values(step="BuildGuests"))
    assert living.runner.sweep() == 1
    assert cloud.ended(uuid).vm_state == "active"


def test_lease_when_it_is_over_then_nothing_more_is_written(cloud: SmallCloud) -> None:
    go, reached = threading.Event(), threading.Event()

    def wait(_orders: Any) -> None:
        reached.set()
        assert go.wait(10)
    cloud.computes["a"].before["build"] = wait
    uuid, = cloud.boot()
    assert reached.wait(10)
    cloud.clock_s = 60.0
    go.set()
    until(lambda: not cloud.deps.runner.running, "it is put aside")
    assert cloud.server(uuid).vm_state == "building" and cloud.open(uuid)
    cloud.deps.runner.journal.renew()
    cloud.write("cell", sa.update(operations).values(updated_at=LONG_AGO))
    assert cloud.deps.runner.sweep() == 1
    assert cloud.ended(uuid).vm_state == "active"


# -- the user's token

def test_token_goes_to_admission_alone(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    seen = [*cloud.computes["a"].contexts, *(
        call.context for call in cloud.scheduler.calls if call.name == "select_hosts")]
    assert len(seen) >= 3 and {one.user_id for one in seen} == {"joe"}
    assert {one.token for one in seen} == {None}
    assert "own token" not in str([dict(row._mapping) for row in cloud.journal(uuid)])


# -- network hosts are told

class Breaks:
    """A network host's client that fails in a way nobody thought of, as often as it is told to."""

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, 0

    def serve_networks(self, host: str, networks: Any) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise ZeroDivisionError("unforeseen")


def test_telling_when_one_fails_unforeseen_then_the_next_one_works(cloud: SmallCloud) -> None:
    network = cloud.control.list_networks(states_scope())[0].uuid
    network_updates = NetworkUpdates(cloud.cell, Breaks(1))
    outcomes: list[Any] = []

    def tell() -> None:
        try:
            network_updates.send([network])
            outcomes.append("told")
        except errors.NovaError as error:
            outcomes.append(error.kind)
    for _ in range(2):
        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        thread.join(10)
    assert outcomes == ["bug", "told"]


def states_scope() -> Any:
    from nova.model.base import Scope

    return Scope()


def test_context_without_a_token_is_the_same_request() -> None:
    asked = context.RequestContext(request_id="r", user_id="u", token="t", roles=("admin",))
    assert asked.without_token() == context.RequestContext(request_id="r", user_id="u", roles=("admin",))
