"""Moves of servers with ports: whatever fails, dies or is repeated, each port is bound to its server's host alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context
from nova.conductor.registry import EVACUATE, LIVE_MIGRATE, RESIZE
from nova.model.network.networks import RequestedNetwork
from nova.model.server.server_orders import UnshelveServer
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, NEUTRON
from tests.sampling import fifth
from tests.unit.conductor.actions.test_move_failures import cases, run_cleanups
from tests.unit.conductor.actions.test_move_kills import ENDS, LAST, MOVES, in_turn
from tests.unit.conductor.engine.test_workflow_failures import REFUSED, failing
from tests.unit.conductor.engine.test_workflow_kills import Killed, MortalJournal, killed, taken_over

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
MOST = 40  # writes of a journal, or calls to Neutron, of any move
SINGLE = "binding-extended"


@pytest.fixture(params=[True, False], ids=["bindings", "one-binding"])
def cloud(request: Any, tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    if not request.param:
        made.neutron.extensions.discard(SINGLE)
    yield made
    for trouble in made.neutron.troubles:
        trouble.left = 0
    made.close()


def ended(cloud: FailingCloud, uuid: str, action: str) -> None:
    """The move is what it is when all went well, and its port is bound there."""
    row = cloud.server(uuid)
    assert (row.vm_state, row.host, row.task_state) == (*ENDS[action], None), row.fault
    if row.vm_state == "resized":
        cloud.begin(uuid, "confirmResize")
        cloud.settle(uuid)
    if action == "evacuate":
        cloud.computes["host1"].guests.clear()
        cloud.hosts.debt_paid("host1", cloud.debts()[0].id)
    cloud.whole(uuid, ENDS[action][1])


@pytest.mark.parametrize("action", MOVES)
def test_move_when_all_is_well_then_the_ports_are_bound_where_the_server_is(cloud, action):
    uuid = cloud.ready(action)
    before = cloud.server(uuid).interfaces
    cloud.begin(uuid, action)
    cloud.settle(uuid)
    ended(cloud, uuid, action)
    assert [(one.id, one.mac, one.addresses) for one in cloud.server(uuid).interfaces] == [
        (one.id, one.mac, one.addresses) for one in before]


def test_live_migration_when_it_begins_then_the_destination_is_told_its_own_binding(cloud):
    [uuid] = cloud.active()
    prepared: list[Any] = []
    cloud.computes["host2"].before = {"prepare": prepared.extend}
    cloud.neutron.vif_type = "bridge"
    cloud.begin(uuid, "live-migration")
    cloud.settle(uuid)
    [order] = prepared
    expected = "bridge" if SINGLE in cloud.neutron.extensions else "ovs"
    assert [one.type for one in order.build.interfaces] == [expected]
    assert cloud.server(uuid).interfaces[0].type == "bridge"
    cloud.whole(uuid, "host2")


@pytest.mark.parametrize("action", ["resize", "live-migration", "evacuate"])
def test_move_when_a_host_has_no_way_to_the_network_then_the_next_one_has_it(cloud, action):
    cloud.neutron.unbindable.add("host2")
    uuid = cloud.ready(action)
    cloud.begin(uuid, action)
    row = cloud.settle(uuid)
    late = action == "live-migration" and SINGLE not in cloud.neutron.extensions
    assert row.host == ("host2" if late else "host3"), row.fault  # with one binding it is known when it has arrived
    [port] = cloud.neutron.of(uuid)
    assert cloud.neutron.hosts_of(port["id"]) == {row.host: "ACTIVE"}


UNDONE = cases(RESIZE, EVACUATE) + cases(LIVE_MIGRATE, but=("MigrateGuests", "ArriveAtDestination", "CleanSource",
                                                            "EndMove"))


@pytest.mark.parametrize("workflow, step, method, error", fifth(UNDONE))
def test_move_when_a_step_always_fails_then_the_ports_are_bound_as_before(tmp_path, templates, monkeypatch, workflow,
                                                                          step, method, error):
    cloud = FailingCloud(tmp_path, templates, NEUTRON)
    uuid = cloud.ready(workflow.action.name)
    failing(monkeypatch, step, method, error)
    cloud.begin(uuid, workflow.action.name)
    row = cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].outcome == "error" and row.fault.message
    cloud.whole(uuid, "host1")
    cloud.close()


@pytest.mark.one_in(5)  # a cloud for each write or call
@pytest.mark.parametrize("action, when", in_turn(MOVES))
def test_move_when_the_runner_dies_at_any_write_then_another_binds_the_ports(tmp_path, templates, action, when):
    for number, cloud in clouds(tmp_path, templates):
        uuid = cloud.ready(action)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        cloud.begin(uuid, action)
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        ended(cloud, uuid, action)
        if not died:
            break
    assert 2 < number < MOST - 1


@pytest.mark.one_in(5)  # a cloud for each write or call
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("action", ["boot", "live-migration", "evacuate", "delete"])
def test_operation_when_the_runner_dies_at_any_call_to_neutron_then_another_ends_it(tmp_path, templates, action, when):
    for number, cloud in clouds(tmp_path, templates):
        [uuid] = [cloud.ready(action)] if action != "boot" else [""]
        runner = cloud.runner(MortalJournal, die_at=10**6, when=when)
        mortal(cloud, runner, number, when)
        if action == "boot":
            with contextlib.suppress(Killed):  # in its admission
                [uuid] = cloud.boot()
        elif action == "delete":
            cloud.order(uuid, action)
        else:
            cloud.begin(uuid, action)
        died = killed(cloud, runner)
        if uuid:
            taken_over(cloud, uuid)
        if action == "delete":
            assert cloud.server(uuid).deleted and cloud.held() == {}, number
        elif action == "boot":
            ports = cloud.neutron.of(uuid) if uuid else []
            assert [port["binding:host_id"] for port in ports] == (["host1"] if uuid else []), number
            assert len(cloud.neutron.ports) == len(ports)
        else:
            ended(cloud, uuid, action)
        if not died:
            break
    assert 2 < number < MOST - 1


def mortal(cloud: FailingCloud, runner: Any, number: int, when: str) -> None:
    """The runner dies at its n-th call: before it reaches Neutron, or with its answer."""
    whole, left = cloud.neutron.answer, [number]

    def answer(request: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            runner.journal.dead = True
            raise Killed
        result = whole(request)
        if left[0] == 0:
            runner.journal.dead = True
            raise Killed
        return result
    cloud.neutron.answer = answer


def clouds(tmp_path: Path, templates: Path) -> Iterator[tuple[int, FailingCloud]]:
    for number in range(1, MOST):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates, NEUTRON)
        yield number, cloud
        cloud.cell.dispose()
        cloud.api.dispose()


@pytest.mark.one_in(5)  # a cloud for each write or call
@pytest.mark.parametrize("action", LAST)
@pytest.mark.parametrize("how", ["lost", "refused", 503])
def test_move_when_a_call_to_neutron_fails_once_then_nothing_is_bound_elsewhere(tmp_path, templates, action, how):
    for number, cloud in clouds(tmp_path, templates):
        uuid = cloud.ready(action)
        seen = len(cloud.neutron.requests)
        nth(cloud, number, how)
        cloud.begin(uuid, action)
        row = cloud.settle(uuid)
        if row.vm_state == "resized":
            cloud.begin(uuid, "confirmResize")
            row = cloud.settle(uuid)
        run_cleanups(cloud)
        [port] = cloud.neutron.of(uuid)
        assert cloud.neutron.hosts_of(port["id"]) == {row.host: "ACTIVE"}, number
        if number > len(cloud.neutron.requests) - seen:
            break
    assert number < MOST - 1


def nth(cloud: FailingCloud, number: int, how: Any) -> None:
    original, left = cloud.neutron.answer, [number]

    def answer(request: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            cloud.neutron.trouble("", "", how, times=1)
        return original(request)
    cloud.neutron.answer = answer


def test_arrival_when_neutron_is_away_then_the_move_waits_for_it(cloud):
    [uuid] = cloud.active()
    away: list[Any] = []
    cloud.computes["host1"].before = {"migrate": lambda orders: away.append(cloud.neutron.away())}
    cloud.begin(uuid, "live-migration")
    cloud.idle()
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state) == ("active", "migrating")
    away[0].left = 0
    cloud.expire_leases()
    cloud.runner().sweep()
    cloud.settle(uuid)
    cloud.whole(uuid, "host2")


# -- shelving

def test_shelve_when_offloaded_then_the_ports_are_bound_to_none_and_unshelve_binds_them(cloud):
    port = cloud.neutron.add_port(cloud.net)
    [uuid] = cloud.active(networks=(RequestedNetwork(port_id=port), RequestedNetwork(network_id=cloud.net)))
    before = cloud.server(uuid).interfaces
    cloud.order(uuid, "shelve")
    assert cloud.settle(uuid).vm_state == "shelved_offloaded", cloud.server(uuid).fault
    assert [one["binding:host_id"] for one in cloud.neutron.of(uuid)] == ["", ""]
    failed = cloud.computes["host1"]
    failed.answers["build"] = lambda kind, order: _raise(REFUSED)
    unshelve(cloud, uuid)
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("active", "host2")
    assert sorted(one.id for one in row.interfaces) == sorted(one.id for one in before)
    for one in cloud.neutron.of(uuid):
        assert cloud.neutron.hosts_of(one["id"]) == {"host2": "ACTIVE"}
    assert {one.id: one.given for one in row.interfaces} == {one.id: one.given for one in before}


def test_unshelve_when_it_fails_then_the_ports_are_bound_to_none(cloud):
    [uuid] = cloud.active()
    cloud.order(uuid, "shelve")
    cloud.settle(uuid)
    for compute in cloud.computes.values():
        compute.answers["build"] = lambda kind, order: _raise(REFUSED)
    unshelve(cloud, uuid)
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("shelved_offloaded", None) or row.vm_state == "error"
    assert [one["binding:host_id"] for one in cloud.neutron.of(uuid)] == [""]


def unshelve(cloud: FailingCloud, uuid: str) -> None:
    with context.entered(DEMO):
        cloud.control.unshelve_server(UnshelveServer(uuid=uuid))


def _raise(error: Exception) -> Any:
    raise error
