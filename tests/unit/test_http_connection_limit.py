"""Which connections give way when a server has as many as it may have."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from nova.http_connection_limit import Stage, select_evicted

MOST = 100


class Connection(NamedTuple):
    holder: str
    stage: Stage = Stage.WAITING
    until: float = 0.0


def held(holder: str, count: int, stage: Stage = Stage.WAITING, until: float = 0.0) -> list[Connection]:
    return [Connection(holder, stage, until + number) for number in range(count)]


def test_connections_when_one_client_holds_most_then_its_own_give_way_and_several_at_a_time() -> None:
    found = select_evicted([*held("few", 10, until=-100), *held("many", 90, until=50)], MOST)
    assert {one.holder for one in found} == {"many"} and len(found) == MOST // 20
    assert [one.until for one in found] == [50, 51, 52, 53, 54], "those that are nearest to their deadline"


def test_connections_when_each_client_holds_few_then_one_that_waits_goes() -> None:
    found = select_evicted([one for number in range(10) for one in held(f"client{number}", 10)], MOST)
    assert len(found) == 1


@pytest.mark.parametrize(("count", "goes"), [(90, True), (26, True), (25, False), (10, False)])
def test_connections_whose_answer_is_sent_when_their_client_holds_so_many_then_they_go_or_stay(count: int, goes: bool
                                                                                               ) -> None:
    slow = held("slow", count, Stage.SENDING)
    working = [one for number in range(MOST - count) for one in held(f"client{number}", 1, Stage.WORKING)]
    found = select_evicted([*slow, *working], MOST)
    assert bool(found) is goes and all(one.holder == "slow" for one in found)


def test_connections_when_the_largest_holders_are_worked_on_then_others_that_wait_go() -> None:
    found = select_evicted([*held("many", 90, Stage.WORKING), *held("few", 10)], MOST)
    assert [one.holder for one in found] == ["few"]


def test_connections_when_all_are_worked_on_then_none_goes() -> None:
    assert select_evicted(held("many", MOST, Stage.WORKING), MOST) == []
