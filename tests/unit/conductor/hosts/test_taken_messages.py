"""Messages of hosts are taken once, whichever conductor asks, and forgotten when no proof of theirs counts any more."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from nova.conductor.upkeep import periodic
from nova.db.models.cell import taken_messages as table
from nova.db.operation import taken_messages
from tests.fakes.small_cloud import SmallCloud


def take(cloud: SmallCloud, host: str = "h1", message: str = "m1") -> bool:
    return cloud.cell.transact(lambda tx: taken_messages.take(tx, host, message))


def count(cloud: SmallCloud) -> int:
    with cloud.cell.reading() as tx:
        return tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_message_when_it_comes_twice_then_it_is_new_once_for_each_host(cloud: SmallCloud) -> None:
    assert [take(cloud), take(cloud), take(cloud, "h2"), take(cloud, message="m2"), take(cloud, "h1", "x" * 10_000)] \
        == [True, False, True, True, True]


def test_message_when_many_take_it_at_once_then_one_has_it(cloud: SmallCloud) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _number: take(cloud), range(40)))
    assert taken.count(True) == 1


def test_taken_messages_when_they_are_old_then_they_go_and_the_others_stay(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "TAKEN_BATCH", 2)
    for number in range(5):
        take(cloud, message=f"old{number}")
    cloud.write("cell", table.update().values(taken_at=datetime.datetime(2000, 1, 1)))
    take(cloud, message="new")
    assert periodic.forget_taken_messages(cloud.deps) == 5 and count(cloud) == 1
    assert not take(cloud, message="new")


def test_taken_messages_when_there_are_more_than_a_turn_takes_then_the_rest_goes_the_next_time(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "TAKEN_BATCH", 1)
    monkeypatch.setattr(periodic, "TAKEN_BATCHES", 2)
    for number in range(3):
        take(cloud, message=f"old{number}")
    cloud.write("cell", table.update().values(taken_at=datetime.datetime(2000, 1, 1)))
    assert [periodic.forget_taken_messages(cloud.deps) for _turn in range(2)] == [2, 1]
