"""Whether a process hears what is sent to it."""

from __future__ import annotations

import pytest

from nova.rpc.hearing import Hearing


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hearing(clock: Clock) -> Hearing:
    return Hearing(clock)


def test_hearing_when_nothing_is_expected_then_silence_is_none(hearing: Hearing, clock: Clock) -> None:
    clock.now += 1000
    assert hearing.silent_s == 0


def test_hearing_when_what_is_expected_does_not_come_then_silence_grows_from_the_first(hearing: Hearing, clock: Clock
                                                                                       ) -> None:
    hearing.expect()
    clock.now += 20
    hearing.expect()
    clock.now += 20
    assert hearing.silent_s == 40


def test_hearing_when_anything_comes_then_it_hears(hearing: Hearing, clock: Clock) -> None:
    hearing.expect()
    clock.now += 20
    with hearing.message():
        assert hearing.silent_s == 0


def test_hearing_when_the_broker_is_away_then_nobody_is_deaf(hearing: Hearing, clock: Clock) -> None:
    hearing.expect()
    clock.now += 500
    hearing.excuse()
    assert hearing.silent_s == 0


def test_hearing_when_it_is_busy_with_what_came_then_more_need_not_come(hearing: Hearing, clock: Clock) -> None:
    with hearing.message():
        hearing.expect()
        clock.now += 500
        assert hearing.silent_s == 0
    hearing.expect()
    clock.now += 5
    assert hearing.silent_s == 5
