"""Open consoles: how many there may be, of whom, and how they are drained."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from prometheus_client import REGISTRY

from nova.console.codes import ELSEWHERE, GOING_AWAY, POLICY
from nova.console.sessions import Full, Session, SessionLimits, Sessions, SessionTotal
from nova.model.guest.consoles import ConsoleAddress, ConsoleConnection, ConsoleType

MANY = SessionLimits(100, 100, 100, 100)


class Ended:
    """A control that remembers how it was used; ``on_end``: what the session's thread would do then."""

    def __init__(self) -> None:
        self.ends: list[tuple[int, str]] = []
        self.ending: tuple[int, str] | None = None
        self.on_end = lambda: None

    def end(self, code: int, words: str) -> None:
        self.ends.append((code, words))
        self.ending = self.ending or (code, words)
        self.on_end()


def session(token: str = "t", server: str = "s", user: str = "u") -> Session:
    grant = ConsoleConnection(type=ConsoleType.SERIAL, server_uuid=server, user_id=user, project_id="p", expires_at=1,
                              address=ConsoleAddress(access_url_base="http://x/", host="h", port=1))
    return Session(grant, token, Ended())


def registry(limits: SessionLimits = MANY, exclusive: bool = False) -> tuple[Sessions, list[str]]:
    reported: list[str] = []
    return Sessions(limits, exclusive, reported.append), reported


@pytest.mark.parametrize(("limits", "third"), [
    (SessionLimits(2, 9, 9, 9), session("x", "x", "x")), (SessionLimits(9, 2, 9, 9), session("t", "x", "x")),
    (SessionLimits(9, 9, 2, 9), session("x", "s", "x")), (SessionLimits(9, 9, 9, 2), session("x", "x", "u")),
])
def test_session_when_one_more_than_may_be_then_it_is_refused_until_one_leaves(limits: SessionLimits,
                                                                               third: Session) -> None:
    open_, _ = registry(limits)
    first, second = session(), session()
    open_.enter(first)
    open_.enter(second)
    with pytest.raises(Full) as caught:
        open_.enter(third)
    assert caught.value.code == POLICY and len(caught.value.words.encode()) <= 123
    assert len(open_) == 2, "who was refused is not counted"
    open_.leave(first)
    open_.leave(first)
    open_.enter(third)
    assert len(open_) == 2


def test_sessions_when_proxies_share_a_process_then_metric_and_status_are_their_sum() -> None:
    total, reported = SessionTotal(), list[str]()
    first, second = (Sessions(MANY, tell=reported.append, total=total) for _ in range(2))
    mine = [session(f"t{number}") for number in range(3)]
    for one in mine:
        first.enter(one)
    others = session("other")
    second.enter(others)
    assert reported[-1] == "STATUS=connections to consoles: 4"
    second.leave(others)
    second.leave(others)
    assert reported[-1] == "STATUS=connections to consoles: 3"
    assert REGISTRY.get_sample_value("nova_console_sessions") == 3
    for one in mine:
        first.leave(one)
    assert REGISTRY.get_sample_value("nova_console_sessions") == 0


def test_sessions_of_others_do_not_count_against_one() -> None:
    open_, _ = registry(SessionLimits(9, 1, 1, 1))
    for number in range(5):
        open_.enter(session(f"t{number}", f"s{number}", f"u{number}"))
    assert len(open_) == 5


def test_limits_of_pages_with_several_connections_count_pages() -> None:
    class Group:
        max_sessions, max_sessions_per_token, max_sessions_per_server, max_sessions_per_user = 1000, 4, 10, 50

    assert SessionLimits.of(Group, 8) == SessionLimits(8000, 32, 80, 400)


def test_memory_stays_flat_when_many_come_and_go() -> None:
    open_, _ = registry()
    for number in range(200):
        one = session(f"t{number}", f"s{number}", f"u{number}")
        open_.enter(one)
        open_.leave(one)
    assert not open_._counts and not open_._open


def test_exclusive_when_a_newer_one_comes_then_the_older_of_its_server_ends() -> None:
    open_, _ = registry(SessionLimits(1, 1, 1, 1), exclusive=True)
    older, newer = session(), session()
    open_.enter(older)
    open_.enter(newer)
    assert [code for code, _ in older.control.ends] == [ELSEWHERE]
    assert newer.control.ends == []
    shared, _ = registry()
    first = session()
    shared.enter(first)
    shared.enter(session())
    assert first.control.ends == []


def entered(open_: Sessions, sessions_: list[Session]) -> int:
    """How many of them were let in."""
    count = 0
    for one in sessions_:
        with contextlib.suppress(Full):
            open_.enter(one)
            count += 1
    return count


def test_exclusive_when_those_told_to_end_take_their_time_then_the_limits_hold() -> None:
    for limits, count in ((SessionLimits(9, 999, 999, 999), 10), (SessionLimits(999, 4, 999, 999), 5),
                          (SessionLimits(999, 999, 7, 999), 8),
                                               (SessionLimits(999, 999, 999, 5), 6)):
        open_, _ = registry(limits, exclusive=True)
        assert entered(open_, [session() for _ in range(500)]) == count, "one takes another's place"
        assert len(open_) == count


def test_exclusive_when_another_user_makes_room_then_ones_own_limits_gain_nothing_by_it() -> None:
    for limits in (SessionLimits(999, 999, 999, 1), SessionLimits(999, 1, 999, 999)):
        open_, _ = registry(limits, exclusive=True)
        open_.enter(session("mine", "elsewhere", "me"))
        open_.enter(session("theirs", "s", "them"))
        with pytest.raises(Full):
            open_.enter(session("mine", "s", "me"))


def test_known_is_what_an_open_session_of_the_token_was_granted() -> None:
    open_, _ = registry()
    one = session("t")
    assert open_.known("t") is None
    open_.enter(one)
    assert open_.known("t") is None, "it is not known yet whether it may"
    one.redeemed = True
    assert open_.known("t") is one.grant
    open_.leave(one)
    assert open_.known("t") is None


def test_count_is_told_at_each_change() -> None:
    open_, reported = registry()
    one, two = session(), session()
    open_.enter(one)
    open_.enter(two)
    open_.leave(one)
    open_.leave(two)
    assert reported == [f"STATUS=connections to consoles: {count}" for count in (1, 2, 1, 0)]


def test_drain_when_sessions_run_then_they_have_their_time_and_are_told_why() -> None:
    open_, _ = registry()
    staying, going = session("a"), session("b")
    open_.enter(staying)
    open_.enter(going)
    staying.control.on_end = lambda: open_.leave(staying)
    threading.Timer(0.05, lambda: open_.leave(going)).start()
    open_.drain(0.15)
    assert [code for code, _ in staying.control.ends] == [GOING_AWAY] and going.control.ends == []
    with pytest.raises(Full) as caught:
        open_.enter(session("c"))
    assert caught.value.code == GOING_AWAY


def test_drain_when_none_runs_then_it_waits_for_nothing() -> None:
    began = time.monotonic()
    registry()[0].drain(60)
    assert time.monotonic() - began < 1
