"""By how much a host misses what a guest requires."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from nova.model.numa.fit import pack
from nova.model.numa.fit_shortfall import Shortage, shortages
from nova.model.numa.topology import HostTopology, TopologyClaim, Wanted
from tests.unit.model import topologies
from tests.unit.model.topologies import VF, cell, guest, nics, request

HOST = HostTopology(cells=(cell(0, range(8), (0, 1), pages={2048: 256}), cell(1, range(8, 14), (8, 9), memory_mb=2048)),
                    devices=nics(0, 2))


@pytest.mark.parametrize(("wanted", "expected"), [
    (guest((8, 8, 64)), [Shortage(8, 6, "dedicated CPUs in one cell")]),
    (guest((6, 6, 64), emulator="isolate"), [Shortage(7, 6, "dedicated CPUs in one cell")]),
    (guest((4, 0, 64)), [Shortage(4, 2, "shared CPUs in one cell")]),
    (guest((1, 1, 9999)), [Shortage(9999, 3584, "MB of memory in one cell")]),
    (guest((1, 1, 9999), page="4"), [Shortage(9999, 3584, "MB of memory in one cell")]),
    (guest((1, 1, 1025), page="2048"), [Shortage(513, 256, "pages of 2048 KB in one cell")]),
    (guest((1, 1, 1024), page="1048576"), [Shortage(1, 0, "pages of 1048576 KB in one cell")]),
    (guest((1, 1, 1024), page="large"), [Shortage(1024, 512, "MB of large pages in one cell")]),
    (guest((1, 1, 64), (1, 1, 64), (1, 1, 64)), [Shortage(3, 2, "NUMA cells")]),
    (guest((9, 9, 64), devices=(request(3, VF),)),
     [Shortage(9, 6, "dedicated CPUs in one cell"), Shortage(3, 2, "PCI devices of alias nic")]),
    (guest((6, 6, 64), (6, 6, 64)), []), (guest((1, 1, 64)), []), (Wanted(), [])])
def test_lacks(wanted, expected):
    assert shortages(HOST, (), wanted) == expected


def test_lacks_when_nothing_is_known_or_more_is_used_than_there_is():
    assert shortages(None, (), guest((1, 1, 64))) == []
    there = pack(HOST, (), guest((2, 0, 2000)))
    smaller = HostTopology(cells=(cell(1, range(2), (0,), memory_mb=64),))
    assert isinstance(there, TopologyClaim) and there.cells[0].host_cell == 1
    assert [lack.free for lack in shortages(smaller, [there], guest((1, 0, 32)))] == [0, 0]
    assert shortages(HOST, (), guest((12, 12, 64)))[0].share == 0.5


@settings(max_examples=40, deadline=None)
@given(host=topologies.hosts(), wanted=topologies.requirements())
def test_lacks_of_what_fits_are_none(host, wanted):
    if isinstance(pack(host, (), wanted), TopologyClaim):
        assert shortages(host, (), wanted) == []
