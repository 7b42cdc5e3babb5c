"""Options of the whole suite, and the concurrency mode of its process."""

from __future__ import annotations

import datetime
import faulthandler
import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# shared modules of the tests assert, too; register them before their import, for detailed messages
pytest.register_assert_rewrite("tests.books", "tests.clients", "tests.contract", "tests.fakes", "tests.fresh",
                               "tests.functional", "tests.machine", "tests.tempest", "tests.unit")

from tests import core_only  # noqa: E402

core_only.install()

from nova import concurrency  # noqa: E402
from tests import sampling, turns, turns_told  # noqa: E402

concurrency.patch(prefer="threads")  # before all other imports

from tests.fakes import old_boto, pools  # noqa: E402

pools.watch()
old_boto.make_importable()


@pytest.fixture(autouse=True)
def in_order() -> Iterator[None]:
    """Fail a test whose threads take connections in an order that can lead to a deadlock."""
    pools.forget()
    yield
    assert not pools.WRONG, "\n".join(sorted(set(pools.WRONG)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run everything: tests marked 'long', and complete matrices")
    parser.addoption("--nova-seed", type=int, default=1, metavar="N",
                     help="seed that selects the samples of a matrix (0: the day's number; bin/test: the commit's)")
    parser.addoption("--in-turn", action="store_true", help="skip files and cases whose turn belongs to another seed")
    parser.addoption("--only-turns", default="", metavar="N,...",
                     help="run only cases with a turn in a cycle of one of these lengths")
    parser.addoption("--changed", default="", metavar="FILE,...",
                     help="run all tests that are related to these files, independent of turns")
    parser.addoption("--told-to", metavar="FILE", help="write failed tests and numbers of omitted cases as JSON")


def pytest_configure(config: pytest.Config) -> None:
    sampling.LONG, sampling.IN_TURN = config.getoption("--long"), config.getoption("--in-turn")
    sampling.SEED = config.getoption("--nova-seed") or datetime.date.today().toordinal()
    sampling.CHANGED = frozenset(filter(None, config.getoption("--changed").split(",")))
    config.addinivalue_line("markers", "in_turn(place, of): slow; one in `of` runs has it, and each with --long")
    config.addinivalue_line("markers", "one_in(of): each run has one in `of` of a file's tests, the next run the next "
                                       "ones; all of them run with --long, and if their subject changed")


#: Files that take minutes start first: otherwise one process still runs them when the other has finished.
LONGEST = ("test_client_life", "test_live_contract", "test_client_openstack", "test_backups", "test_operations")
FAILED: list[str] = []
VERDICTS = turns_told.Verdicts()
LEFT_BEHIND_S = 60


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End the process after LEFT_BEHIND_S seconds: a thread of a failed test may block it after its report."""
    faulthandler.dump_traceback_later(LEFT_BEHIND_S, exit=True, file=sys.__stderr__)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    VERDICTS.add(report)
    if report.failed and report.nodeid not in FAILED:
        FAILED.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):  # a worker of xdist, which reports to its controller
        session.config.workeroutput.update(left_out=dict(sampling.LEFT_OUT), turns=VERDICTS.own())
        return
    path = session.config.getoption("--told-to")
    if path:
        Path(path).write_text(json.dumps({"failed": FAILED, "left_out": dict(sampling.LEFT_OUT),
                                          "turns": VERDICTS.shown()}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the report of an xdist worker; the omitted cases count once, since all workers collect the same."""
    output = getattr(node, "workeroutput", {})
    sampling.LEFT_OUT.update({} if sampling.LEFT_OUT else output.get("left_out", {}))
    if "turns" in output:
        VERDICTS.collected(output["turns"])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    VERDICTS.complete &= report.passed


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze the collected objects, so that the garbage collector does not traverse a million objects repeatedly, and
    run it rarely: a test leaves little garbage, and the collector used a fourteenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    turns.assign(items, sampling.SEED, every=sampling.LONG)
    sampling.COLLECTED = True
    cycles = [int(one) for one in config.getoption("--only-turns").split(",") if one]
    if cycles:
        _leave_out(config, items, [one for one in items if not turns_told.has_one_of(one, cycles, sampling.SEED)])
    if sampling.LONG:
        return
    if sampling.IN_TURN and not cycles:
        _leave_out(config, items, [item for item in items if not _has_its_turn(item)])
    items.sort(key=lambda item: item.path.stem not in LONGEST)
    for item in items:
        if item.get_closest_marker("long"):  # not its keywords: a folder of the checkout may have this name
            item.add_marker(pytest.mark.skip(reason="takes minutes: runs with --long"))
            sampling.LEFT_OUT[0] += 1


def _leave_out(config: pytest.Config, items: list[pytest.Item], others: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=others)
    left = {*others}
    items[:] = [item for item in items if item not in left]


def _has_its_turn(item: pytest.Item) -> bool:
    """Return whether an item runs with this seed; related to a change, all tests of a `one_in` file run."""
    due = turns.without_neighbours(item) if sampling.touched(item.path) else item.stash[turns.DUE]
    if due is None or due.comes(sampling.SEED):
        return True
    sampling.LEFT_OUT[due.of] += 1
    return False
