"""bin/nova-all: an ordinary user's first start from a checkout, and the next ones."""

from __future__ import annotations

import importlib.util
import subprocess
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[3]


class Started(Exception):
    """The program was replaced by another."""

    def __init__(self, python: str, words: list[str], environment: dict[str, str]) -> None:
        self.python, self.words, self.environment = python, words, environment


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    loader = SourceFileLoader("bin_nova_all", str(TOP / "bin" / "nova-all"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def start(python: str, words: list[str], environment: dict[str, str]) -> None:
        raise Started(python, words, environment)
    monkeypatch.setattr(module.os, "execve", start)
    return module


@pytest.fixture
def ran(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would install; this Python has nothing."""
    commands: list[list[str]] = []

    def run(argv: list[Any], **_: Any) -> None:
        commands.append([str(word) for word in argv])
        if "venv" in commands[-1]:
            Path(commands[-1][-1]).mkdir(parents=True)
    monkeypatch.setattr(tool.subprocess, "run", run)
    monkeypatch.setattr(tool.importlib.util, "find_spec", lambda name: None)
    return commands


def start(tool: ModuleType, *words: str) -> Started:
    with pytest.raises(Started) as started:
        tool.main(list(words))
    return started.value


def test_start_when_this_python_has_all_then_nothing_is_installed(tool, monkeypatch) -> None:
    monkeypatch.setattr(tool.subprocess, "run", lambda *_, **__: pytest.fail("something was installed"))
    started = start(tool, "--port", "0")
    assert started.words[1:] == ["-m", "nova.cmd.all", "--port", "0"]
    assert started.environment["PYTHONPATH"].split(":")[0] == str(TOP)


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


@pytest.mark.parametrize("words", [("--driver", "libvirt"), ("--driver=libvirt",)], ids=str)
def test_start_when_guests_shall_be_libvirts_then_its_library_is_installed_too(tool, ran, words) -> None:
    start(tool, *words)
    assert any("libvirt-python" in word for word in ran[-1])


def test_start_when_it_can_not_be_installed_then_it_says_what_is_missing_and_tries_again_next_time(
        tool, ran, monkeypatch, capsys) -> None:
    def fail(argv: list[Any], **_: Any) -> None:
        raise subprocess.CalledProcessError(1, argv)
    run = tool.subprocess.run
    monkeypatch.setattr(tool.subprocess, "run", fail)
    assert tool.main([]) == 1
    assert "python3-venv" in capsys.readouterr().err
    monkeypatch.setattr(tool.subprocess, "run", run)
    start(tool)
    assert len(ran) == 2
