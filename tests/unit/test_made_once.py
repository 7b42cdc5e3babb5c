"""What is made at first use and then shared: threads that use it first at the same moment get the same one."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from nova.conf import fake as fake_options
from nova.db.sql import engine
from nova.devel.fake.hypervisor import FakeHypervisor
from nova.rpc import in_process
from nova.scheduler.filters.requirements import RequirementsFilter
from tests.fakes.compute import options

T = TypeVar("T")
THREADS = 8


def _at_once(use: Callable[[int], T]) -> list[T]:
    """The results of so many threads that begin together."""
    start, results = threading.Barrier(THREADS), []

    def run(number: int) -> None:
        start.wait()
        results.append(use(number))
    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _slowly(make: Callable[..., T]) -> Callable[..., T]:
    """The same, but others get their turn before it is done."""
    def made(*args: object, **kwargs: object) -> T:
        result = make(*args, **kwargs)
        time.sleep(0.02)
        return result
    return made


def test_engine_when_threads_use_a_database_first_at_once_then_there_is_one_pool(monkeypatch, tmp_path):
    monkeypatch.setattr("sqlalchemy.create_engine", _slowly(sa.create_engine))
    database = engine.Database(f"sqlite:///{tmp_path}/made-once.db")
    assert len(set(map(id, _at_once(lambda _number: database.engine)))) == 1
    database.dispose()


def test_exchange_when_threads_join_first_at_once_then_they_meet(monkeypatch):
    monkeypatch.setattr(in_process, "InProcessExchange", _slowly(in_process.InProcessExchange))
    found = _at_once(lambda _number: in_process.exchange("memory://made-once"))
    assert len(set(map(id, found))) == 1


def test_folder_when_threads_ask_a_fake_host_first_at_once_then_all_folders_stay(monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", _slowly(tempfile.mkdtemp))
    host = FakeHypervisor(options(fake_options), "host-1")
    folders = _at_once(lambda number: host.folder(f"disk-{number}"))
    assert len({folder.parent for folder in folders}) == 1 and all(folder.is_dir() for folder in folders)


class _SlowToKeep(RequirementsFilter):
    """Others get their turn between the keeping of a rule and its use."""

    @property
    def _rule(self) -> object:
        return self.__dict__.get("kept")

    @_rule.setter
    def _rule(self, rule: object) -> None:
        self.__dict__["kept"] = rule
        time.sleep(0.02)


def test_requirements_when_threads_ask_for_different_ones_at_once_then_each_gets_its_own(monkeypatch):
    monkeypatch.setattr("nova.scheduler.filters.requirements.ParsedRequest", lambda wanted: ("rule", wanted))
    wanted = [object() for _ in range(THREADS)]
    shared = _SlowToKeep()
    assert all(_at_once(lambda number: shared._rule_of(wanted[number]) == ("rule", wanted[number])))
