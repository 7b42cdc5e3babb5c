"""The command line of nova-all: files that it cannot write or read are named before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nova.devel.nova_all import plan


@pytest.mark.parametrize("name", ["absent/clouds.yaml", "."])
def test_clouds_file_when_it_cannot_be_written_there_then_it_is_refused_in_words(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        plan.parse(["--clouds-file", str(tmp_path / name)])
    assert ended.value.code == 2 and "cannot be written: give a file in an existing" in capsys.readouterr().err


def test_clouds_file_when_its_folder_may_not_be_entered_then_it_is_refused_in_words(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``monkeypatch``: root may enter every folder."""
    def forbidden(path: object, *_how: object, **_more: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))
    monkeypatch.setattr(os, "stat", forbidden)
    monkeypatch.setattr(os, "access", lambda *_args: False)
    with pytest.raises(SystemExit) as ended:
        plan.parse(["--clouds-file", str(tmp_path / "clouds.yaml")])
    monkeypatch.undo()
    assert ended.value.code == 2 and "cannot be written" in capsys.readouterr().err


def test_clouds_file_when_it_can_be_written_then_it_is_taken(tmp_path: Path) -> None:
    assert plan.parse(["--clouds-file", str(tmp_path / "clouds.yaml")]).clouds_file == tmp_path / "clouds.yaml"


def test_password_when_it_is_in_a_file_or_in_the_environment_then_it_is_in_no_list_of_processes(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("of the file\nnot this\n")
    assert plan.parse([]).password is None
    monkeypatch.setenv(plan.PASSWORD, "of the environment")
    assert plan.parse([]).password == "of the environment"
    assert plan.parse(["--password-file", str(file)]).password == "of the file"
    assert plan.parse(["--password", "said"]).password == "said"


@pytest.mark.parametrize("words", [["--password", "x"], []])
def test_password_file_when_it_says_nothing_or_too_much_is_said_then_refused(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    file = tmp_path / "password"
    file.write_text("" if not words else "other")
    with pytest.raises(SystemExit) as ended:
        plan.parse(["--password-file", str(file), *words])
    assert ended.value.code == 2 and "password" in capsys.readouterr().err
