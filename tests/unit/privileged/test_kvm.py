from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import pytest

from nova import errors
from nova.privileged import kvm
from nova.privileged.kvm import KvmState
from nova.privileged.runner import Completed, SystemRunner


class Runner:
    def __init__(self, code: int = kvm.EXIT, fails: bool = False) -> None:
        self.runs, self._code, self._fails = 0, code, fails

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        self.runs += 1
        if self._fails:
            raise errors.host.CommandFailed(command=argv[0], where="here", reason="it took longer than 5 s")
        return Completed(self._code)


@pytest.fixture
def device(monkeypatch, tmp_path):
    """A /dev/kvm that can be told apart: the real one may or may not be there."""
    def set_to(device_number: int | None) -> None:
        class Device:
            def __fspath__(self) -> str:
                return str(tmp_path / "kvm")
        monkeypatch.setattr(kvm, "DEVICE", Device())
        if device_number is not None:
            (tmp_path / "kvm").touch()
        stat = os.stat

        def fake(path, *args, **kwargs):
            found = stat(path, *args, **kwargs)
            if isinstance(path, Device):
                return SimpleNamespace(st_rdev=device_number, st_dev=1, st_ino=2, st_mode=3)
            return found
        monkeypatch.setattr(kvm.os, "stat", fake)
    return set_to


REAL = os.makedev(10, 232)


def test_choose_follows_the_operator_without_a_trial(tmp_path):
    runner = Runner()
    assert kvm.choose("qemu", "x86_64", tmp_path, runner) == "qemu"
    assert kvm.choose("kvm", "x86_64", tmp_path, runner) == "kvm"
    assert runner.runs == 0


@pytest.mark.parametrize(("runner", "expected"), [(Runner(), "kvm"), (Runner(0), "qemu"), (Runner(1), "qemu"),
                                                  (Runner(-9), "qemu"), (Runner(fails=True), "qemu")])
def test_choose_auto_believes_only_the_guest_itself(device, tmp_path, runner, expected):
    device(REAL)
    assert kvm.choose("auto", "x86_64", tmp_path, runner) == expected


def test_choose_auto_tries_once_a_boot(device, tmp_path, monkeypatch):
    device(REAL)
    runner = Runner()
    for _ in range(3):
        kvm.choose("auto", "x86_64", tmp_path, runner)
    assert runner.runs == 1
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr(kvm, "BOOT_ID", boot)
    kvm.choose("auto", "x86_64", tmp_path, runner)
    assert runner.runs == 2


@pytest.mark.parametrize("number", [None, os.makedev(1, 3), 0])
def test_choose_auto_without_the_device_or_with_another_in_its_place_is_qemu(device, tmp_path, number):
    device(number)
    runner = Runner()
    assert kvm.choose("auto", "x86_64", tmp_path, runner) == "qemu" and runner.runs == 0


@pytest.mark.parametrize("kept", ["", "{}", "[]", "null", '{"key": 1}'])
def test_choose_auto_with_a_damaged_result_tries_again(device, tmp_path, kept):
    device(REAL)
    (tmp_path / "kvm.json").write_text(kept)
    runner = Runner()
    assert kvm.choose("auto", "x86_64", tmp_path, runner) == "kvm" and runner.runs == 1


@pytest.mark.parametrize(("plays", "expected"), [
    (f"exit {kvm.EXIT}", KvmState.WORKS), ("exit 1", KvmState.FAILS), ("exit 0", KvmState.FAILS),
    ("kill -6 $$", KvmState.FAILS), ("sleep 20", KvmState.HANGS), ("sleep 20 & wait", KvmState.HANGS)])
def test_trial_when_an_emulator_plays_it_then_works_fails_or_hangs(device, tmp_path, monkeypatch, plays, expected):
    device(REAL)
    emulator = tmp_path / "emulator"
    emulator.write_text(f"#!/bin/sh\n{plays}\n")
    emulator.chmod(0o755)
    monkeypatch.setitem(kvm.EMULATORS, "x86_64", str(emulator))
    assert kvm.answer("x86_64", tmp_path, SystemRunner(0.5)) is expected
    emulator.write_text("#!/bin/sh\nexit 99\n")  # not asked again in this boot
    assert kvm.answer("x86_64", tmp_path, SystemRunner(0.5)) is expected
    assert kvm.choose("auto", "x86_64", tmp_path,
                      SystemRunner(0.5)) == ("kvm" if expected is KvmState.WORKS else "qemu")


def test_trial_when_there_is_no_emulator_then_it_fails_and_is_tried_again(device, tmp_path, monkeypatch):
    device(REAL)
    monkeypatch.setitem(kvm.EMULATORS, "x86_64", str(tmp_path / "none"))
    assert kvm.answer("x86_64", tmp_path, SystemRunner(5)) is KvmState.FAILS
    assert not (tmp_path / "kvm.json").exists()


def test_answer_when_the_directory_cannot_be_written_then_it_is_given_all_the_same(device, tmp_path):
    device(REAL)
    (tmp_path / "file").touch()
    assert kvm.answer("x86_64", tmp_path / "file" / "state", Runner()) is KvmState.WORKS


def test_answer_when_somebody_put_a_link_there_then_it_is_not_followed(device, tmp_path):
    device(REAL)
    (tmp_path / "shadow").write_text("precious")
    (tmp_path / "kvm.json").symlink_to(tmp_path / "shadow")
    (tmp_path / ".kvm.json.new").symlink_to(tmp_path / "shadow")
    assert kvm.answer("x86_64", tmp_path, Runner()) is KvmState.WORKS
    assert (tmp_path / "shadow").read_text() == "precious"
    assert not (tmp_path / "kvm.json").is_symlink() and (tmp_path / "kvm.json").stat().st_mode & 0o777 == 0o644


def test_answer_when_the_kept_result_is_an_older_releases_then_it_tries_again(device, tmp_path):
    device(REAL)
    (tmp_path / "kvm.json").write_text('{"key": "x", "works": true}')
    assert kvm.answer("x86_64", tmp_path, Runner(1)) is KvmState.FAILS


@pytest.mark.skipif(not shutil.which("qemu-system-x86_64"), reason="needs qemu-system-x86_64")
def test_trial_guest_really_runs():
    assert kvm.trial("qemu-system-x86_64", SystemRunner(30), "tcg") is KvmState.WORKS
