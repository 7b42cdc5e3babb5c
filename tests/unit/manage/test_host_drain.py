"""``nova-manage host drain``: who leaves how, at most so many at a time, and why the rest stays."""

from __future__ import annotations

import argparse
import math
import os
import signal
from collections.abc import Iterator

import pytest

from nova import context, errors
from nova.manage import drain_plan, host_commands, main
from nova.manage.drain_plan import COLD, LIVE, OFFLOAD, DrainRequest, Move, Stay, Wait, plan
from nova.manage.host_drain import POLL_S, Drain
from nova.model.server.action_restrictions import built_with, restriction
from nova.model.server.server_orders import LiveMigrateServer
from nova.model.server.servers import ServerOrder
from nova.model.server.states import TaskState, VmState
from tests.fakes.restricted_servers import port
from tests.unit.manage.draining import DrainedConductor, MadeUpClock


@pytest.fixture(autouse=True)
def one_request() -> Iterator[None]:
    with context.entered(context.internal()):
        yield


@pytest.fixture
def clock() -> MadeUpClock:
    return MadeUpClock()


@pytest.fixture
def cloud(clock: MadeUpClock) -> DrainedConductor:
    return DrainedConductor(clock)


class Session:
    """What an operator sees of a drain of h1."""

    def __init__(self, cloud: DrainedConductor, **request: object) -> None:
        self.cloud, self.lines, self.rows = cloud, [], []  # type: DrainedConductor, list[str], list[tuple[str, ...]]
        self.request = DrainRequest(**{"host": "h1", **request})

    def run(self) -> int:
        return host_commands.drain(self.cloud.client(), self.request, self.lines.append,
                                   lambda _headings, rows: self.rows.extend(rows), self.cloud.clock)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def why(self, uuid: str) -> str:
        return next(row[3] for row in self.rows if row[0] == uuid)


# -- the plan

@pytest.mark.parametrize("vm_state", list(VmState))
@pytest.mark.parametrize("cold", [False, True])
def test_plan_names_a_way_or_a_reason_for_every_state(cloud: DrainedConductor, vm_state: VmState, cold: bool) -> None:
    server = cloud.servers[cloud.add(vm_state)]
    found = plan(server, DrainRequest(host="h1", cold=cold))
    moves = {VmState.ACTIVE: COLD if cold else LIVE, VmState.STOPPED: COLD, VmState.SHELVED: OFFLOAD}
    if not cold:
        moves[VmState.PAUSED] = LIVE
    if vm_state in moves:
        assert found == Move(moves[vm_state])
        assert plan(server, DrainRequest(host="h1", cold=cold), up=False) == drain_plan.DOWN
    elif vm_state == VmState.BUILDING:
        assert isinstance(found, Wait)
    else:
        assert isinstance(found, Stay) and len(found.reason) > 10 and not found.skipped


def test_plan_when_a_task_runs_then_it_waits_and_knows_whether_that_is_a_move(cloud: DrainedConductor) -> None:
    for task, moving in ((TaskState.REBOOTING, False), (TaskState.MIGRATING, True), (TaskState.RESIZE_PREP, True)):
        server = cloud.servers[cloud.add(task_state=task)]
        assert plan(server, DrainRequest(host="h1")) == Wait(task.value, moving)
        assert plan(server, DrainRequest(host="h1", skip=frozenset([server.uuid]))).skipped


# -- the limit

@pytest.mark.parametrize("count, limit", [(20, 5), (7, 3), (3, 8), (6, 1)])
def test_drain_when_servers_are_many_then_the_limit_is_reached_never_passed_and_time_is_that_of_rounds(
        cloud: DrainedConductor, clock: MadeUpClock, count: int, limit: int) -> None:
    for _ in range(count):
        cloud.add()
    session = Session(cloud, parallel=limit)
    assert session.run() == 0
    assert cloud.most == min(count, limit) and not cloud.on("h1") and len(cloud.on("h2")) == count
    rounds = math.ceil(count / limit)
    assert rounds * cloud.seconds <= clock.now <= rounds * (cloud.seconds + 2 * POLL_S)
    assert f"{count} servers left h1" in session.text and "none is left" in session.text


def test_drain_when_moves_take_different_times_then_each_free_place_is_taken_at_once(cloud, clock) -> None:
    uuids = [cloud.add() for _ in range(6)]
    for number, uuid in enumerate(uuids):
        cloud.change(uuid, progress=number)
    def move(order: LiveMigrateServer) -> None:
        cloud.seconds = 50.0 if order.uuid == uuids[0] else 10.0
        cloud.own("live_migrate_server")(order)
    cloud.given(live_migrate_server=move)
    assert Session(cloud, parallel=2).run() == 0
    assert clock.now <= 50 + 5 * 2 * POLL_S + 10  # the five quick ones go one after another beside the slow one


# -- who leaves how

def test_drain_of_running_stopped_paused_and_shelved_ones_then_each_leaves_its_way(cloud: DrainedConductor) -> None:
    active, stopped = cloud.add(), cloud.add(VmState.STOPPED)
    paused, shelved = cloud.add(VmState.PAUSED), cloud.add(VmState.SHELVED)
    session = Session(cloud)
    assert session.run() == 0
    assert cloud.orders == [("live-migration", active, None), ("migrate", stopped, None),
                            ("live-migration", paused, None), ("shelveOffload", shelved, None),
                            ("confirmResize", stopped, None)]
    assert cloud.servers[stopped].vm_state == VmState.STOPPED and cloud.servers[stopped].host == "h2"
    assert cloud.servers[shelved].host is None
    for uuid, how in ((active, LIVE), (stopped, COLD), (shelved, OFFLOAD)):
        begin, end = (line for line in session.lines if uuid in line)
        assert how in begin and how in end and " in 1" in end
    assert "h1 -> h2" in session.text and cloud.crossing == [False]


def test_drain_when_all_go_cold_and_to_one_host_then_that_is_ordered(cloud: DrainedConductor) -> None:
    cloud.services.append(cloud.services[1].__class__(id=3, uuid="s3", host="h3", binary="nova-compute", up=True))
    uuid, paused = cloud.add(), cloud.add(VmState.PAUSED)
    session = Session(cloud, cold=True, to="h3")
    assert session.run() == 1
    assert cloud.orders[0] == ("migrate", uuid, "h3") and cloud.on("h3") == {uuid}
    assert cloud.crossing == [True], "an operator who names a host of another cell means it"
    assert "--cold" in session.why(paused)


@pytest.mark.parametrize("to, words", [("h1", "drained to itself"), ("nowhere", "no nova-compute"), ("h2", "disabled")])
def test_drain_when_the_target_is_no_good_then_nothing_is_begun(cloud: DrainedConductor, to: str, words: str) -> None:
    cloud.services[1] = cloud.services[1].__class__(id=2, uuid="s2", host="h2", binary="nova-compute", up=True,
                                                    disabled=True)
    cloud.add()
    session = Session(cloud, to=to)
    assert session.run() == 1 and words in session.text and not cloud.orders and not cloud.services[0].disabled


# -- who stays, and why

@pytest.mark.parametrize("dry_run", [False, True])
def test_drain_when_a_server_has_a_device_of_the_host_then_it_stays_with_the_reason_and_nothing_is_ordered_of_it(
        cloud: DrainedConductor, dry_run: bool) -> None:
    held, good = cloud.add(interfaces=(port("direct"),)), cloud.add()
    session = Session(cloud)
    if dry_run:
        assert host_commands.dry_run(cloud.client(), session.request, session.lines.append,
                                     lambda _headings, rows: session.rows.extend(rows)) == 1
    else:
        assert session.run() == 1
    why = restriction("live-migration", built_with(cloud.servers[held]))
    assert why is not None and f"it {why}; the option --cold moves it" in session.why(held)
    assert cloud.orders == ([] if dry_run else [("live-migration", good, None)])


def test_drain_when_it_is_cold_then_a_server_with_a_device_of_the_host_leaves(cloud: DrainedConductor) -> None:
    held = cloud.add(interfaces=(port("direct"),))
    assert Session(cloud, cold=True).run() == 0 and ("migrate", held, None) in cloud.orders


def test_drain_when_some_cannot_leave_then_the_others_do_and_each_has_its_reason(cloud: DrainedConductor) -> None:
    failing, refused, error, good = cloud.add(), cloud.add(), cloud.add(VmState.ERROR), cloud.add()
    cloud.fails[failing] = "No valid host was found. 3 hosts: RamFilter refused 3"
    cloud.refuses[refused] = errors.Invalid("it has a device that cannot move")
    session = Session(cloud, parallel=1)
    assert session.run() == 1
    assert cloud.on("h1") == {failing, refused, error} and cloud.on("h2") == {good}
    assert session.why(failing) == cloud.fails[failing] and session.why(refused) == "it has a device that cannot move"
    assert "ERROR" in session.why(error) and "3 stay" in session.text


def test_drain_when_only_skipped_ones_are_left_then_that_is_success(cloud: DrainedConductor, tmp_path) -> None:
    kept, named, good = cloud.add(), cloud.add(), cloud.add()
    path = tmp_path / "skip"
    path.write_text(f"# these stay\n\n{named}   # the mail server\n")
    given = main.parser().parse_args(["host", "drain", "h1", "--skip-file", str(path), "--skip", kept])
    request = host_commands.drain_request(given)
    assert request.skip == {kept, named} and request.parallel == 4 and request.timeout_s is None
    session = Session(cloud, skip=request.skip)
    assert session.run() == 0 and cloud.on("h1") == {kept, named} and cloud.on("h2") == {good}
    assert "skipped" in session.why(kept)


def test_skip_file_when_it_is_not_there_then_the_command_line_is_bad(tmp_path, capsys) -> None:
    given = main.parser().parse_args(["host", "drain", "h1", "--skip-file", str(tmp_path / "none")])
    assert given.command.run(argparse.Namespace(), given) == 2 and "cannot be read" in capsys.readouterr().out


def test_drain_when_the_host_is_down_then_nothing_is_begun_and_evacuation_is_named(cloud: DrainedConductor) -> None:
    cloud.services[0] = cloud.services[0].__class__(id=1, uuid="s1", host="h1", binary="nova-compute", up=False)
    uuid = cloud.add()
    session = Session(cloud)
    assert session.run() == 1 and "evacuate" in session.why(uuid) and not cloud.orders


def test_drain_of_a_host_nobody_knows_then_it_says_so(cloud: DrainedConductor) -> None:
    session = Session(cloud, host="h9")
    assert session.run() == 1 and "No nova-compute" in session.text


def test_drain_when_a_move_cannot_be_confirmed_then_that_is_its_reason(cloud: DrainedConductor) -> None:
    uuid = cloud.add(VmState.STOPPED)
    def confirm(order: ServerOrder) -> None:
        cloud.fails[uuid] = "the source is away"
        cloud.own("order_server")(order)
    cloud.given(order_server=confirm)
    session = Session(cloud)
    assert session.run() == 1
    assert "could not be confirmed: the source is away" in session.why(uuid)


# -- others work on the servers too

def test_drain_when_a_server_is_busy_then_it_goes_once_it_is_not(cloud: DrainedConductor, clock: MadeUpClock) -> None:
    uuid = cloud.add(task_state=TaskState.REBOOTING)
    settle = clock.asleep

    def asleep() -> None:
        settle()
        if clock.now == 5.0:
            cloud.change(uuid, task_state=None)
    clock.asleep = asleep
    assert Session(cloud).run() == 0 and cloud.on("h2") == {uuid} and clock.now >= 15


@pytest.mark.parametrize("moment", ["before", "during"])
def test_drain_when_a_server_is_deleted_meanwhile_then_it_counts_as_gone(cloud, clock, moment) -> None:
    gone, other = cloud.add(), cloud.add()
    settle = clock.asleep

    def asleep() -> None:
        if clock.now == (3.0 if moment == "during" else 1.0):
            cloud.servers.pop(gone if moment == "during" else other, None)
            cloud.running.pop(gone if moment == "during" else other, None)
        settle()
    clock.asleep = asleep
    session = Session(cloud, parallel=1)
    assert session.run() == 0 and "is deleted" in session.text and not cloud.on("h1")


def test_drain_when_a_server_changes_right_before_its_order_then_it_is_looked_at_anew(cloud, clock) -> None:
    uuid = cloud.add()
    def stop_first(order: LiveMigrateServer) -> None:
        cloud.change(uuid, vm_state=VmState.STOPPED)
        raise errors.WrongState("Cannot 'live-migration' while it is in vm_state stopped")
    cloud.given(live_migrate_server=stop_first)
    assert Session(cloud).run() == 0 and [order[0] for order in cloud.orders] == ["migrate", "confirmResize"]


def test_drain_when_a_server_comes_while_it_runs_then_that_leaves_as_well(cloud, clock) -> None:
    cloud.add()
    settle, late = clock.asleep, []

    def asleep() -> None:
        settle()
        if clock.now == 4.0:
            late.append(cloud.add())
    clock.asleep = asleep
    assert Session(cloud).run() == 0 and late[0] in cloud.on("h2")


# -- again after a kill

def test_drain_when_the_first_was_killed_then_the_second_joins_what_is_under_way(cloud, clock) -> None:
    uuids = [cloud.add() for _ in range(4)] + [cloud.add(VmState.STOPPED)]
    first = Drain(cloud, DrainRequest(host="h1", parallel=5), lambda _line: None, clock)
    first.tick()
    clock.sleep(3)
    with context.entered(context.internal()):
        session = Session(cloud, parallel=5)
        assert session.run() == 0
    assert "is already in progress" in session.text
    assert sorted(order[1] for order in cloud.orders if order[0] != "confirmResize") == sorted(uuids)  # each once
    assert cloud.most == 5 and not cloud.on("h1")
    assert cloud.servers[uuids[-1]].vm_state == VmState.STOPPED  # and the second has confirmed it


def test_drain_when_the_first_was_killed_before_it_confirmed_then_the_second_does(cloud: DrainedConductor) -> None:
    uuid = cloud.add(VmState.RESIZED, host="h2")
    cloud.moved(uuid)
    cloud.was_done(uuid, "migrate", None)
    session = Session(cloud)
    assert session.run() == 0 and cloud.orders == [("confirmResize", uuid, None)]
    assert cloud.servers[uuid].vm_state == VmState.STOPPED


def test_drain_when_the_first_was_killed_while_the_last_step_ran_then_the_second_waits_for_it(cloud, clock) -> None:
    """The row is the new host's already: it is found by its move."""
    uuid = cloud.add(VmState.STOPPED, host="h2", task_state=TaskState.RESIZE_FINISH)
    cloud.moved(uuid, status="migrating")
    cloud.was_done(uuid, "migrate", None)
    settle = clock.asleep

    def asleep() -> None:
        settle()
        if clock.now == 3.0:
            cloud.change(uuid, task_state=None, vm_state=VmState.RESIZED)
    clock.asleep = asleep
    assert Session(cloud).run() == 0 and cloud.orders == [("confirmResize", uuid, None)]


@pytest.mark.parametrize("kind, action, user", [("resize", "resize", "joe"), ("migration", "migrate", "an-admin")])
def test_drain_when_a_user_has_moved_a_server_away_then_it_is_not_confirmed_over_their_head(cloud, kind, action, user
                                                                                            ) -> None:
    uuid = cloud.add(VmState.RESIZED, host="h2")
    cloud.moved(uuid, kind)
    cloud.was_done(uuid, action, user)
    session = Session(cloud)
    assert session.run() == 1 and not cloud.orders and "its disks stay here" in session.why(uuid)


# -- no answers

@pytest.mark.parametrize("lost", [False, True], ids=["answer lost", "order lost"])
@pytest.mark.parametrize("call", ["live-migration", "migrate", "confirmResize"])
def test_drain_when_an_order_gets_no_answer_then_it_is_given_once_or_again(cloud, call, lost) -> None:
    uuid = cloud.add(VmState.ACTIVE if call == "live-migration" else VmState.STOPPED)
    cloud.silent = [call]
    cloud.forgets = {call} if lost else set()
    assert Session(cloud).run() == 0 and cloud.on("h2") == {uuid}
    assert len([order for order in cloud.orders if order[0] == call]) == (2 if lost else 1)


def test_drain_when_the_conductor_is_away_for_a_while_then_it_goes_on(cloud: DrainedConductor) -> None:
    cloud.add()
    cloud.silent = ["list_servers"] * 4
    session = Session(cloud)
    assert session.run() == 0 and session.text.count("retrying") == 1


# -- enough

def test_drain_when_its_time_is_over_then_it_says_what_runs_and_what_was_not_begun(cloud, clock) -> None:
    first, second = cloud.add(), cloud.add()
    session = Session(cloud, parallel=1, timeout_s=5)
    assert session.run() == 1 and clock.now <= 6
    assert "still in progress" in session.why(first) and "before its turn" in session.why(second)
    clock.sleep(10)
    assert cloud.on("h2") == {first}


def test_drain_when_it_is_interrupted_then_it_begins_no_more_and_waits_for_what_runs(cloud, clock) -> None:
    first, second = cloud.add(VmState.STOPPED), cloud.add()
    session = Session(cloud, parallel=1)
    drain = Drain(cloud, session.request, session.lines.append, clock)
    settle = clock.asleep

    def asleep() -> None:
        settle()
        if clock.now == 3.0:
            drain.interrupt()
    clock.asleep = asleep
    drain.run()
    assert cloud.on("h2") == {first} and cloud.servers[first].vm_state == VmState.STOPPED  # confirmed all the same
    assert cloud.on("h1") == {second} and "interrupted" in drain.cases[second].reason
    assert any("starting no more moves; 1 still run" in line for line in session.lines)


def test_drain_when_it_is_interrupted_twice_then_it_ends_at_once(cloud, clock) -> None:
    uuid = cloud.add()
    drain = Drain(cloud, DrainRequest(host="h1"), lambda _line: None, clock)
    drain.tick()
    drain.interrupt()
    drain.interrupt()
    drain.run()
    assert clock.now == 0.0 and "still in progress" in drain.cases[uuid].reason


def test_drain_when_ctrl_c_is_pressed_then_it_begins_no_more_and_the_table_says_who_stays(cloud, clock) -> None:
    first, second = cloud.add(), cloud.add()
    session = Session(cloud, parallel=1)
    settle = clock.asleep

    def asleep() -> None:
        settle()
        if clock.now == 3.0:
            os.kill(os.getpid(), signal.SIGINT)
    clock.asleep = asleep
    before = signal.getsignal(signal.SIGINT)
    assert session.run() == 1 and signal.getsignal(signal.SIGINT) is before
    assert cloud.on("h2") == {first} and "interrupted" in session.why(second)


def test_drain_when_ctrl_c_is_pressed_until_it_gives_up_then_the_table_comes_all_the_same(cloud, clock) -> None:
    uuid = cloud.add()
    session = Session(cloud)

    def hang() -> None:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
    clock.asleep = hang
    assert session.run() == 1 and "still in progress" in session.why(uuid)


# -- the service

def test_drain_disables_the_host_and_undrain_enables_it_again(cloud: DrainedConductor) -> None:
    session = Session(cloud)
    assert session.run() == 0
    service = cloud.services[0]
    assert service.disabled and service.disabled_reason.startswith("drained by ")
    assert session.run() == 0 and cloud.services[0].disabled_reason == service.disabled_reason
    said: list[str] = []
    assert host_commands.undrain(cloud, "h1", said.append) == 0 and not cloud.services[0].disabled
    assert host_commands.undrain(cloud, "h1", said.append) == 3
    assert host_commands.undrain(cloud, "h9", said.append) == 1


def test_undrain_when_somebody_else_disabled_the_host_then_it_stays_so(cloud: DrainedConductor) -> None:
    cloud.services[0] = cloud.services[0].__class__(id=1, uuid="s1", host="h1", binary="nova-compute", up=True,
                                                    disabled=True, disabled_reason="a broken fan")
    assert Session(cloud).run() == 0 and cloud.services[0].disabled_reason == "a broken fan"
    said: list[str] = []
    assert host_commands.undrain(cloud, "h1", said.append) == 1
    assert cloud.services[0].disabled and "a broken fan" in said[0]


def test_dry_run_shows_what_would_be_done_and_does_nothing(cloud: DrainedConductor) -> None:
    live, busy, stays = cloud.add(), cloud.add(task_state=TaskState.REBOOTING), cloud.add(VmState.RESCUED)
    rows: list[tuple] = []
    assert host_commands.dry_run(cloud, DrainRequest(host="h1"), print, lambda _headings,
                                 found: rows.extend(found)) == 1
    assert {row[0]: row[3].split(":")[0] for row in rows} == {live: LIVE, busy: "waits for its task", stays: "stays"}
    assert not cloud.orders and not cloud.services[0].disabled


def test_show_tells_of_servers_moves_and_cleanups(cloud: DrainedConductor) -> None:
    from nova.model.host.services import PendingCleanup

    cloud.add(), cloud.add(), cloud.add(VmState.STOPPED)
    cloud.moved(cloud.add(VmState.RESIZED, host="h2"))
    cloud.debts = [PendingCleanup(id=1, host="h1", server_uuid="u", epoch=1, step="destroy_guests")]
    said: list[str] = []
    rows: list[tuple] = []
    assert host_commands.show(cloud, "h1", said.append, lambda _headings, found: rows.extend(found)) == 0
    assert rows == [(2, "active", ""), (1, "stopped", "")]
    assert "is up and enabled" in said[0] and "1 servers that moved away" in said[1]
    assert "1 cleanups are pending" in said[2]
