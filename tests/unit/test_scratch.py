"""Scratch directories: what a killed process left goes, and a living one's stays, also while it is being made."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nova import scratch
from nova.scratch import ScratchDirectory

#: Starts at once: each makes a directory, and says whether it still has it.
STARTS = """
import sys
from pathlib import Path
from nova.scratch import ScratchDirectory
sys.stdin.readline()
for _ in range(100):
    made = ScratchDirectory("nova-x-", Path(sys.argv[1]))
    assert made.path.is_dir(), "another process removed it"
    made.remove()
"""


def test_directory_when_made_then_it_is_private_and_locked_until_it_is_removed(tmp_path: Path) -> None:
    made = ScratchDirectory("nova-x-", tmp_path)
    assert made.path.parent == tmp_path and made.path.name.startswith("nova-x-")
    assert made.path.stat().st_mode & 0o777 == 0o700
    with pytest.raises(BlockingIOError):
        scratch.lock(made.path)
    made.remove()
    made.remove()
    assert list(tmp_path.iterdir()) == []


def test_directory_when_a_neighbour_has_just_made_one_and_not_locked_it_then_that_stays(tmp_path: Path, monkeypatch
                                                                                        ) -> None:
    def lock_late(coming: Path) -> int:
        monkeypatch.undo()
        ScratchDirectory("nova-x-", tmp_path)  # a whole start of another process, at the worst moment
        return scratch.lock(coming)

    monkeypatch.setattr(scratch, "lock", lock_late)
    assert ScratchDirectory("nova-x-", tmp_path).path.is_dir()


def test_directories_when_processes_start_at_once_then_none_loses_its_own(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", STARTS, str(tmp_path)], stdin=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate("\n", timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, said


def test_directory_when_its_process_was_killed_before_it_had_its_name_then_it_goes_after_a_minute(tmp_path: Path
                                                                                                  ) -> None:
    old, new = tmp_path / ".nova-x-old", tmp_path / ".nova-x-new"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, time.time() - scratch.COMING_S - 1))
    ScratchDirectory("nova-x-", tmp_path)
    assert not old.exists() and new.exists()


def test_directory_when_its_place_cannot_be_written_then_oserror_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        ScratchDirectory("nova-x-", tmp_path / "absent")
