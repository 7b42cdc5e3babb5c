"""os-brick in a process of its own: what it is asked and told, and that no secret leaves it."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.privileged import brick_process
from nova.privileged.brick import KNOWN_S, Brick, BrickAnswer, BrickDevice, BrickRequest, HostWords
from nova.privileged.runner import Completed, SystemRunner

PASSWORD = "chap-pass-word"
WORDS = {"target_iqn": "iqn.2010-10.org:v", "target_lun": 1, "auth_password": PASSWORD, "auth_username": "bob-by-chap"}
FOUND = {"path": "/dev/sdb", "scsi_wwn": "3600", "type": "block"}


class FakeLibrary:
    """os-brick, as far as the process knows it. ``fails``: what its next call raises."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.done: list[Any] = []
        self.fails = fails
        self.connector = self

    def connector_of(self, request: BrickRequest, device: BrickDevice) -> FakeLibrary:
        self.done.append((device.protocol, request.multipath, device.tries))
        return self

    @contextlib.contextmanager
    def guard(self, device: dict[str, Any]) -> Any:
        self.done.append(("guard", device))
        yield
        self.done.append("free")

    def get_connector_properties(self, *args: Any) -> dict[str, Any]:
        return self._call("properties", args, {"initiator": None, "nqn": "nqn.1"})

    def connect_volume(self, words: Any) -> dict[str, Any]:
        return self._call("connect", words, FOUND)

    def disconnect_volume(self, words: Any, found: Any, **how: bool) -> None:
        self._call("disconnect", (words, found, how), None)

    def extend_volume(self, words: Any) -> int:
        return self._call("extend", words, 2 << 30)

    def _call(self, *call: Any) -> Any:
        self.done.append(call[:2])
        if self.fails:
            raise self.fails
        return call[2]


def request(call: str, **changes: Any) -> BrickRequest:
    return BrickRequest(call=call, lock_path="/locks", multipath=True,
                   device=BrickDevice(protocol="ISCSI", words=WORDS, **changes))


# --- in the process

def test_connect_when_targets_are_shared_then_it_is_its_turn_and_the_device_is_told():
    library = FakeLibrary()
    answer = brick_process.answer(request("connect", shared_targets=None, service_uuid="host@iscsi", tries=7),
                                  lambda _: library)
    assert answer == BrickAnswer(FOUND)
    assert library.done == [("guard", {"shared_targets": None, "service_uuid": "host@iscsi"}), ("ISCSI", True, 7),
                            ("connect", WORDS), "free"]


@pytest.mark.parametrize("turns", [{"shared_targets": False, "service_uuid": "host@iscsi"}, {"shared_targets": True}])
def test_connect_when_no_target_is_shared_then_nobody_waits(turns):
    library = FakeLibrary()
    brick_process.answer(request("connect", **turns), lambda _: library)
    assert [one[0] for one in library.done] == ["ISCSI", "connect"]


@pytest.mark.parametrize("force", [True, False])
def test_disconnect_when_it_is_forced_then_errors_count_for_nothing_and_else_they_do(force):
    library = FakeLibrary()
    brick_process.answer(msgspec.structs.replace(request("disconnect", found=FOUND), force=force), lambda _: library)
    assert library.done[-1] == ("disconnect", (WORDS, FOUND, {"force": force, "ignore_errors": force}))


def test_extend_when_it_is_asked_then_the_new_size_is_told():
    assert brick_process.answer(request("extend"), lambda _: FakeLibrary()) == BrickAnswer(2 << 30)


@pytest.mark.parametrize("call", ["connect", "disconnect", "extend", "properties"])
def test_call_when_the_library_fails_then_its_reason_is_told_without_secrets(call):
    library = FakeLibrary(RuntimeError(f"iscsiadm -v {PASSWORD}\n  of bob-by-chap: exit 8"))
    answer = brick_process.answer(request(call), lambda _: library)
    assert answer.error == "iscsiadm -v *** of ***: exit 8"


def test_call_when_there_is_no_device_or_no_such_call_then_it_is_an_error():
    without = brick_process.answer(BrickRequest(call="connect", lock_path=""), lambda _: FakeLibrary())
    assert "without a device" in without.error
    assert brick_process.answer(request("dance"), lambda _: FakeLibrary()).error


def test_words_when_they_are_kept_then_secrets_are_not_among_them():
    assert brick_process.without_secrets(WORDS) == {"target_iqn": "iqn.2010-10.org:v", "target_lun": 1}


def test_log_when_it_has_a_secret_or_a_stack_then_neither_is_shown():
    try:
        raise ValueError(PASSWORD)
    except ValueError as error:
        line = logging.LogRecord("os_brick", logging.ERROR, "", 1, "with %s", (PASSWORD,), (ValueError, error, None))
    assert brick_process.HidingFormatter(WORDS).format(line) == "ERROR os_brick with ***"


# --- before it

class FakeRunner:
    """Answers with ``out``, or fails."""

    def __init__(self, out: str = "", err: str = "", fails: Exception | None = None) -> None:
        self.out, self.err, self.fails = out, err, fails
        self.ran: list[tuple[list[str], BrickRequest]] = []

    def run(self, argv: Any, *, stdin: str | None = None, **_: Any) -> Completed:
        self.ran.append((list(argv), msgspec.json.decode(stdin or "", type=BrickRequest)))
        if self.fails:
            raise self.fails
        return Completed(0, self.out, self.err)


def client(runner: Any, clock: Any = lambda: 0.0, **host: Any) -> Brick:
    return Brick(runner, HostWords("/locks", **host), clock)


def told(**answer: Any) -> str:
    return msgspec.json.encode(BrickAnswer(**answer)).decode()


def test_secrets_when_the_process_is_started_then_they_are_on_its_input_alone(caplog):
    runner = FakeRunner(told(result=FOUND), "WARNING os_brick slow")
    with caplog.at_level(logging.DEBUG):
        assert client(runner, multipath=True).connect(BrickDevice(protocol="ISCSI", words=WORDS)) == FOUND
    [(argv, asked)] = runner.ran
    assert PASSWORD not in " ".join(argv) + repr(asked) + caplog.text and asked.device.words == WORDS
    assert asked.multipath and "WARNING os_brick slow" in caplog.text


@pytest.mark.parametrize(("runner", "reason"), [
    (FakeRunner(told(error="no such target")), "no such target"), (FakeRunner("Traceback"), "did not answer"),
    (FakeRunner(fails=errors.host.CommandTooSlow(command="python", where="here", reason="it took longer than 300 s")),
     "longer than 300 s")])
def test_call_when_the_process_fails_then_the_error_says_why(runner, reason):
    with pytest.raises(errors.host.Brick, match=reason):
        client(runner).disconnect(BrickDevice(protocol="ISCSI", words=WORDS))


def test_properties_when_they_are_asked_for_often_then_the_host_is_looked_at_now_and_then():
    now = [1000.0]
    runner = FakeRunner(told(result={"initiator": None, "nqn": "nqn.1"}))
    brick = client(runner, lambda: now[0])
    assert brick.properties() == {"nqn": "nqn.1"} == brick.properties() and len(runner.ran) == 1
    now[0] += KNOWN_S
    brick.properties()
    assert len(runner.ran) == 2


# --- the real library

@pytest.fixture
def real(tmp_path):
    pytest.importorskip("os_brick", reason="the library is in the extra brick")
    return Brick(SystemRunner(60.0), HostWords(str(tmp_path / "locks"), address="192.0.2.1"))


def test_library_when_the_host_has_no_initiator_then_it_says_what_it_has(real):
    found = real.properties()
    assert found["ip"] == "192.0.2.1" and found["multipath"] is False and None not in found.values()


def test_library_when_a_device_is_of_this_host_then_it_is_connected_extended_and_let_go(real, tmp_path):
    path = tmp_path / "device"
    path.write_bytes(b"\0" * 512)
    device = BrickDevice(protocol="LOCAL", words={"device_path": str(path)}, service_uuid="host@local",
                         shared_targets=None)
    found = real.connect(device)
    assert found["path"] == str(path)
    real.disconnect(msgspec.structs.replace(device, found=found))
    assert list(Path(tmp_path / "locks").iterdir())  # it waited for its turn


def test_library_when_it_cannot_then_the_error_has_its_words_and_no_secret(real):
    with pytest.raises(errors.host.Brick) as caught:
        real.connect(BrickDevice(protocol="PIGEON", words=WORDS))
    assert "PIGEON" in caught.value.message and PASSWORD not in caught.value.message


def test_library_when_the_tools_of_iscsi_are_missing_then_a_forced_disconnect_is_done_with_it(real):
    real.disconnect(BrickDevice(protocol="ISCSI", words={**WORDS, "target_portal": "127.0.0.1:1"}, tries=1), force=True)
