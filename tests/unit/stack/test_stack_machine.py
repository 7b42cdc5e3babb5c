from __future__ import annotations

import pytest

from stacklib.machine import BACKOFF_MAX, HOPELESS_AFTER, STEADY_SECONDS, Machine, Order, Phase


def test_start_when_stopped_then_spawned_once():
    machine = Machine(stop_seconds=5)
    assert machine.start(0) == [Order.SPAWN]
    assert machine.start(1) == []
    machine.ready(2)
    assert (machine.phase, machine.since) == (Phase.READY, 2)
    assert machine.start(3) == []


def test_exit_when_ready_then_started_again_after_a_second():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    machine.ready(1)
    assert machine.exited(10) == []
    assert (machine.phase, machine.due, machine.restarts) == (Phase.BACKOFF, 11, 1)
    assert machine.timer(10.9) == []
    assert machine.timer(11) == [Order.SPAWN]


def test_exits_in_a_row_then_the_pause_doubles_up_to_a_bound_and_those_who_wait_are_told():
    machine, now, pauses = Machine(stop_seconds=5), 0.0, []
    machine.start(now)
    for number in range(1, 9):
        machine.exited(now)
        assert machine.hopeless is (number >= HOPELESS_AFTER)
        pauses.append(machine.due - now)
        now = machine.due
        assert machine.timer(now) == [Order.SPAWN]
    assert pauses == [1, 2, 4, 8, 16, BACKOFF_MAX, BACKOFF_MAX, BACKOFF_MAX]


def test_start_when_it_is_just_being_tried_again_then_earlier_failures_count_no_more():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    for now in (1, 10, 20):
        machine.exited(now)
        machine.timer(now + 9)
    assert machine.phase is Phase.STARTING and machine.start(30) == []
    machine.exited(31)
    assert not machine.hopeless


def test_start_when_it_waits_for_its_pause_to_end_then_spawned_at_once():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    machine.exited(1)
    assert machine.phase is Phase.BACKOFF and machine.start(1.1) == [Order.SPAWN]


def test_exit_when_it_was_steady_before_then_the_pause_is_short_again():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    for now in (0, 10, 20):
        machine.exited(now)
        machine.timer(now + 9)
    machine.ready(30)
    machine.exited(30 + STEADY_SECONDS)
    assert machine.due == 31 + STEADY_SECONDS


def test_stop_when_it_does_not_end_then_killed_again_and_again_until_it_has():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    assert machine.stop(1) == [Order.TERMINATE]
    assert machine.stop(2) == []
    assert machine.timer(5.9) == []
    assert machine.timer(6) == [Order.KILL]
    assert machine.timer(11) == [Order.KILL]
    assert machine.exited(11.1) == []
    assert (machine.phase, machine.restarts) == (Phase.STOPPED, 0)
    assert machine.timer(99) == []


def test_stop_when_waiting_to_start_again_then_stays_stopped():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    machine.exited(1)
    assert machine.stop(1.5) == []
    assert machine.timer(60) == []
    assert machine.phase is Phase.STOPPED


@pytest.mark.parametrize("verb", ["restart", "start"])
def test_restart_when_it_stops_then_started_as_soon_as_it_has_ended(verb):
    machine = Machine(stop_seconds=5)
    machine.start(0)
    machine.stop(1)
    assert getattr(machine, verb)(2) == []
    assert machine.exited(3) == [Order.SPAWN]
    machine.stop(4)
    assert machine.exited(5) == []


def test_restart_when_ready_then_terminated_and_spawned():
    machine = Machine(stop_seconds=5)
    machine.start(0)
    machine.ready(1)
    assert machine.restart(2) == [Order.TERMINATE]
    assert machine.exited(3) == [Order.SPAWN]
