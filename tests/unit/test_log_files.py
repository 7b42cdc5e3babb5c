"""Log files that a daemon turns itself: by size and by time, and with several processes that write the same one."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, log_files


def options(**values: object) -> cfg.ConfigOpts:
    found = conf.register(cfg.ConfigOpts())
    found([], default_config_files=[])
    for name, value in values.items():
        found.set_override(name, value)
    return found


def say(handler: logging.Handler, text: str) -> None:
    handler.handle(logging.makeLogRecord({"msg": text, "name": "nova.x"}))


def lines(folder: Path) -> dict[str, list[str]]:
    return {path.name: path.read_text().split() for path in sorted(folder.iterdir())}


def test_file_when_nothing_is_chosen_then_it_is_never_turned_and_logrotate_may(tmp_path: Path) -> None:
    handler = log_files.opened(options(max_logfile_size_mb=1), str(tmp_path / "log"))
    say(handler, "x" * log_files.MB)
    say(handler, "second")
    os.rename(tmp_path / "log", tmp_path / "log.old")
    say(handler, "third")
    assert {name: len(found) for name, found in lines(tmp_path).items()} == {"log": 1, "log.old": 2}


def test_file_when_it_would_be_too_large_then_it_is_turned_and_only_so_many_are_kept(tmp_path: Path) -> None:
    handler = log_files.opened(options(log_rotation_type="SIZE", max_logfile_size_mb=1, max_logfile_count=2),
                               str(tmp_path / "log"))
    for number in range(9):
        say(handler, str(number) * (log_files.MB // 2 - 100))
    assert {name: "".join(one[0] for one in found) for name, found in lines(tmp_path).items()} == {
        "log": "8", "log.1": "67", "log.2": "45"}
    assert all(path.stat().st_size <= log_files.MB for path in tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["size", "interval"])
def test_file_when_another_process_turns_it_then_lines_go_on_in_the_new_one_and_none_is_lost(
        tmp_path: Path, kind: str) -> None:
    chosen = options(log_rotation_type=kind, max_logfile_count=2, log_rotate_interval=1,
                     log_rotate_interval_type="days")
    one, other = (log_files.opened(chosen, str(tmp_path / "log")) for _ in range(2))
    say(one, "a")
    say(other, "b")
    one.doRollover()  # type: ignore[attr-defined]
    other.doRollover()  # type: ignore[attr-defined]  # it found it due, too, and comes second
    say(other, "c")
    say(one, "d")
    found = lines(tmp_path)
    assert found.pop("log") == ["c", "d"] and list(found.values()) == [["a", "b"]]


def test_file_when_its_day_of_the_week_is_chosen_then_that_is_the_interval(tmp_path: Path) -> None:
    handler = log_files.opened(options(log_rotation_type="interval", log_rotate_interval_type="Weekday",
                                       log_rotate_interval=3), str(tmp_path / "log"))
    assert isinstance(handler, log_files.ByTime) and handler.dayOfWeek == 3
