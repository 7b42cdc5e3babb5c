"""A host's secret: made once, for its daemons alone, brought to the conductors by a token, changed while they run."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.host.services import Registered, Registration
from nova.model.security.security_modes import SecurityMode
from nova.rpc import host_secret
from nova.rpc.host_secret import BOUNDED, FILE, NEXT, TOKEN, HostSecret

REGISTRATION = Registration(host="h", binary="nova-compute", topic="compute")
GIVEN = "7" * 64


def put(path: Path, text: str = GIVEN, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


def test_secret_is_made_once_and_for_its_daemons_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    made = HostSecret(state)("h")
    assert len(made[0]) == 64 and HostSecret(state)("h") == (host_secret.peek(state),) == made
    assert stat.S_IMODE((state / FILE).stat().st_mode) == 0o600
    assert os.listdir(state) == [FILE]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_secret_when_root_makes_it_then_it_is_the_folders_owners(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12346)
    HostSecret(tmp_path)
    status = (tmp_path / FILE).stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 12346, 0o600)


def test_secret_when_daemons_start_at_the_same_moment_then_all_have_the_same(tmp_path: Path, monkeypatch) -> None:
    numbers = iter(range(100, 1000))
    monkeypatch.setattr(host_secret.os, "getpid", lambda: next(numbers))  # as if each were a process of its own
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: HostSecret(tmp_path)("h"), range(8)))) == 1


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 80])
def test_secret_when_its_file_is_damaged_then_the_message_has_the_cure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(errors.host.DamagedSecret, match="nova-manage host enroll"):
        HostSecret(tmp_path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_secret_when_others_can_reach_it_then_it_is_not_used(tmp_path: Path, mode: int) -> None:
    put(tmp_path / FILE, mode=mode)
    with pytest.raises(errors.host.DamagedSecret, match="chmod 600"):
        HostSecret(tmp_path)


def test_peek_makes_none(tmp_path: Path) -> None:
    assert host_secret.peek(tmp_path) == "" and not list(tmp_path.iterdir())


def test_registration_shows_no_secret_in_a_log() -> None:
    assert "hidden" not in repr(Registration(host="h", binary="b", topic="t", secret="hidden"))


# -- introductions

class Conductor:
    """Knows a secret, or a token, and keeps what is brought by it."""

    def __init__(self, own: HostSecret, *good: str) -> None:
        self.own, self.good, self.said = own, set(good), []  # type: HostSecret, set[str], list[str]
        self.lost = False

    def register(self, registration: Registration) -> Registered:
        key = self.own("h")[0]
        self.said.append(registration.secret)
        if key not in self.good:
            raise errors.daemon.RpcNotEnrolled(host="h") if not self.good else errors.daemon.RpcNotProven(host="h")
        if registration.secret:
            self.good = {registration.secret}
        if self.lost:
            raise errors.Unavailable("the answer was lost")
        return Registered(service_id=1)


def test_introduction_when_the_secret_is_known_then_it_is_not_told_and_a_token_stays(tmp_path: Path) -> None:
    own = HostSecret(tmp_path)
    put(tmp_path / TOKEN)
    conductor = Conductor(own, own("h")[0])
    own.introduce(conductor.register, REGISTRATION, str)
    assert conductor.said == [""] and (tmp_path / TOKEN).exists()


@pytest.mark.parametrize("known", [(), ("0" * 64,)], ids=["new", "installed anew"])
def test_introduction_when_it_has_a_token_then_it_brings_its_secret_once(tmp_path: Path, known: Any) -> None:
    own = HostSecret(tmp_path)
    put(tmp_path / TOKEN)
    conductor = Conductor(own, *known, GIVEN)
    assert own.introduce(conductor.register, REGISTRATION, str).service_id == 1
    assert conductor.good == {host_secret.peek(tmp_path)} and not (tmp_path / TOKEN).exists()
    own.introduce(conductor.register, REGISTRATION, str)
    assert conductor.said == ["", host_secret.peek(tmp_path), ""]


def test_introduction_when_its_answer_was_lost_then_the_secret_is_known_the_next_time(tmp_path: Path) -> None:
    own = HostSecret(tmp_path)
    put(tmp_path / TOKEN)
    conductor = Conductor(own, GIVEN)
    conductor.lost = True
    with pytest.raises(errors.Unavailable, match="lost"):
        own.introduce(conductor.register, REGISTRATION, str)
    conductor.lost = False
    assert own.introduce(conductor.register, REGISTRATION, str).service_id == 1


@pytest.mark.parametrize("error", [errors.daemon.RpcNotEnrolled(host="h"), errors.daemon.RpcNotProven(host="h"),
                                   errors.Unavailable("away")])
def test_introduction_when_there_is_no_token_then_the_refusal_stands(tmp_path: Path, error: errors.NovaError) -> None:
    def register(_said: Registration) -> Registered:
        raise error
    with pytest.raises(type(error)):
        HostSecret(tmp_path).introduce(register, REGISTRATION, str)


def test_introduction_when_others_can_read_the_token_then_it_is_not_used(tmp_path: Path) -> None:
    own = HostSecret(tmp_path)
    put(tmp_path / TOKEN, mode=0o644)
    with pytest.raises(errors.host.DamagedSecret, match="chmod 600"):
        own.introduce(Conductor(own, GIVEN).register, REGISTRATION, str)


class Bounded(Conductor):
    """Answers that the cloud is in bounded mode."""

    def register(self, registration: Registration) -> Registered:
        return msgspec.structs.replace(super().register(registration), mode=SecurityMode.BOUNDED)


def test_introduction_when_another_users_daemon_marked_the_mode_then_it_registers(tmp_path: Path, monkeypatch) -> None:
    own, real = HostSecret(tmp_path), os.open
    (tmp_path / BOUNDED).touch(0o444)

    def as_another_user(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if Path(path) == tmp_path / BOUNDED and not flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, "Permission denied")  # root, who may run this test, is never refused
        return real(path, flags, *rest, **named)

    def not_the_owner(*_args: Any, **_named: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")
    monkeypatch.setattr(os, "open", as_another_user)
    monkeypatch.setattr(os, "utime", not_the_owner)
    assert own.introduce(Bounded(own, own("h")[0]).register, REGISTRATION, str).mode == SecurityMode.BOUNDED


def test_introduction_when_the_mode_cannot_be_marked_then_it_is_unavailable_and_works_later(tmp_path: Path,
                                                                                          monkeypatch) -> None:
    own, real = HostSecret(tmp_path), os.open

    def full(path: Any, *rest: Any, **named: Any) -> int:
        if Path(path) == tmp_path / BOUNDED:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, *rest, **named)
    with monkeypatch.context() as disk:
        disk.setattr(os, "open", full)
        with pytest.raises(errors.Unavailable, match="bounded_mode: No space left on device"):
            own.introduce(Bounded(own, own("h")[0]).register, REGISTRATION, str)
    own.introduce(Bounded(own, own("h")[0]).register, REGISTRATION, str)
    assert (tmp_path / BOUNDED).exists()


# -- another secret, while daemons run

def test_change_then_running_daemons_have_it_and_know_the_one_before(tmp_path: Path) -> None:
    running, told = HostSecret(tmp_path), []  # type: HostSecret, list[str]
    before = running("h")[0]

    def tell(fresh: str) -> None:
        told.append(fresh)
        assert running("h") == (before, fresh), "orders may be proven by it from now on"
    HostSecret(tmp_path).change(tell)
    assert running("h") == (told[0], before) and HostSecret(tmp_path)("h") == (told[0],)
    assert sorted(os.listdir(tmp_path)) == [FILE]


@pytest.mark.parametrize("answered", [False, True])
def test_change_when_it_is_cut_off_then_the_next_one_ends_it(tmp_path: Path, answered: bool) -> None:
    told: list[str] = []

    def cut(fresh: str) -> None:
        told.extend([fresh] if answered else [])
        raise errors.Unavailable("no answer")
    with pytest.raises(errors.Unavailable):
        HostSecret(tmp_path).change(cut)
    half = HostSecret(tmp_path)("h")
    assert len(half) == 2 and stat.S_IMODE((tmp_path / NEXT).stat().st_mode) == 0o600
    HostSecret(tmp_path).change(told.append)
    assert set(told) == {half[1]} and HostSecret(tmp_path)("h") == (half[1],)
