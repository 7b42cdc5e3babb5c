"""Interfaces come and go while a server lives: each step fails, is done twice, and its runner dies at each write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.actions.interfaces import InterfaceActions
from nova.conductor.engine.workflow import Step
from nova.conductor.registry import ATTACH_INTERFACE, DETACH_INTERFACE, OF_DEVICES
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import ServerOrder
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, until
from tests.unit.conductor.actions.attaching import FULL, NETWORK, PORT, Attaching
from tests.unit.conductor.engine.test_workflow_failures import AWAY, CRASH, REFUSED, failing
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = [pytest.mark.one_in(5),  # a cloud for each case
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]
WISH = RequestedNetwork(network_id=NETWORK, tag="web")
BOTH = pytest.mark.parametrize("next_door", [False, True], ids=["own", "next-door"])


def attach(cloud: FailingCloud, uuid: str, wish: RequestedNetwork = WISH) -> Any:
    with context.entered(DEMO):
        return cloud.control.attach_interface(uuid, wish)


def detach(cloud: FailingCloud, uuid: str, interface_id: str) -> None:
    with context.entered(DEMO):
        cloud.control.detach_interface(uuid, interface_id)


def guest(cloud: FailingCloud) -> list[str]:
    """Ids of the interfaces that the only guest has, in its order."""
    [order] = cloud.guests().values()
    return [one.id for one in order.interfaces]


def ids(cloud: FailingCloud, uuid: str) -> list[str]:
    return [one.id for one in cloud.server(uuid).interfaces]


@pytest.fixture
def make(tmp_path: Path, templates: Path) -> Iterator[Any]:
    made: list[FailingCloud] = []

    def one(next_door: bool, folder: str = "cloud") -> FailingCloud:
        (tmp_path / folder).mkdir()
        made.append(FailingCloud(tmp_path / folder, templates))
        made[-1].deps.networking = Attaching(made[-1].deps, next_door)
        return made[-1]
    yield one
    for cloud in made:
        cloud.cell.dispose()
        cloud.api.dispose()


def check_whole(cloud: FailingCloud, uuid: str, count: int) -> None:
    """The row, the guest and the back end agree."""
    assert len(ids(cloud, uuid)) == count and guest(cloud) == ids(cloud, uuid)
    assert set(cloud.deps.networking.held) == set(ids(cloud, uuid)[1:])
    assert (cloud.server(uuid).vm_state, cloud.server(uuid).task_state) == ("active", None)


def steps_of(workflow: Any) -> list[Any]:
    return [pytest.param(step, method, id=f"{step.name}-{method}") for step in workflow.steps
            for method in ("do", "within") if method == "do" or type(step).within is not Step.within]


def test_workflows_when_they_are_all_looked_at_then_each_has_been_failed_here():
    assert {one.action.name for one in OF_DEVICES} >= {"attach_interface", "detach_interface"}


@BOTH
@pytest.mark.parametrize("state", ["active", "paused", "stopped"])
def test_attach_and_detach_when_all_goes_well_then_row_guest_and_network_agree(make, next_door, state):
    cloud = make(next_door)
    [uuid] = cloud.active()
    if state != "active":
        cloud.order(uuid, {"paused": "pause", "stopped": "stop"}[state])
        cloud.settle(uuid)
    [first] = ids(cloud, uuid)
    made = attach(cloud, uuid)
    assert (made.network_id, made.tag) == (NETWORK, "web") and ids(cloud, uuid) == [first, made.id]
    assert guest(cloud) == [first, made.id] and cloud.server(uuid).vm_state == state
    second = attach(cloud, uuid, RequestedNetwork(port_id=PORT))
    cloud.settle(uuid)
    detach(cloud, uuid, first)
    cloud.settle(uuid)
    assert ids(cloud, uuid) == guest(cloud) == [made.id, second.id] == [made.id, PORT]
    detach(cloud, uuid, PORT)
    cloud.settle(uuid)
    assert cloud.deps.networking.ports == {PORT: None} and guest(cloud) == [made.id]
    told = [(row.action, row.outcome) for row in cloud.journal(uuid) if "interface" in row.action]
    assert told == [("attach_interface", "success")] * 2 + [("detach_interface", "success")] * 2
    events = [event.event for row in cloud.journal(uuid) for event in row.history if "interface" in event.event]
    assert events == ["compute_attach_interface"] * 2 + ["compute_detach_interface"] * 2


def test_attach_when_no_network_is_named_then_it_is_what_the_project_has(make):
    cloud = make(True)
    [uuid] = cloud.active()
    assert attach(cloud, uuid, RequestedNetwork()).network_id == NETWORK


@pytest.mark.parametrize("wish, error", [(RequestedNetwork(network_id=FULL), errors.Conflict),
                                         (RequestedNetwork(port_id=PORT), errors.Conflict)])
def test_attach_when_it_cannot_be_then_nothing_is_begun(make, wish, error):
    cloud = make(True)
    [uuid] = cloud.active()
    cloud.deps.networking.ports[PORT] = "another"
    with pytest.raises(error):
        attach(cloud, uuid, wish)
    assert len(cloud.journal(uuid)) == 1


def test_attach_and_detach_when_the_state_is_wrong_then_they_are_refused(make):
    cloud = make(False)
    [uuid] = cloud.active()
    cloud.order(uuid, "suspend")
    cloud.settle(uuid)
    with pytest.raises(errors.WrongState):
        attach(cloud, uuid)
    with pytest.raises(errors.WrongState):
        detach(cloud, uuid, ids(cloud, uuid)[0])


@pytest.mark.parametrize("action", ["attach_interface", "detach_interface"])
def test_order_when_it_is_one_of_these_then_it_is_refused_for_it_has_a_call(make, action):
    cloud = make(False)
    [uuid] = cloud.active()
    with pytest.raises(errors.Bug), context.entered(DEMO):
        cloud.control.order_server(ServerOrder(uuid=uuid, action=action))


def test_detach_when_the_server_has_no_such_interface_then_it_is_not_found(make):
    cloud = make(False)
    [uuid] = cloud.active()
    with pytest.raises(errors.NotFound):
        detach(cloud, uuid, PORT)
    with pytest.raises(errors.NotFound):
        attach(cloud, "00000000-0000-4000-8000-000000000000")
    assert len(cloud.journal(uuid)) == 1


@BOTH
def test_attach_when_the_host_refuses_then_the_caller_has_its_words_and_nothing_is_left(make, next_door):
    cloud = make(next_door)
    [uuid] = cloud.active()
    cloud.computes["host1"].answers["attach"] = refused(errors.HostRefused("The bridge br101 is not on this host."))
    with pytest.raises(errors.HostRefused, match="br101 is not on this host"):
        attach(cloud, uuid)
    cloud.settle(uuid)
    check_whole(cloud, uuid, 1)
    assert cloud.journal(uuid)[-1].outcome == "error"


@pytest.mark.parametrize("kind", [errors.HostRefused, errors.Unavailable], ids=["refused", "away"])
def test_attach_when_it_fails_then_a_tenant_learns_no_name_and_path_of_the_host(make, kind):
    cloud = make(False)
    [uuid] = cloud.active()
    cloud.computes["host1"].answers["attach"] = refused(kind("host1 cannot read /var/lib/nova/x: permission denied"))
    with pytest.raises(kind, match="cannot read a file of the host: permission denied") as failed:
        attach(cloud, uuid)
    assert "host1" not in failed.value.message


def test_attach_when_a_host_refuses_at_length_then_a_tenant_reads_the_beginning(make):
    cloud = make(False)
    [uuid] = cloud.active()
    cloud.computes["host1"].answers["attach"] = refused(errors.HostRefused("no " * 10_000))
    with pytest.raises(errors.HostRefused, match="no no no") as failed:
        attach(cloud, uuid)
    assert len(failed.value.message) < 500


@BOTH
@pytest.mark.parametrize("error", [REFUSED, AWAY, CRASH], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step, method", steps_of(ATTACH_INTERFACE))
def test_attach_when_a_step_fails_then_nothing_is_left(make, monkeypatch, step, method, error, next_door):
    cloud = make(next_door)
    [uuid] = cloud.active()
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        with pytest.raises(errors.NovaError):
            attach(cloud, uuid)
        cloud.settle(uuid)
    check_whole(cloud, uuid, 1)
    assert cloud.journal(uuid)[-1].outcome == "error"
    attach(cloud, uuid)
    cloud.settle(uuid)
    check_whole(cloud, uuid, 2)


@BOTH
@pytest.mark.parametrize("step, method", steps_of(DETACH_INTERFACE))
@pytest.mark.parametrize("error", [REFUSED, AWAY, CRASH], ids=lambda error: type(error).__name__)
def test_detach_when_a_step_fails_then_it_is_undone_or_done(make, monkeypatch, step, method, error, next_door):
    cloud = make(next_door)
    [uuid] = cloud.active()
    made = attach(cloud, uuid)
    cloud.settle(uuid)
    with monkeypatch.context() as patched:
        failing(patched, step, method, error, times=1)
        detach(cloud, uuid, made.id)
        cloud.settle(uuid)
    check_whole(cloud, uuid, 2 if step.name == "UnplugInterface" else 1)
    assert cloud.journal(uuid)[-1].outcome == ("error" if step.name == "UnplugInterface" else "success")


@BOTH
@pytest.mark.parametrize("workflow", [ATTACH_INTERFACE, DETACH_INTERFACE], ids=lambda one: one.action.name)
def test_each_step_when_it_is_done_twice_then_the_end_is_the_same(make, monkeypatch, workflow, next_door):
    cloud = make(next_door)
    [uuid] = cloud.active()
    for step in workflow.steps:
        real = step.do
        monkeypatch.setattr(step, "do", lambda *args, real=real: (real(*args), real(*args))[1])
    made = attach(cloud, uuid)
    cloud.settle(uuid)
    check_whole(cloud, uuid, 2)
    detach(cloud, uuid, made.id)
    cloud.settle(uuid)
    check_whole(cloud, uuid, 1)


@pytest.mark.one_in(5)  # a cloud for each write or call
@BOTH
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["attach", "failing attach", "detach"])
def test_operation_when_the_runner_dies_at_any_write_then_another_ends_it(make, what, when, next_door):
    for number in range(1, MOST_WRITES):
        cloud = make(next_door, str(number))
        [uuid] = cloud.active()
        made = attach(cloud, uuid) if what == "detach" else None
        cloud.settle(uuid)
        if what == "failing attach":
            cloud.computes["host1"].answers["attach"] = refused(errors.HostRefused("no"))
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        if made is not None:
            detach(cloud, uuid, made.id)
        else:
            threading.Thread(target=_quiet, args=(attach, cloud, uuid), daemon=True).start()
        _begun(cloud, runner, uuid, 3 if made is not None else 2)
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        check_whole(cloud, uuid, 2 if what == "attach" else 1)
        if not died:
            break
    assert 2 < number < MOST_WRITES - 1


def _quiet(function: Any, *args: Any) -> None:
    try:
        function(*args)
    except errors.NovaError:
        return


def _begun(cloud: FailingCloud, runner: Any, uuid: str, count: int) -> None:
    """The operation is written down, and the runner has it or had it."""
    def begun() -> bool:
        entries = cloud.journal(uuid)
        return len(entries) == count and bool(runner.running or runner.journal.dead or entries[-1].outcome)

    until(begun, "it is begun")


def test_attaches_when_they_come_side_by_side_then_each_is_done_after_the_other(make):
    cloud = make(False)
    [uuid] = cloud.active()
    threads = [threading.Thread(target=attach, args=(cloud, uuid)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    cloud.settle(uuid)
    check_whole(cloud, uuid, 5)


def test_attach_when_the_host_says_nothing_then_the_address_stays_taken_until_it_is_known(make):
    cloud = make(False)
    [uuid] = cloud.active()
    host = cloud.computes["host1"]

    def silent(kind: str, order: Any) -> Any:
        host.guests[order.server_uuid] = order.build  # it did it all the same
        raise errors.Unavailable("host1 did not answer")
    host.answers.update(attach=silent, detach=silent)
    with pytest.raises(errors.Unavailable, match="the host did not answer"):
        attach(cloud, uuid)
    cloud.idle()
    assert len(cloud.deps.networking.held) == 1 and ids(cloud, uuid)[1:] == list(cloud.deps.networking.held)
    with pytest.raises(errors.server.InterfacesUnsettled), context.entered(DEMO):
        InterfaceActions(cloud.deps, undo_wait_s=0.05).attach_interface(uuid, WISH)
    host.answers.clear()
    cloud.expire_leases()
    cloud.runner().sweep()
    cloud.settle(uuid)
    check_whole(cloud, uuid, 1)


@BOTH
def test_attach_when_the_host_says_nothing_then_a_delete_ends_it_and_the_host_owes_the_rest(make, next_door):
    cloud = make(next_door)
    [uuid] = cloud.active()

    def silent(kind: str, order: Any) -> Any:
        raise errors.Unavailable("host1 did not answer")
    cloud.computes["host1"].answers.update(attach=silent, detach=silent, destroy=silent)
    with pytest.raises(errors.Unavailable, match="the host did not answer"):
        attach(cloud, uuid)
    cloud.idle()
    assert ids(cloud, uuid)[1:] == list(cloud.deps.networking.held) != []
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.deps.networking.held == {}
    assert [debt.host for debt in cloud.debts()] == ["host1"]


def test_attach_when_it_takes_longer_than_callers_wait_then_they_are_told_so_and_it_goes_on(make):
    cloud = make(False)
    [uuid] = cloud.active()
    go = threading.Event()
    cloud.computes["host1"].before["attach"] = lambda orders: go.wait(10)
    with pytest.raises(errors.Unavailable, match="takes longer"), context.entered(DEMO):
        InterfaceActions(cloud.deps, wait_s=0.05).attach_interface(uuid, WISH)
    with pytest.raises(errors.Conflict), context.entered(DEMO), context.waited_for(0.05):
        cloud.control.attach_interface(uuid, WISH)  # who goes sooner is told sooner
    go.set()
    cloud.settle(uuid)
    check_whole(cloud, uuid, 2)


def test_attach_when_a_delete_comes_between_then_its_caller_learns_it_and_nothing_is_left(make):
    cloud = make(True)
    [uuid] = cloud.active()

    def overtaken(kind: str, order: Any) -> Any:
        cloud.order(uuid, "delete")  # a host does not plug anything into a guest that it was told to destroy
        return refused(errors.Overtaken("a newer order came"))(kind, order)
    cloud.computes["host1"].answers["attach"] = overtaken
    with pytest.raises(errors.Conflict):
        attach(cloud, uuid)
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.deps.networking.held == {}


@pytest.mark.parametrize("call, argument", [("add_fixed_address", NETWORK), ("remove_fixed_address", "10.0.0.2")])
def test_addresses_when_the_back_end_has_a_way_then_it_is_asked_and_else_they_are_refused(make, call, argument):
    cloud = make(False)
    [uuid] = cloud.active()

    class Addresses:
        asked: list[Any] = []  # noqa: RUF012

        def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
            self.asked.append((server_uuid, network_id))

        remove_fixed_address = add_fixed_address
    cloud.deps.networking.networks = Addresses()
    getattr(cloud.control, call)(uuid, argument)
    assert Addresses.asked[-1] == (uuid, argument)
    cloud.deps.networking.networks = object()
    with pytest.raises(errors.NotSupported):
        getattr(cloud.control, call)(uuid, argument)


# --- with nova-network itself


def vifs_of(cloud: FailingCloud) -> int:
    return len(cloud.held()["interfaces"])


def test_nova_network_when_interfaces_come_and_go_then_addresses_are_given_back_once(tmp_path, templates):
    cloud = FailingCloud(tmp_path, templates)
    [uuid] = cloud.active()
    [first] = cloud.server(uuid).interfaces
    with context.entered(DEMO):
        made = cloud.control.attach_interface(uuid, RequestedNetwork(network_id=first.network_id, tag="web"))
        assert made.tag == "web" and made.mac != first.mac and made.addresses[0] != first.addresses[0]
        last = cloud.control.attach_interface(uuid, RequestedNetwork())
        cloud.settle(uuid)
        assert [one.id for one in cloud.server(uuid).interfaces] == [first.id, made.id, last.id]
        cloud.control.add_fixed_address(uuid, first.network_id)
        assert len(cloud.server(uuid).interfaces[0].addresses) == 2
        cloud.control.detach_interface(uuid, first.id)
        cloud.settle(uuid)
    assert [one.id for one in cloud.server(uuid).interfaces] == [made.id, last.id]
    assert [one.id for one in cloud.guests()["host1", uuid].interfaces] == [made.id, last.id] and vifs_of(cloud) == 2
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {}
    cloud.close()


@pytest.mark.one_in(5)  # a cloud for each write or call
@pytest.mark.parametrize("what", ["attach", "failing attach", "detach"])
def test_nova_network_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path, templates, what):
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        [uuid] = cloud.active()
        [first] = cloud.server(uuid).interfaces
        if what == "failing attach":
            cloud.computes["host1"].answers["attach"] = refused(errors.HostRefused("no"))
        runner = cloud.runner(MortalJournal, die_at=number, when="after")
        with context.entered(DEMO):
            if what == "detach":
                cloud.control.detach_interface(uuid, first.id)
            else:
                wish = RequestedNetwork(network_id=first.network_id)
                threading.Thread(target=_quiet, args=(cloud.control.attach_interface, uuid, wish), daemon=True).start()
        _begun(cloud, runner, uuid, 2)
        died = killed(cloud, runner)
        row = taken_over(cloud, uuid)
        count = {"attach": 2, "failing attach": 1, "detach": 0}[what]
        assert len(row.interfaces) == count == len(cloud.guests()["host1", uuid].interfaces), number
        assert len(cloud.held().get("interfaces", ())) == count == len(cloud.held().get("told", ())), number
        cloud.order(uuid, "delete")
        assert cloud.settle(uuid).deleted and cloud.held() == {}, number
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break
    assert 2 < number < MOST_WRITES - 1
