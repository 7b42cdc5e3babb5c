"""Whether a process hears what is sent to it."""

from __future__ import annotations

import pytest

from nova.rpc.rpc_watchdog import RpcWatchdog


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watchdog(clock: Clock) -> RpcWatchdog:
    return RpcWatchdog(clock)


def test_hearing_when_nothing_is_expected_then_silence_is_none(watchdog: RpcWatchdog, clock: Clock) -> None:
    clock.now += 1000
    assert watchdog.silent_s == 0


def test_watchdog_when_an_expected_message_does_not_come_then_silence_grows_from_the_first(
        watchdog: RpcWatchdog, clock: Clock) -> None:
    watchdog.expect()
    clock.now += 20
    watchdog.expect()
    clock.now += 20
    assert watchdog.silent_s == 40


def test_hearing_when_anything_comes_then_it_hears(watchdog: RpcWatchdog, clock: Clock) -> None:
    watchdog.expect()
    clock.now += 20
    with watchdog.message():
        assert watchdog.silent_s == 0


def test_hearing_when_the_broker_is_away_then_nobody_is_deaf(watchdog: RpcWatchdog, clock: Clock) -> None:
    watchdog.expect()
    clock.now += 500
    watchdog.excuse()
    assert watchdog.silent_s == 0


def test_hearing_when_it_is_busy_with_what_came_then_more_need_not_come(watchdog: RpcWatchdog, clock: Clock) -> None:
    with watchdog.message():
        watchdog.expect()
        clock.now += 500
        assert watchdog.silent_s == 0
    watchdog.expect()
    clock.now += 5
    assert watchdog.silent_s == 5
