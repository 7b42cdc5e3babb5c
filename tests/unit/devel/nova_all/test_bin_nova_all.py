"""bin/nova-all: an ordinary user's first start from a checkout, and the next ones."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).resolve().parents[4]
PROGRAM = TOP / "bin" / "nova-all"
#: Lines of pip, when it cannot install -> words of the refusal.
FAILURES = {
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device": "free some space",
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(... Temporary failure in name "
    "resolution')'\nERROR: No matching distribution found for alembic>=1.13": "PIP_INDEX_URL",
    "ERROR: Could not find a version that satisfies the requirement alembic>=1.13 (from versions: none)":
        "PIP_INDEX_URL",
    "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed'))": "PIP_CERT",
    "Package libvirt was not found in the pkg-config search path.": "apt install libvirt-dev",
    "error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory": "apt install libvirt-dev",
    "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied": "XDG_CACHE_HOME",
    "Traceback\nRuntimeError: never seen before": "RuntimeError: never seen before",
}


class Started(Exception):
    """The program was replaced by another."""

    def __init__(self, python: str, words: list[str], environment: dict[str, str]) -> None:
        self.python, self.words, self.environment = python, words, environment


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    loader = SourceFileLoader("bin_nova_all", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)

    kept: list[int] = []  # locks that the new program would keep; here they end with the start
    monkeypatch.setattr(module.os, "set_inheritable", lambda lock, _inheritable: kept.append(lock))

    def start(python: str, words: list[str], environment: dict[str, str]) -> None:
        while kept:
            with contextlib.suppress(OSError):  # the start failed, and let go of it
                os.close(kept.pop())
        raise Started(python, words, environment)
    monkeypatch.setattr(module.os, "execve", start)
    return module


@pytest.fixture
def ran(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would install; this Python has nothing."""
    commands: list[list[str]] = []

    def step(self: object, command: list[str], *_: object) -> None:
        commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
    monkeypatch.setattr(tool.Environment, "step", step)
    monkeypatch.setattr(tool, "has_all", lambda extra: False)
    return commands


def start(tool: ModuleType, *words: str) -> Started:
    with pytest.raises(Started) as started:
        tool.main(list(words))
    return started.value


def environments(cache: Path) -> list[Path]:
    return [path for path in (cache / "nova-all").iterdir() if path.is_dir()]


def test_start_when_this_pythonhas_all_then_nothing_is_installed(tool, ran, monkeypatch) -> None:
    monkeypatch.setattr(tool, "has_all", lambda extra: True)
    started = start(tool, "--port", "0")
    assert started.words[1:] == ["-m", "nova.cmd.all", "--port", "0"] and ran == []
    assert started.environment["PYTHONPATH"].split(":")[0] == str(TOP)


@pytest.mark.parametrize(("prefix", "lacks", "whole"), [("/venv", "", True), ("/venv", "routes", False),
                                                        (sys.base_prefix, "", False)])
def test_python_when_looked_at_then_only_a_complete_environment_is_taken(tool, monkeypatch, prefix, lacks, whole
                                                                        ) -> None:
    def version(name: str) -> str:
        if name == lacks:
            raise tool.importlib.metadata.PackageNotFoundError(name)
        return "1"
    monkeypatch.setattr(tool.sys, "prefix", prefix)
    monkeypatch.setattr(tool.importlib.metadata, "version", version)
    assert tool.has_all("") is whole


def test_start_when_it_is_the_first_then_what_setup_cfg_says_is_installed_for_this_user(tool, ran, tmp_path) -> None:
    started = start(tool)
    assert Path(started.python).is_relative_to(tmp_path / "nova-all")
    [venv, pip] = ran
    assert "venv" in venv and "install" in pip
    assert any(word.startswith("sqlalchemy") for word in pip) and not any("libvirt" in word for word in pip)


def test_start_when_it_is_the_second_then_nothing_is_installed_again(tool, ran) -> None:
    start(tool)
    ran.clear()
    start(tool)
    assert ran == []


@pytest.mark.parametrize("words", [("--driver", "libvirt"), ("--driver=libvirt",), ("--dr", "libvirt")], ids=str)
def test_start_when_guests_shall_be_libvirts_then_its_library_is_installed_too(tool, ran, words) -> None:
    start(tool, *words)
    assert any("libvirt-python" in word for word in ran[-1])


@pytest.mark.parametrize(("words", "code"), [(("--help",), 0), (("--version",), 0), (("--port", "x"), 2)], ids=str)
def test_start_when_it_only_tells_or_an_option_is_wrong_then_nothing_is_installed(tool, ran, words, code) -> None:
    with pytest.raises(SystemExit) as ended:
        tool.main(list(words))
    assert ended.value.code == code and ran == []


# --- installations that end early


@pytest.mark.parametrize("ends", [KeyboardInterrupt, OSError(28, "No space left on device", "/x")], ids=repr)
def test_installation_when_it_ends_early_then_nothing_half_made_is_left_and_the_next_start_installs(
        tool, ran, monkeypatch, tmp_path, capsys, ends) -> None:
    step = tool.Environment.step

    def end(self: object, command: list[str], *rest: object) -> None:
        step(self, command, *rest)
        if "pip" in command:
            raise ends
    monkeypatch.setattr(tool.Environment, "step", end)
    assert tool.main([]) == (130 if ends is KeyboardInterrupt else 1)
    assert environments(tmp_path) == [] and "Traceback" not in capsys.readouterr().err
    monkeypatch.setattr(tool.Environment, "step", step)
    ran.clear()
    start(tool)
    assert len(ran) == 2


def test_installation_when_one_was_killed_then_the_next_start_begins_anew(tool, ran, tmp_path) -> None:
    start(tool)
    [whole] = (tmp_path / "nova-all").glob("*.whole")
    whole.unlink()
    (whole.with_suffix("") / "half-written").touch()
    ran.clear()
    start(tool)
    assert len(ran) == 2 and not (whole.with_suffix("") / "half-written").exists()


@pytest.mark.parametrize(("output", "words"), FAILURES.items())
def test_installation_when_pip_fails_then_one_line_names_the_cause_and_the_fix(tool, monkeypatch, tmp_path, capsys,
                                                                               output, words) -> None:
    failing = tmp_path / "python"
    failing.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(tool, "has_all", lambda extra: False)
    monkeypatch.setattr(tool.sys, "executable", str(failing))
    assert tool.main([]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert words in last and "install.log" in last


def test_installation_when_debians_venv_package_is_missing_then_the_refusal_names_it(tool, ran, monkeypatch, capsys
                                                                                     ) -> None:
    monkeypatch.setattr(tool.importlib.util, "find_spec", lambda name: None)
    assert tool.main([]) == 1
    assert "sudo apt install python3-venv" in capsys.readouterr().err and ran == []


def test_installation_when_another_start_installs_then_it_waits_and_takes_that(tool, ran, monkeypatch) -> None:
    step, both = tool.Environment.step, threading.Barrier(2)

    def slow(self: object, command: list[str], *rest: object) -> None:
        step(self, command, *rest)
        time.sleep(0.3)
    monkeypatch.setattr(tool.Environment, "step", slow)
    pythons: list[str] = []

    def begin() -> None:
        both.wait()
        pythons.append(tool.Environment("").python())  # and its cloud goes on
    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pythons)) == 1 and len(pythons) == 2 and len(ran) == 2


# --- the cache


def test_environment_when_nobody_used_it_for_long_then_it_goes_unless_a_cloud_runs_from_it(tool, ran, tmp_path
                                                                                           ) -> None:
    cache = tmp_path / "nova-all"
    for name in ("old", "runs", "new"):
        (cache / name).mkdir(parents=True)
        (cache / f"{name}.whole").touch()
    for name in ("old", "runs"):
        os.utime(cache / f"{name}.whole", (0, 0))
    with tool.locked(cache / "runs.lock"):
        start(tool)
    assert not (cache / "old").exists() and (cache / "runs").exists() and (cache / "new").exists()


@pytest.mark.parametrize(("env", "words"), [({"XDG_CACHE_HOME": "/proc/nobody"}, "set XDG_CACHE_HOME"),
                                            ({"HOME": "/proc/nobody"}, "set XDG_CACHE_HOME"),
                                            ({"HOME": "/proc/nobody", "XDG_CACHE_HOME": "relative"}, "/proc/nobody")])
def test_program_when_the_cache_cannot_be_written_then_one_line_names_it_and_the_fix(env, words) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    done = subprocess.run(["/usr/bin/python3", PROGRAM], env={**kept, **env}, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1 and words in done.stderr
    assert len(done.stderr.splitlines()) == 1 and "python3-venv" not in done.stderr


@pytest.mark.parametrize(("line", "step"), [
    ("Collecting alembic>=1.13", "looking for alembic>=1.13"),
    ("  Downloading https://x/y/alembic-1.13-py3-none-any.whl (233 kB)", "downloading alembic-1.13-py3-none-any.whl"),
    ("Installing collected packages: a, b, c", "installing 3 packages"), ("Requirement already satisfied", "")])
def test_progress_when_pip_says_a_line_then_the_user_reads_a_few_words(tool, line, step) -> None:
    assert tool.step_of(line) == step
