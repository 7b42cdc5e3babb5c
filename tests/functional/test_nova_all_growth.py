"""Servers come and go in nova-all, and nothing of them stays: rows, lines of the log, objects, memory.

An ordinary run has a few hundred, and looks at what does not depend on the machine. A long one has 20,000, and looks at
the memory, too (``-s`` shows the curve).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from nova.devel.running import RunningCloud
from tests import sampling
from tests.bench import growth
from tests.functional.backends import wait_until
from tests.functional.counted_nova_all import COUNTS

pytestmark = pytest.mark.in_turn(9, 10)

SERVERS = sampling.examples(240, 20_000)
LINES = sampling.examples(4, 40)
RETENTION = sampling.examples(5, 60)  # seconds; a purge has a turn each minute
LOG_MB, LOG_FILES = 1, 2
MORE = f"[DEFAULT]\nmax_logfile_size_mb = {LOG_MB}\nmax_logfile_count = {LOG_FILES}\nfence_retention = 5s\n"
#: Of each server that is gone a host remembers its last order, for ten minutes.
REMEMBERED = {f"nova.compute.orders.orders.{name}" for name in ("Key", "Work")} | {"nova.model.guest.orders.Outcome"}
STRAY = 30  # objects of one type, and rows of a table, that come and go with what is under way
MOST_MB = 2.0  # of memory, in 10,000 servers


class Grown(NamedTuple):
    """A cloud in which servers came and went. ``rows``, ``objects``: what it had after the first few."""

    cloud: RunningCloud
    state: Path
    lines: list[growth.Line]
    rows: Mapping[str, int]
    objects: Mapping[str, int]
    later: Mapping[str, int]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    folder = tmp_path_factory.mktemp("growth")
    conf, state, counts = folder / "more.conf", folder / "state", folder / "counts"
    conf.write_text(growth.CONF.format(retention=f"{RETENTION}s") + MORE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(COUNTS, str(counts))
        cloud = RunningCloud(more=("--state", str(state), "--config-file", str(conf)),
                             program=(sys.executable, "-m", "tests.functional.counted_nova_all"))
    with cloud:
        rows = rows_of(state)
        list(growth.curve(cloud, state, 80, lines=1))  # what is made at first use is made now
        objects = objects_of(cloud, counts)
        print(f"\n{growth.HEADER}")
        lines = []
        for line in growth.curve(cloud, state, SERVERS, lines=LINES):
            print(line)
            lines.append(line)
        yield Grown(cloud, state, lines, rows, objects, objects_of(cloud, counts))


def rows_of(state: Path) -> dict[str, int]:
    """Of every table of both databases."""
    found = {}
    for name in ("nova.db", "nova_api.db"):
        with contextlib.closing(sqlite3.connect(state / name, timeout=30)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            found |= {f"{name} {table}": database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                      for table, in tables}
    return found


def objects_of(cloud: RunningCloud, counts: Path) -> dict[str, int]:
    counts.unlink(missing_ok=True)
    os.kill(cloud.pid, signal.SIGUSR1)
    wait_until("it has counted", counts.exists, 30)
    return dict(json.loads(counts.read_text()))


def more(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """By how much there is more of what there is clearly more of."""
    return {name: count - before.get(name, 0) for name, count in now.items() if count - before.get(name, 0) > STRAY}


def test_objects_when_servers_came_and_went_then_there_are_none_of_each(grown: Grown) -> None:
    found = more(grown.later, grown.objects)
    assert found.keys() <= REMEMBERED
    assert not found or max(found.values()) <= SERVERS + STRAY


def test_log_when_servers_came_and_went_then_it_is_as_large_as_it_may_be(grown: Grown) -> None:
    files = {path.name: path.stat().st_size for path in grown.state.glob("nova-all.log*")}
    assert "nova-all.log.1" in files and len(files) <= 1 + LOG_FILES
    assert max(files.values()) <= LOG_MB * growth.MB


def test_rows_when_servers_came_and_went_then_they_go_after_the_retention(grown: Grown) -> None:
    wait_until("no row is left of a server", lambda: not more(rows_of(grown.state), grown.rows), 150, 1)


def test_files_when_servers_came_and_went_then_no_host_keeps_any(grown: Grown) -> None:
    folders = list(grown.state.glob("host*"))
    wait_until("no file is left of a server", lambda: not any(
        path.is_file() for folder in folders for name in ("fences", "building", "aside", "arrived", "fake")
        for path in (folder / name).rglob("*-*-*-*")), 60, 1)
    assert folders


@pytest.mark.long
def test_memory_when_20000_servers_came_and_went_then_it_grew_by_less_than_2_mb_in_the_last_10000(grown: Grown) -> None:
    assert growth.slope(grown.lines) < MOST_MB
    assert grown.lines[-1].state_mb < 200
