"""A stage that lasts says so every few seconds, with the step that its log has last."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stacklib import stages
from stacklib.stages import Progress, Stage

#: What installers write -> the step that a user reads.
LOGS = {
    "Get:12 http://deb.debian.org/debian bookworm/main amd64 libvirt0 amd64 9.0.0-4 [500 kB]\n": "fetching libvirt0",
    "Unpacking libvirt0:amd64 (9.0.0-4) ...\nSetting up libvirt0:amd64 (9.0.0-4) ...\n":
        "Setting up libvirt0:amd64 (9.0.0-4) ...",
    "Collecting alembic>=1.13\n  Downloading alembic.whl (2 kB)\nnoise\n": "Collecting alembic>=1.13",
    " Downloaded neutron\n": "Downloaded neutron", "Prepared 11 packages in 8.82s\n": "Prepared 11 packages in 8.82s",
    "": "", "noise\n": "",
}


def test_stage_when_it_lasts_then_lines_with_its_seconds_and_step_come_before_its_end(monkeypatch, capsys) -> None:
    monkeypatch.setattr(stages, "TELL_S", 0.05)
    progress = Progress()
    progress.timed(Stage("packages", lambda: time.sleep(0.2) or "installed 3", at=lambda: "Setting up libvirt0"))
    lines = capsys.readouterr().out.splitlines()
    assert "packages       ... 0 s: Setting up libvirt0" in lines[0] and "installed 3" in lines[-1] and len(lines) > 2


def test_stage_when_it_is_quick_or_fails_then_no_more_is_said_of_it(monkeypatch, capsys) -> None:
    monkeypatch.setattr(stages, "TELL_S", 0.05)
    progress = Progress()
    progress.timed(Stage("quick", lambda: "done"))
    with pytest.raises(ValueError):
        progress.timed(Stage("fails", lambda: int("x")))
    time.sleep(0.1)
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(("text", "step"), LOGS.items())
def test_step_when_a_log_has_some_then_it_is_the_last_one(text: str, step: str, tmp_path: Path) -> None:
    log = tmp_path / "install.log"
    log.write_text("x" * 20_000 + "\n" + text)
    assert stages.last_step(log) == step


def test_step_when_there_is_no_log_yet_then_there_is_none(tmp_path: Path) -> None:
    assert stages.last_step(tmp_path / "absent") == ""
