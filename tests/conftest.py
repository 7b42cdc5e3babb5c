"""Options of the whole suite, and the mode its process runs in."""

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

# what tests share asserts, too, and says by it what was found; ahead of its import
pytest.register_assert_rewrite("tests.books", "tests.clients", "tests.contract", "tests.fakes", "tests.fresh",
                               "tests.functional", "tests.machine", "tests.tempest", "tests.unit")

from tests import core_only  # noqa: E402

core_only.install()

from nova import concurrency  # noqa: E402
from tests import sampling, turns, turns_told  # noqa: E402

concurrency.patch(prefer="threads")  # ahead of all that is imported from here on

from tests.fakes import old_boto, pools  # noqa: E402

pools.watch()
old_boto.make_importable()


@pytest.fixture(autouse=True)
def in_order() -> Iterator[None]:
    """No thread takes connections in an order in which threads can wait for each other."""
    pools.forget()
    yield
    assert not pools.WRONG, "\n".join(sorted(set(pools.WRONG)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="everything: tests marked 'long', and matrices unsampled")
    parser.addoption("--nova-seed", type=int, default=1, metavar="N",
                     help="chooses what a sampled matrix runs (0: the day's number; bin/test: the commit's)")
    parser.addoption("--in-turn", action="store_true", help="leave out files and cases whose turn is another seed's")
    parser.addoption("--only-turns", default="", metavar="N,...",
                     help="of cases with a turn only those whose cycle has one of these lengths, and no others")
    parser.addoption("--changed", default="", metavar="FILE,...",
                     help="tests that have to do with these files run whole, whoever's turn it is")
    parser.addoption("--told-to", metavar="FILE", help="write what failed, and how much this run left out, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    sampling.LONG, sampling.IN_TURN = config.getoption("--long"), config.getoption("--in-turn")
    sampling.SEED = config.getoption("--nova-seed") or datetime.date.today().toordinal()
    sampling.CHANGED = frozenset(filter(None, config.getoption("--changed").split(",")))
    config.addinivalue_line("markers", "in_turn(place, of): slow; one of so many runs has it, and each with --long")
    config.addinivalue_line("markers", "one_in(of): of a file's tests each run has one of so many, the next run the "
                                       "next ones, and each all with --long and where its subject changed")


#: Files that take minutes begin first: else one process has them when the other has nothing left to do.
LONGEST = ("test_client_life", "test_live_contract", "test_client_openstack", "test_backups", "test_operations")
FAILED: list[str] = []
VERDICTS = turns_told.Verdicts()
LEFT_BEHIND_S = 60


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """A thread that a failed test left behind may wait for ever, and the process with it, its report long written."""
    faulthandler.dump_traceback_later(LEFT_BEHIND_S, exit=True, file=sys.__stderr__)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    VERDICTS.add(report)
    if report.failed and report.nodeid not in FAILED:
        FAILED.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):  # a worker of xdist, which reports to who started it
        session.config.workeroutput.update(left_out=dict(sampling.LEFT_OUT), turns=VERDICTS.own())
        return
    path = session.config.getoption("--told-to")
    if path:
        Path(path).write_text(json.dumps({"failed": FAILED, "left_out": dict(sampling.LEFT_OUT),
                                          "turns": VERDICTS.shown()}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker of xdist has collected the same."""
    output = getattr(node, "workeroutput", {})
    sampling.LEFT_OUT.update({} if sampling.LEFT_OUT else output.get("left_out", {}))
    if "turns" in output:
        VERDICTS.collected(output["turns"])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    VERDICTS.complete &= report.passed


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was collected stays: the collector of garbage need not walk over a million objects again and again. And it
    comes rarely: a test leaves little, and a fourteenth of the time was the collector's."""
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
        if item.get_closest_marker("long"):  # not of its keywords: a folder of the checkout may be called so
            item.add_marker(pytest.mark.skip(reason="takes minutes: runs with --long"))
            sampling.LEFT_OUT[0] += 1


def _leave_out(config: pytest.Config, items: list[pytest.Item], others: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=others)
    left = {*others}
    items[:] = [item for item in items if item not in left]


def _has_its_turn(item: pytest.Item) -> bool:
    """Neighbours of what changed all have theirs in each run of their file."""
    due = turns.without_neighbours(item) if sampling.touched(item.path) else item.stash[turns.DUE]
    if due is None or due.comes(sampling.SEED):
        return True
    sampling.LEFT_OUT[due.of] += 1
    return False
