"""A host's secret: made once, readable by its daemons alone, told to the conductor once."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nova import errors
from nova.model.services import Registered, Registration
from nova.rpc import host_secret

REGISTRATION = Registration(host="h", binary="nova-compute", topic="compute")


def test_secret_is_made_once_and_for_its_daemons_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    made = host_secret.load(state)
    assert len(made) == 64 and host_secret.load(state) == host_secret.peek(state) == made
    assert stat.S_IMODE((state / host_secret.FILE).stat().st_mode) == 0o600
    assert os.listdir(state) == [host_secret.FILE]


def test_secret_when_daemons_start_at_the_same_moment_then_all_have_the_same(tmp_path: Path, monkeypatch) -> None:
    numbers = iter(range(100, 1000))
    monkeypatch.setattr(host_secret.os, "getpid", lambda: next(numbers))  # as if each were a process of its own
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: host_secret.load(tmp_path), range(8)))) == 1


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 80])
def test_secret_when_its_file_is_damaged_then_the_message_has_the_cure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / host_secret.FILE).write_bytes(content)
    (tmp_path / host_secret.FILE).chmod(0o600)
    with pytest.raises(errors.host.DamagedSecret, match="Restore it from a backup"):
        host_secret.load(tmp_path)


def test_peek_makes_none(tmp_path: Path) -> None:
    assert host_secret.peek(tmp_path) == "" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("wants, reported", [(False, [""]), (True, ["", "s"])])
def test_introduce_tells_the_secret_when_it_is_wanted(wants: bool, reported: list[str]) -> None:
    said: list[str] = []

    def register(registration: Registration) -> Registered:
        said.append(registration.secret)
        return Registered(service_id=1, wants_secret=wants and not registration.secret)
    assert not host_secret.introduce(register, REGISTRATION, "s").wants_secret
    assert said == reported


def test_registration_shows_no_secret_in_a_log() -> None:
    assert "hidden" not in repr(Registration(host="h", binary="b", topic="t", secret="hidden"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_secret_when_others_can_reach_it_then_it_is_not_used(tmp_path: Path, mode: int) -> None:
    host_secret.load(tmp_path)
    (tmp_path / host_secret.FILE).chmod(mode)
    with pytest.raises(errors.host.DamagedSecret, match="chmod 600"):
        host_secret.load(tmp_path)
