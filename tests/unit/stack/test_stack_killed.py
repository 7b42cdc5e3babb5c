"""What an `up` that was killed leaves, and what the next one makes of it."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stacklib import databases
from stacklib.errors import StackError
from stacklib.layout import CHECKOUT, Choices, Layout
from stacklib.secrets import Secrets
from stacklib.stack import Stack

OWN = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def stack(short_path: Path) -> Stack:
    return Stack(Layout(short_path, Choices()), Secrets(short_path / "secrets.json"), None)  # type: ignore[arg-type]


@pytest.fixture
def scripts(monkeypatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(databases, "run_as_root", lambda stack, script: found.append(script))
    return found


def test_first_making_of_tables_then_nothing_is_dropped(stack, scripts):
    databases.begin_tables(stack, "keystone")
    assert scripts == []


def test_second_making_when_the_first_was_killed_then_the_database_is_made_anew(stack, scripts):
    databases.begin_tables(stack, "keystone")
    databases.begin_tables(stack, "keystone")
    assert len(scripts) == 1 and "DROP DATABASE IF EXISTS `keystone`" in scripts[0]


def test_making_of_a_new_release_when_tables_were_whole_once_then_they_are_never_dropped(stack, scripts):
    databases.begin_tables(stack, "keystone")
    stack.mark_done("keystone", "release 1")
    databases.begin_tables(stack, "keystone")
    databases.begin_tables(stack, "keystone")
    assert scripts == []


def test_directory_to_come_when_a_killed_one_left_its_part_then_only_the_new_one_is_there(short_path):
    (short_path / f"{databases.BEING_MADE}abc" / "mysql").mkdir(parents=True)
    for kept in ("tables", "tables-backup"):  # an operator's copy
        (short_path / kept).mkdir()
    made = databases.directory_to_come(short_path, OWN)
    assert sorted(path.name for path in short_path.iterdir()) == [made.name, "tables", "tables-backup"]


def test_tables_when_a_part_of_them_lies_there_then_it_is_kept_aside_and_the_new_ones_take_their_place(short_path):
    (short_path / "tables").mkdir()
    (short_path / "tables" / "ibdata1").touch()
    made = databases.directory_to_come(short_path, OWN)
    (made / "mysql").mkdir()
    databases.put_in_place(made, short_path / "tables")
    assert (short_path / "tables" / "mysql").is_dir()
    assert [path.name for path in short_path.glob("tables.unfinished-*/*")] == ["ibdata1"]


@pytest.mark.parametrize("there", ["nothing", "empty", "link"])
def test_tables_when_their_place_is_free_or_a_link_then_they_get_there(short_path, there):
    elsewhere = short_path / "disk"
    elsewhere.mkdir()
    if there == "empty":
        (short_path / "tables").mkdir()
    elif there == "link":
        (short_path / "tables").symlink_to(elsewhere)
    made = databases.directory_to_come(short_path, OWN)
    (made / "mysql").mkdir()
    databases.put_in_place(made, short_path / "tables")
    assert (short_path / "tables" / "mysql").is_dir() and not made.exists()
    assert (elsewhere / "mysql").is_dir() is (there == "link")


def test_command_when_its_program_is_not_there_then_said_with_what_installs_it(stack):
    with pytest.raises(StackError, match="no such program: no-such-thing"):
        stack.command("x", ["no-such-thing"])


def test_command_when_up_is_killed_then_it_ends_too(short_path):
    code = f"""
import sys; sys.path.insert(0, {str(CHECKOUT / "bin")!r})
from pathlib import Path
from stacklib.layout import Choices, Layout
from stacklib.stack import Stack
stack = Stack(Layout(Path({str(short_path)!r}), Choices()), None, None)
stack.command("x", ["sh", "-c", "echo $$ > {short_path}/pid; sleep 60"])
"""
    runs = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 20
    while not (pid := (short_path / "pid").read_text() if (short_path / "pid").exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    runs.send_signal(signal.SIGKILL)
    runs.wait()
    while os.path.exists(f"/proc/{pid.strip()}/exe") and _state(pid.strip()) != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _state(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
