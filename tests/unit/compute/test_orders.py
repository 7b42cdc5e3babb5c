"""Which orders are carried out: one at a time a server, newer ones overtake, repeated ones join."""

from __future__ import annotations

import datetime
import shutil
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.compute.host import HostClock
from nova.compute.order_table import BUILD, DESTROY, MIGRATE, REBOOT, START, STOP
from nova.compute.orders.fences import Fences
from nova.compute.orders.orders import REMEMBERED_S, Orders, Work
from nova.model.guest.orders import Outcome
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, beside, build_order, fence, guest_order, new_uuid, wait_until
from tests.sampling import examples

S = new_uuid()


@pytest.fixture
def orders(tmp_path, clock):
    return Orders(Fences(tmp_path, clock), clock)


def done(work: Work) -> Outcome:
    return Outcome(server_uuid=work.key.server_uuid)


def carry_out(orders: Orders, kind: str, epoch: int, **more) -> Outcome:
    ticket = orders.admit(kind, S, fence(epoch, **more))
    return orders.run(ticket.work, done) if ticket.mine else ticket.work.wait()


def test_admit_when_older_then_overtaken(orders):
    carry_out(orders, BUILD, 5)
    with pytest.raises(errors.host.OrderOvertaken):
        carry_out(orders, DESTROY, 4)


def test_admit_when_repeated_in_progress_then_it_joins_even_past_its_start_time(orders, clock):
    late = {"start_by": clock.now() + datetime.timedelta(seconds=30)}
    first = orders.admit(BUILD, S, fence(1, **late))
    clock.advance(seconds=60)
    again = orders.admit(BUILD, S, fence(1, **late))
    assert first.mine and not again.mine and again.work is first.work
    assert orders.run(first.work, done) is again.work.wait()


def test_admit_when_repeated_after_the_end_then_the_result_is_given_again_for_minutes(orders, clock):
    outcome = carry_out(orders, START, 1)
    assert carry_out(orders, START, 1) is outcome
    clock.advance(seconds=REMEMBERED_S + 1)
    assert carry_out(orders, START, 1) is not outcome


def test_admit_when_the_first_runner_was_replaced_then_the_next_ones_order_is_carried_out(orders):
    """A live migration asked whether it may go on, and heard that the operation has another runner by now. That runner
    must not get the same answer for ever."""
    replaced = Outcome(server_uuid=S, ok=False, error_kind=errors.Overtaken.kind, error_code="host.order_not_granted")
    first = orders.admit(MIGRATE, S, fence(2, operation_id=7))
    second = orders.admit(MIGRATE, S, fence(3, operation_id=7))
    assert orders.run(first.work, lambda work: replaced) is replaced
    assert not second.mine and second.work.wait() is replaced
    assert carry_out(orders, MIGRATE, 4, operation_id=7).ok


def test_admit_when_past_its_start_time_then_refused_but_older_ones_are_fenced(orders, clock):
    with pytest.raises(errors.host.OrderStale, match="60 s after"):
        orders.admit(BUILD, S, fence(3, start_by=clock.now() - datetime.timedelta(seconds=60)))
    with pytest.raises(errors.host.OrderOvertaken):
        orders.admit(BUILD, S, fence(2))


def test_admit_when_the_same_epoch_was_ordered_away_then_a_late_build_is_refused(orders):
    carry_out(orders, DESTROY, 3)
    with pytest.raises(errors.host.OrderClosed):
        carry_out(orders, BUILD, 3)
    assert carry_out(orders, BUILD, 4).ok


def test_orders_when_guests_come_and_go_then_only_the_last_order_of_each_is_remembered_and_only_for_minutes(
        orders, clock):
    def come_and_go(uuid: str) -> None:
        for kind, epoch in ((BUILD, 1), (REBOOT, 2), (STOP, 3), (DESTROY, 4)):
            orders.run(orders.admit(kind, uuid, fence(epoch)).work, done)
    for _ in range(10):
        come_and_go(new_uuid())
    assert len(orders._finished) == len(orders._last_change) == 10
    clock.advance(seconds=REMEMBERED_S + 1)
    carry_out(orders, BUILD, 1)
    kept = (orders._finished, orders._finished_of, orders._last_change, orders._returned, orders._running,
            orders._locks)
    assert [len(one) for one in kept] == [1, 1, 1, 0, 0, 0]


def test_orders_when_a_host_has_too_many_to_remember_then_the_oldest_is_forgotten(orders, monkeypatch):
    monkeypatch.setattr("nova.compute.orders.orders.MOST_REMEMBERED", 3)
    first, *others = [new_uuid() for _ in range(4)]
    outcomes = {uuid: orders.run(orders.admit(DESTROY, uuid, fence(1)).work, done) for uuid in (first, *others)}
    assert len(orders._finished) == len(orders._last_change) == 3
    assert [orders.admit(DESTROY, uuid, fence(1)).work.outcome for uuid in others] == [outcomes[one] for one in others]
    assert orders.admit(DESTROY, first, fence(1)).mine


def test_admit_when_a_destroy_is_repeated_after_its_end_then_the_result_is_given_again(orders):
    carry_out(orders, BUILD, 1)
    outcome = carry_out(orders, DESTROY, 2)
    assert carry_out(orders, DESTROY, 2) is outcome
    with pytest.raises(errors.host.OrderClosed):
        orders.admit(BUILD, S, fence(2))


def test_admit_when_newer_then_the_older_one_in_progress_is_told_to_stop(orders):
    build = orders.admit(BUILD, S, fence(1)).work
    orders.admit(STOP, S, fence(2))
    with pytest.raises(errors.Overtaken):
        build.check()


def test_admit_when_destroy_of_the_same_epoch_then_the_build_in_progress_is_told_to_stop(orders):
    build = orders.admit(BUILD, S, fence(1)).work
    assert orders.admit(DESTROY, S, fence(1)).work.overtook == (BUILD,)
    with pytest.raises(errors.Overtaken):
        build.check()


def test_admit_when_the_fence_cannot_be_kept_then_nothing_is_in_progress(orders, tmp_path):
    shutil.rmtree(tmp_path)
    with pytest.raises(OSError):
        orders.admit(BUILD, S, fence(1))
    assert not orders.busy(S)


def test_run_when_the_work_breaks_then_whoever_joined_gets_a_bug(orders):
    ticket = orders.admit(BUILD, S, fence(1))

    def broken(_work):
        raise SystemExit
    assert orders.run(ticket.work, broken).error_kind == "bug"
    assert ticket.work.wait().error_kind == "bug" and not orders.busy(S)


def test_quiet_since_when_an_order_ran_meanwhile_then_no(orders):
    mark = orders.mark()
    assert orders.quiet_since(S, mark)
    carry_out(orders, START, 1)
    assert not orders.quiet_since(S, mark)
    assert orders.quiet_since(S, orders.mark())


def test_wait_idle_when_an_order_hangs_then_false_within_the_time(tmp_path):
    orders = Orders(Fences(tmp_path, HostClock()), HostClock())
    ticket = orders.admit(BUILD, S, fence(1))
    assert orders.wait_idle(0.05) is False
    orders.run(ticket.work, done)
    assert orders.wait_idle(0.05) is True


def test_run_when_a_newer_order_got_the_server_first_then_the_older_destroy_does_nothing(orders):
    old, new = orders.admit(DESTROY, S, fence(2)).work, orders.admit(BUILD, S, fence(3)).work
    assert orders.run(new, done).ok
    assert orders.run(old, lambda _work: pytest.fail("it was begun")).error_kind == "overtaken"


# --- all interleavings: works go on step by step, as hypothesis says


class Stage:
    """Orders carried out by threads that stop before each of their steps until they are let on."""

    def __init__(self, orders: Orders) -> None:
        self.orders, self.lock = orders, threading.Lock()
        self.at_point: list[Work] = []
        self.tokens: dict[int, threading.Semaphore] = {}
        self.effects: list[tuple[str, int]] = []  # (kind, epoch) in the order they took effect
        self.inside = self.most_inside = 0
        self.refused: list[tuple[str, int]] = []
        self.tickets: list[tuple[Work, threading.Thread]] = []

    def submit(self, kind: str, epoch: int) -> None:
        try:
            ticket = self.orders.admit(kind, S, fence(epoch))
        except (errors.Overtaken, errors.HostRefused):
            self.refused.append((kind, epoch))
            return
        if ticket.mine:
            self.tokens[id(ticket.work)] = threading.Semaphore(0)
            thread, _ = beside(self.orders.run, ticket.work, self.do)
            self.tickets.append((ticket.work, thread))
        self.settle()

    def go_on(self, choice: int) -> None:
        """Let one that waits at a point do its next step."""
        with self.lock:
            if not self.at_point:
                return
            work = self.at_point.pop(choice % len(self.at_point))
        self.tokens[id(work)].release()
        self.settle()

    def do(self, work: Work) -> Outcome:
        with self.lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        try:
            for _ in range(1 if work.key.kind == DESTROY else 3):
                with self.lock:
                    self.at_point.append(work)
                self.tokens[id(work)].acquire()
                if work.key.kind != DESTROY:
                    work.check()
                self.effects.append((work.key.kind, work.key.epoch))
            return done(work)
        except errors.Overtaken as error:
            return Outcome(server_uuid=S, ok=False, error_kind=error.kind)
        finally:
            with self.lock:
                self.inside -= 1

    def settle(self) -> None:
        """Wait until every thread stands: at a point, behind the one that does, or at its end."""
        def standing() -> bool:
            open_ = [thread for work, thread in self.tickets if work.outcome is None]
            return not open_ or len(self.at_point) == 1
        end = time.monotonic() + 5
        while not standing():
            assert time.monotonic() < end
            time.sleep(0.0002)


KINDS = st.sampled_from([BUILD, BUILD, DESTROY, START, REBOOT])
MOVES = st.lists(st.one_of(st.tuples(KINDS, st.integers(1, 4)), st.integers(0, 3)), max_size=25)


@settings(max_examples=examples(60, 120), deadline=None)
@given(moves=MOVES)
def test_orders_when_interleaved_at_random_then_never_two_at_once_and_never_an_old_effect_after_a_new(
        tmp_path_factory, moves):
    folder = tmp_path_factory.mktemp("fences")
    stage = Stage(Orders(Fences(folder, HostClock()), HostClock()))
    for move in moves:
        if isinstance(move, tuple):
            stage.submit(*move)
        else:
            stage.go_on(move)
    while any(work.outcome is None for work, _ in stage.tickets):
        stage.go_on(0)

    assert stage.most_inside <= 1
    epochs = [epoch for _kind, epoch in stage.effects]
    assert epochs == sorted(epochs)
    for number, (kind, epoch) in enumerate(stage.effects):
        later = stage.effects[number + 1:]
        assert kind != DESTROY or all(other == DESTROY for other, other_epoch in later if other_epoch == epoch)
    submitted = [move for move in moves if isinstance(move, tuple)]
    newest = max((epoch for _kind, epoch in submitted), default=-1)
    assert Fences(folder, HostClock()).known(S).epoch == newest  # as the next process would read it
    keys = [work.key for work, _ in stage.tickets]
    assert len(keys) == len(set(keys))  # what was repeated ran once
    assert not stage.orders.busy(S)


# --- the same with guests, at full speed


@settings(max_examples=examples(12, 25), deadline=None)
@given(orders=st.lists(st.tuples(st.sampled_from([BUILD, BUILD, DESTROY, STOP, REBOOT]), st.integers(1, 5),
                                 st.booleans()), min_size=1, max_size=12))
def test_service_when_orders_of_one_server_race_then_the_newest_epoch_decides_what_is_left(tmp_path_factory, orders):
    from tests.fakes.compute import World
    world = World(tmp_path_factory.mktemp("world")).start()
    try:
        _race(world, orders)
    finally:
        world.close()


def _race(world, orders) -> None:
    made = build_order()
    world.driver.knobs.delay("create_disks", 0.002)
    threads = []
    for kind, epoch, pause in orders:
        threads.append(beside(_order, world, made, kind, epoch)[0])
        if pause:
            time.sleep(0.003)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    newest = max(epoch for _, epoch, _ in orders)
    kinds = {kind for kind, epoch, _ in orders if epoch == newest}
    if DESTROY in kinds:
        assert world.leftovers() == []
    elif BUILD in kinds:
        assert world.driver.lifecycle.power_state(made.server_uuid) in (PowerState.RUNNING, PowerState.SHUTDOWN)
    assert not list((world.state_path / "building").iterdir())


def _order(world, made, kind: str, epoch: int) -> None:
    if kind == BUILD:
        world.build(build_order(made.server_uuid, epoch))
    else:
        call = {DESTROY: world.service.destroy_guests, STOP: world.service.stop_guests,
                REBOOT: world.service.reboot_guests}[kind]
        call(HOST, (guest_order(made, epoch),))


def test_destroy_when_a_build_hangs_then_it_waits_for_its_next_point_and_leaves_nothing(world):
    order = build_order()
    block = world.driver.knobs.block("create_disks")
    build, built = beside(world.build, order)
    assert block.reached.wait(5)
    destroy, destroyed = beside(world.service.destroy_guests, HOST, (guest_order(order, 2),))
    wait_until(lambda: len(world.service._orders._running[order.server_uuid]) == 2)
    block.release()
    build.join(5)
    destroy.join(5)
    assert built[0][0].error_kind == "overtaken" and destroyed[0][0].ok
    assert world.leftovers() == []
    assert ("start_new", order.server_uuid) not in world.driver.calls


def test_destroy_when_a_guest_is_being_asked_to_shut_down_then_it_does_not_wait_for_it(world):
    order = build_order()
    world.build(order)
    block = world.driver.knobs.block("shut_down")
    stop, stopped = beside(world.service.stop_guests, HOST, (guest_order(order, 2),))
    assert block.reached.wait(5)
    destroy, destroyed = beside(world.service.destroy_guests, HOST, (guest_order(order, 3),))
    wait_until(lambda: world.driver.lifecycle.power_state(order.server_uuid) is None)
    block.release()
    destroy.join(5)
    stop.join(5)
    assert destroyed[0][0].ok and stopped[0][0].error_kind == "overtaken"
    assert world.leftovers() == []
