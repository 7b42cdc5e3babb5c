"""Options of the whole suite, and the mode its process runs in."""

from __future__ import annotations

import datetime
import gc
import os
from pathlib import Path

import pytest

from nova import concurrency
from tests import sampling

# Ahead of all that is imported from here on. What tests start chooses its own mode: a conductor on SQLite must not be
# green only because its test is.
concurrency.patch(prefer="threads")
os.environ.pop(concurrency.SWITCH, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="everything: tests marked 'long', and matrices unsampled")
    parser.addoption("--nova-seed", type=int, default=1, metavar="N",
                     help="chooses what a sampled matrix runs (0: the day's number); one commit, one verdict: 1")
    parser.addoption("--failed-to", metavar="FILE", help="write the names of failed tests, one a line")


def pytest_configure(config: pytest.Config) -> None:
    sampling.LONG = config.getoption("--long")
    sampling.SEED = config.getoption("--nova-seed") or datetime.date.today().toordinal()
    config.addinivalue_line("markers", "in_turn(place, of): slow; one of so many runs has it, and each with --long")


FAILED: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and report.nodeid not in FAILED:
        FAILED.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--failed-to")
    if path and not hasattr(session.config, "workerinput"):  # the workers of xdist report to it
        Path(path).write_text("".join(f"{name}\n" for name in FAILED))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was collected stays: the collector of garbage need not walk over a million objects again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    others = [item for item in items if not _has_its_turn(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if _has_its_turn(item)]
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes: runs with --long"))


def _has_its_turn(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("in_turn")
    return mark is None or sampling.SEED % mark.args[1] == mark.args[0]
