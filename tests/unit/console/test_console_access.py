"""The door of a console proxy: tokens, the order of checks, limits, and how sessions end."""

from __future__ import annotations

import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.console import access, codes, kinds, relay, rfb, sessions, target
from nova.console.recording import recorded
from nova.console.stream import Stream
from nova.model.guest.consoles import ConsoleConnection, ConsoleType, TokenCheck, token_hash
from tests.fakes.console_front import GOOD, SERVER, FakeConsoleAuth


@pytest.mark.parametrize(("query", "cookie", "token"), [
    ("token=abc", "", "abc"), ("title=x&token=abc", "token=other", "abc"), ("path=%3Ftoken%3Dabc", "", "abc"),
    ("path=websockify%3Ftoken%3Dabc&resize=scale", "", "abc"), ("", "token=abc", "abc"),
    ("", "a=b; token=abc; c=d", "abc"), ("", "bad cookie here; {=}; token=abc", "abc"), ("", 'token="abc"', "abc"),
    ("token=", "token=abc", "abc"), ("", "", ""), ("path=websockify", "", ""), ("", "tokens=abc", ""),
    ("", "token", ""), ("path=%3Fpath%3D%253Ftoken%253Dabc", "", ""),
    ("path=?" * 2000 + "token=abc", "", ""),
    ("&".join(["a=b"] * 200) + "&token=abc", "", ""), ("path=token%3Dabc", "", ""),
])
def test_token_is_taken_from_query_then_path_then_cookie(query: str, cookie: str, token: str) -> None:
    assert access.token_of({"QUERY_STRING": query, "HTTP_COOKIE": cookie}) == token


@pytest.mark.parametrize("query", ["token=" + "a" * 300, "token=%00", "token=%C3%A9", "token=a%0Ab"])
def test_token_that_can_be_none_of_ours_is_refused_without_asking(query: str) -> None:
    with pytest.raises(access.ConsoleRefused) as caught:
        access.token_of({"QUERY_STRING": query})
    assert caught.value.status == 404


class ApiFrontend:
    """The user's side, without a network."""

    def __init__(self) -> None:
        self.closed: list[tuple[int, str]] = []

    def close(self, code: int, words: str) -> None:
        self.closed.append((code, words))


class Back:
    def __init__(self) -> None:
        self.closed = self.broken = False
        self.sock = self

    def shutdown(self, _how: int) -> None:
        self.broken = True

    def close(self) -> None:
        self.closed = True


class Auth(FakeConsoleAuth):
    """Its checks are steps, too."""

    def __init__(self, steps: list[str], *args: Any) -> None:
        super().__init__(*args)
        self.steps = steps
        self.checking: Callable[[], None] = lambda: None

    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        self.steps.append("redeem" if check.redeem else "look")
        if check.redeem:
            self.checking()
        return super().check_token(check)


class Scene:
    """A gate whose steps are noted. ``steps``: their names, in the order they came."""

    def __init__(self, kind: kinds.ConsoleKind = kinds.NOVNC, once: bool = False,
                 limits: sessions.SessionLimits | None = None,
                               **settings: Any) -> None:
        self.steps: list[str] = []
        self.front, self.back = ApiFrontend(), Back()
        self.times: list[relay.Times] = []
        self.carrying: Callable[[relay.Control], relay.Ending] = lambda _control: relay.Ending(1000, "ended")
        self.failure: Exception | None = None
        self.connecting: Callable[[], None] = lambda: None
        self.securing: Callable[[], None] = lambda: None
        self.auth = Auth(self.steps, kind.types[0], once)
        self.auth.give()
        self.sessions = sessions.Sessions(limits or sessions.SessionLimits(9, 9, 9, 9), kind.exclusive,
                                          lambda _state: None)
        self.gate = access.ConsoleAccess(kind, self.auth, self.sessions, access.AccessSettings(**settings),
                                         access.Steps(self.connect, self.secure, self.carry, self.accept))

    def accept(self, _sock: Any, _environ: Any) -> ApiFrontend:
        self.steps.append("accept")
        return self.front

    def connect(self, address: Any, _reach: Any) -> Back:
        self.steps.append(f"connect {address.port}")
        self.connecting()
        if self.failure is not None:
            raise self.failure
        return self.back

    def secure(self, _front: Any, back: Any, _security: Any) -> Any:
        self.steps.append("secure")
        self.securing()
        return back

    def carry(self, _front: Any, _back: Any, times: relay.Times, control: relay.Control) -> relay.Ending:
        self.steps.append("carry")
        self.times.append(times)
        return self.carrying(control)

    def admit(self, token: str = GOOD, **headers: str) -> access.ConsoleAdmission:
        return self.gate.admit({"QUERY_STRING": f"token={token}", **headers})

    def open(self) -> tuple[int, str]:
        self.gate.serve(None, {}, self.admit())
        return self.front.closed[-1]


def refused(scene: Scene, token: str = GOOD, **headers: str) -> access.ConsoleRefused:
    with pytest.raises(access.ConsoleRefused) as caught:
        scene.admit(token, **headers)
    assert set(scene.steps) <= {"look"}, "nothing is used up or connected before all is checked"
    return caught.value


def test_good_token_goes_through_all_steps_in_order() -> None:
    scene = Scene()
    assert scene.open() == (1000, "ended")
    assert scene.steps == ["look", "accept", "connect 5900", "redeem", "secure", "carry"]
    assert scene.back.closed and len(scene.sessions) == 0
    check = scene.auth.checks[0]
    assert (check.token_hash, check.types, check.redeem) == (token_hash(GOOD), (ConsoleType.NOVNC,), False)


def test_only_vnc_is_asked_for_its_security() -> None:
    scene = Scene(kinds.SERIAL)
    scene.open()
    assert "secure" not in scene.steps


@pytest.mark.parametrize(("error", "status", "words"), [
    (errors.NotFound("It has expired."), 404, "It has expired."),
    (errors.Invalid("Another kind."), 403, "Another kind."), (errors.Conflict("Used up."), 403, "Used up."),
    (errors.Unavailable("amqp://10.0.0.1 is down"), 503, access.NOT_NOW), (errors.Bug("KeyError"), 503, access.NOT_NOW),
])
def test_bad_token_is_refused_in_words_that_tell_no_internals(error: errors.NovaError, status: int, words: str) -> None:
    scene = Scene()
    scene.auth.error = error
    found = refused(scene)
    assert (found.status, found.words) == (status, words)
    with pytest.raises(access.ConsoleRefused) as caught:
        scene.gate.look(GOOD)
    assert caught.value.status == status


def test_words_of_consoleauth_itself_are_passed_on() -> None:
    scene = Scene()
    scene.auth.error = errors.Unavailable("A part of the cloud does not answer.")
    scene.auth.error.code = "console.cannot_tell"
    assert refused(scene).words == "A part of the cloud does not answer."


def test_missing_token_is_refused() -> None:
    assert refused(Scene(), token="").status == 403


def test_token_of_another_type_is_refused_even_if_consoleauth_let_it_pass() -> None:
    scene = Scene()
    scene.auth.type = ConsoleType.SERIAL
    scene.auth.give()
    assert refused(scene).status == 403


def test_foreign_origin_is_refused_after_the_token_was_checked() -> None:
    scene = Scene(allowed_origins=("good.example",))
    where = {"HTTP_HOST": "127.0.0.1:6080"}
    assert refused(scene, HTTP_ORIGIN="http://evil.example", **where).status == 403
    assert refused(scene, HTTP_ORIGIN="null", **where).status == 403
    assert len(scene.auth.checks) == 2
    scene.admit(HTTP_ORIGIN="http://good.example", **where)
    scene.admit(HTTP_ORIGIN="http://127.0.0.1:6080", **where)


def test_limit_when_reached_then_the_socket_is_closed_with_words_and_nothing_is_connected() -> None:
    scene = Scene(limits=sessions.SessionLimits(0, 9, 9, 9))
    code, words = scene.open()
    assert code == codes.POLICY and words
    assert scene.steps == ["look", "accept"]


def test_host_when_it_does_not_answer_then_the_words_are_in_the_close() -> None:
    scene = Scene()
    scene.failure = target.TargetError("The server's host does not answer.", "10.0.0.5:5900 refused")
    assert scene.open() == (1011, "The server's host does not answer.")
    assert len(scene.sessions) == 0


@pytest.mark.parametrize("obstacle", ["origin", "limit", "drain", "host", "browser"])
def test_single_use_token_when_its_console_does_not_open_then_it_is_not_used_up(obstacle: str) -> None:
    scene = Scene(once=True, limits=sessions.SessionLimits(0 if obstacle == "limit" else 9, 9, 9, 9))
    admission = scene.admit()
    if obstacle == "origin":
        refused(scene, HTTP_ORIGIN="http://evil.example", HTTP_HOST="127.0.0.1")
    elif obstacle == "drain":
        scene.sessions.draining = True
        assert refused(scene).status == 503
        scene.gate.serve(None, {}, admission)
    else:
        scene.failure = target.TargetError("It does not answer.") if obstacle == "host" else None
        if obstacle == "browser":
            scene.gate.steps = scene.gate.steps._replace(accept=gone)
        scene.gate.serve(None, {}, admission)
    assert scene.auth.used == set() and "carry" not in scene.steps


@pytest.mark.parametrize(("error", "code"), [
    (errors.NotFound("It has moved."), codes.REFUSED), (errors.Conflict("Used up."), codes.REFUSED),
    (errors.Unavailable("amqp"), codes.BACK_END)])
def test_token_when_it_is_no_longer_good_once_the_console_is_reached_then_no_byte_is_carried(
        error: errors.NovaError, code: int) -> None:
    scene = Scene()

    def connecting() -> None:
        scene.auth.error = error
    scene.connecting = connecting
    found = scene.open()
    assert found == (code, access.NOT_NOW if code == codes.BACK_END else error.message)
    assert scene.steps == ["look", "accept", "connect 5900", "redeem"] and scene.back.closed
    assert len(scene.sessions) == 0


def test_console_when_it_is_elsewhere_once_it_is_reached_then_no_byte_is_carried() -> None:
    scene = Scene()
    scene.connecting = lambda: (scene.auth.give(port=5901), None)[1]
    assert scene.open() == (codes.REFUSED, access.MOVED)
    assert scene.back.closed and "secure" not in scene.steps


@pytest.mark.parametrize("when", ["connect", "redeem", "secure"])
def test_session_that_only_opens_when_it_is_told_to_end_then_its_user_learns_it_at_once(when: str) -> None:
    scene = Scene()
    learned: list[bool] = []

    def drained() -> None:
        draining = threading.Thread(target=scene.sessions.drain, args=(0,))
        draining.start()
        until = time.monotonic() + 2
        while not reported() and time.monotonic() < until:
            time.sleep(0.005)
        learned.append(reported())

    def reported() -> bool:
        return scene.back.broken if when == "secure" else (codes.GOING_AWAY, sessions.DRAINING) in scene.front.closed
    if when == "secure":
        scene.securing = drained
    elif when == "connect":
        scene.connecting = drained
    else:
        scene.auth.checking = drained
    assert scene.open() == (codes.GOING_AWAY, sessions.DRAINING)
    assert learned == [True]
    assert "carry" not in scene.steps and ("secure" in scene.steps) == (when == "secure") and scene.back.closed


@pytest.mark.parametrize("error", [rfb.ViewerError("It speaks otherwise.", 1002), rfb.ViewerError("It left.", 1006)])
def test_viewer_that_fails_is_no_failure_of_the_host(error: rfb.ViewerError, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()

    def securing() -> None:
        raise error
    scene.securing = securing
    with caplog.at_level("INFO"):
        assert scene.open() == (error.code, error.words)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert not any("Cannot reach" in message or "session opened" in message for message in caplog.messages)


def test_console_is_opened_in_the_log_when_it_is_there(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.securing = lambda: seen.extend(caplog.messages)
    seen: list[str] = []
    with caplog.at_level("INFO"):
        scene.open()
    assert seen == []
    assert ["opened for user user-1; 1 connections open" in message for message in caplog.messages] == [True, False]


def test_session_that_fails_unexpectedly_is_closed_and_counted_out() -> None:
    scene = Scene()
    scene.failure = ZeroDivisionError("secret")
    code, words = scene.open()
    assert code == 1011 and "secret" not in words
    assert len(scene.sessions) == 0


def gone(_sock: Any, _environ: Any) -> Any:
    raise ConnectionResetError


def test_browser_that_has_gone_before_the_answer_is_no_session() -> None:
    scene = Scene()
    scene.gate.steps = scene.gate.steps._replace(accept=gone)
    scene.gate.serve(None, {}, scene.admit())
    assert len(scene.sessions) == 0 and scene.steps == ["look"]


def test_single_use_token_when_a_page_has_several_channels_then_they_join_its_first() -> None:
    scene = Scene(kinds.SPICE, once=True)
    joined: list[access.ConsoleAdmission] = []

    def carrying(_control: relay.Control) -> relay.Ending:
        joined.append(scene.admit())
        return relay.Ending(1000, "ended")
    scene.carrying = carrying
    scene.open()
    assert joined[0].grant.server_uuid == SERVER
    with pytest.raises(access.ConsoleRefused):
        scene.admit()


def test_single_use_token_when_a_page_has_one_channel_then_a_second_is_refused() -> None:
    scene = Scene(kinds.NOVNC, once=True)
    seen: list[int] = []

    def carrying(_control: relay.Control) -> relay.Ending:
        with pytest.raises(access.ConsoleRefused) as caught:
            scene.admit()
        seen.append(caught.value.status)
        return relay.Ending(1000, "ended")
    scene.carrying = carrying
    scene.open()
    assert seen == [403]


def test_serial_console_when_opened_again_then_the_older_is_told() -> None:
    scene = Scene(kinds.SERIAL)
    started = threading.Event()

    def carrying(control: relay.Control) -> relay.Ending:
        started.set()
        until = time.monotonic() + 3
        while control.ending is None and time.monotonic() < until:
            time.sleep(0.005)
        return control.ending or relay.Ending(0, "not told")
    scene.carrying = carrying
    first = threading.Thread(target=scene.open)
    first.start()
    assert started.wait(3)
    scene.carrying = lambda _control: relay.Ending(1000, "newer")
    scene.open()
    first.join(3)
    assert sorted(scene.front.closed) == [(1000, "newer"), (codes.ELSEWHERE, sessions.OPENED_ELSEWHERE)]


def test_times_end_a_session_with_its_token_only_where_that_is_asked_for() -> None:
    free = Scene(idle_s=60, total_s=0)
    free.open()
    assert (free.times[0].idle_s, free.times[0].total_s) == (60, 0)
    both = Scene(idle_s=60, total_s=7200, until_expiry=True)
    both.auth.give(expires_at=int(time.time()) + 100)
    both.open()
    assert 90 <= both.times[0].total_s <= 100
    over = Scene(until_expiry=True)
    over.auth.give(expires_at=1)
    over.open()
    assert over.times[0].total_s == 1


def test_record_holds_what_the_guest_sent_and_its_owner_alone_reads_it(tmp_path: Path) -> None:
    ours, guest = socket.socketpair()
    with guest, recorded(Stream(ours), str(tmp_path / "session"), SERVER) as back:
        guest.sendall(b"boot")
        assert back.read() == b"boot"
        guest.sendall(b" login:")
        room = memoryview(bytearray(100))
        assert back.read_into(room) == 7
        assert back.fileno() == ours.fileno()
        back.close()
    file, = tmp_path.iterdir()
    assert file.name.startswith(f"session.{SERVER}.") and file.read_bytes() == b"boot login:"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_record_when_it_cannot_be_written_then_the_session_goes_on(tmp_path: Path) -> None:
    back = object()
    with recorded(back, str(tmp_path / "none" / "session"), SERVER) as same:
        assert same is back
