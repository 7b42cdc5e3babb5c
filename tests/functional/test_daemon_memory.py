"""Servers come and go, and the daemons' memory stays as it is. ``bin/test bench memory`` shows a million operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import sampling
from tests.bench import memory
from tests.functional.cloud import Cloud, Plan

OPERATIONS, LINES = 12_000, 6
MOST_GROWN = 1.08  # times the memory after a third of the operations, by when all code has run
MOST_MB = {"api": 160, "conductor": 260, "scheduler": 100, "compute1": 80}


@pytest.mark.skipif(not sampling.LONG, reason="takes minutes: bin/test long functional")
def test_memory_when_servers_come_and_go_then_it_stays(make_cloud: Callable[[Plan], Cloud]) -> None:
    cloud = make_cloud(Plan(computes=1, glance=True, options=memory.OPTIONS)).start()
    lines = list(memory.curve(cloud, OPERATIONS, LINES))
    print(memory.HEADER, *lines, sep="\n")
    early, last = lines[LINES // 3], lines[-1]
    assert last.total <= MOST_GROWN * early.total
    assert {name: mb for name, mb in last.mb.items() if mb > MOST_MB[name]} == {}
