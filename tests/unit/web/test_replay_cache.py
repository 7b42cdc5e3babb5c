"""Requests that were taken already, as all workers of a proxy know them."""

from __future__ import annotations

import os
import threading

from nova.web.replay_cache import PARTS, SLOTS_OF_PART, ReplayCache


def test_request_when_it_comes_again_then_not_new_until_it_is_over() -> None:
    now = [1000.0]
    seen = ReplayCache(lambda: now[0])
    assert seen.add("a", 1100) and not seen.add("a", 1100) and seen.add("b", 1100)
    now[0] = 1101
    assert seen.add("a", 1200)  # the gate refuses it by its time


def test_request_when_another_worker_took_it_then_not_new() -> None:
    seen = ReplayCache()
    until = 2**40
    child = os.fork()
    if not child:
        os._exit(0 if seen.add("a", until) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not seen.add("a", until) and seen.add("b", until)


def test_lock_when_a_worker_dies_with_it_then_the_others_go_on() -> None:
    seen = ReplayCache(lambda: os._exit(7) if os.getpid() != parent else 1000.0)  # type: ignore[arg-type,return-value]
    parent = os.getpid()
    child = os.fork()
    if not child:
        seen.add("a", 1100)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert seen.add("a", 1100)


def test_request_when_many_threads_bring_it_then_one_is_the_first() -> None:
    seen, new = ReplayCache(lambda: 1000.0), []
    threads = [threading.Thread(target=lambda: new.append(seen.add("a", 1100))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert new.count(True) == 1 and len(new) == 8


def test_table_when_more_come_than_it_holds_then_it_takes_them_all_and_knows_the_newest() -> None:
    seen = ReplayCache(lambda: 1000.0)
    count = 2 * PARTS * SLOTS_OF_PART
    assert all(seen.add(str(number), 1100 + number) for number in range(count))
    assert not seen.add(str(count - 1), 1100 + count)
