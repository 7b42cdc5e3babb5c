"""A made-up layout from a few words."""

from __future__ import annotations

import pytest

from nova import errors
from nova.conf import fake as fake_options
from nova.devel.fake import FakeDriver
from nova.devel.fake.topology import parse
from tests.fakes.compute import options

WORDS = "2 cells x 4 cpus x 8192 MB, 2 threads, 64 x 2048 KB pages, 3 devices"


def test_parse_when_all_is_said_then_the_host_has_it():
    made = parse(WORDS)
    first, second = made.topology.cells
    assert (first.shared, first.dedicated, second.dedicated) == ((0, 1), (2, 3), (6, 7))
    assert first.siblings == ((0, 1), (2, 3)) and second.distances == {0: 20, 1: 10}
    assert [(page.size_kb, page.total) for page in first.pages] == [(4, (8192 - 128) * 256), (2048, 64)]
    assert [(one.address, one.cell) for one in made.topology.devices] == [
        ("0000:01:00.0", 0), ("0000:02:00.0", 1), ("0000:01:00.1", 0)]
    assert (made.vcpus, made.memory_mb, made.inventories[0].total) == (4, 16384, 4)


def test_parse_when_nothing_is_dedicated_then_there_are_no_pcpus():
    made = parse("1 cell x 3 cpus x 100 MB, 0 dedicated")
    assert made.inventories == () and made.vcpus == 3 and made.topology.cells[0].siblings == ()


@pytest.mark.parametrize(("text", "why"), [
    ("2 cells", "begin in the form"), ("0 cells x 4 cpus x 8 MB", "at least 1"),
    ("1 cell x 4 cpus x 8 MB, much", "part 2"),
    ("1 cell x 4 cpus x 8 MB, 5 dedicated", "cannot have 5 dedicated"),
    ("1 cell x 4 cpus x 8 MB, 3 threads", "3 threads"),
    ("1 cell x 4 cpus x 8 MB, 9 x 1024 KB pages", "exceed a cell's memory"),
    ("1 cell x 1 cpu x 1 MB, 9999 devices", "1024")])
def test_parse_when_it_cannot_be_then_option_and_reason_are_named(text, why):
    with pytest.raises(errors.config.FakeTopology) as caught:
        parse(text)
    assert "[fake]topology" in str(caught.value) and why in str(caught.value)


@pytest.mark.parametrize("shown", [True, False])
def test_nodes_when_a_topology_is_set_then_each_has_it(shown):
    group = options(fake_options, topology=WORDS, nodes=2, devices_in_placement=shown)
    (first, second) = FakeDriver(group, "h").nodes()
    assert first.topology == second.topology == parse(WORDS).topology
    assert (first.vcpus, first.memory_mb, first.inventories) == (4, 16384, parse(WORDS).inventories)
    assert len(first.children) == (3 if shown else 0)
    assert not {one.uuid for one in first.children} & {one.uuid for one in second.children}


def test_nodes_when_none_is_set_then_there_is_none_to_tell_of():
    (node,) = FakeDriver(options(fake_options), "h").nodes()
    assert node.topology is None and node.vcpus == 1000
