"""Decisions by a ranking that is kept are those of a look at every host."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.model.host.hosts import HostStates
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.ranking import Ranking
from nova.scheduler.ranking_cache import Changes
from nova.scheduler.snapshot import Snapshot
from nova.scheduler.weighers import Weigher
from tests.fakes.scheduling import Clock, filter_options, host_state, host_view, placement_request, table_of

SIZES = [(1, 512, 1), (4, 2048, 20), (0, 512, 0)]
multipliers = st.sampled_from([1.0, -1.0, 0.0, 2.5])
hosts = st.lists(st.tuples(st.integers(0, 16), st.sampled_from([0, 512, 4096, 9000, 16384]), st.integers(0, 100),
                           st.sampled_from([{}, {}, {}, {"ram_weight_multiplier": ("-2.5",)},
                                            {"cpu_weight_multiplier": ("3",)}])), min_size=1, max_size=25)


def state_of(number, used, **fields):
    vcpus, memory, disk, metadata = used
    return host_state(f"cn{number}", provider_id=number + 1, vcpus_used=vcpus, memory_mb_used=memory,
                      disk_gb_used=disk, aggregate_metadata=metadata, **fields)


def pipelines(**options):
    """One that ranks, and one that looks at every host."""
    given_ = filter_options(**options)
    return Pipeline(given_, random.Random(1)), Pipeline(given_, random.Random(1), ranks=False)


def answers(pipeline, snapshot, request):
    return [(one.server_uuid, one.hosts, one.reason) for one in pipeline.decide(snapshot, request)]


@settings(max_examples=150, deadline=None)
@given(hosts, multipliers, multipliers, st.sampled_from(SIZES), st.integers(1, 30), st.integers(1, 3), st.booleans())
def test_decide_for_many_servers_when_ranked_then_as_one_by_one(found, ram, cpu, size, count, subset, shuffle):
    ranking, plain = pipelines(ram_weight_multiplier=ram, cpu_weight_multiplier=cpu, host_subset_size=subset,
                               shuffle_best_same_weighed_hosts=shuffle)
    table = table_of(*(state_of(number, used) for number, used in enumerate(found)))
    request = placement_request(count, *size, alternates=2)
    snapshot = table.snapshot()
    expected = answers(plain, snapshot, request)
    assert answers(ranking, snapshot, request) == expected
    without = Pipeline(filter_options(ram_weight_multiplier=ram, cpu_weight_multiplier=cpu, host_subset_size=subset,
                                      shuffle_best_same_weighed_hosts=shuffle), random.Random(1))
    assert answers(without, Snapshot(snapshot.hosts), request) == expected


events = st.lists(st.one_of(
    st.tuples(st.just("place"), st.integers(1, 4), st.sampled_from(SIZES)),
    st.tuples(st.just("claim"), st.integers(0, 24), st.integers(0, 16)),
    st.tuples(st.just("disable"), st.integers(0, 24), st.booleans()),
    st.tuples(st.just("gone"), st.integers(0, 24), st.just(0)),
    st.tuples(st.just("come"), st.integers(0, 40), st.integers(0, 16))), min_size=3, max_size=25)


@settings(max_examples=150, deadline=None)
@given(hosts, multipliers, events)
def test_decide_when_hosts_change_in_between_then_as_with_a_look_at_every_host(found, ram, happened):
    ranking, plain = pipelines(ram_weight_multiplier=ram)
    table = table_of(*(state_of(number, used) for number, used in enumerate(found)), clock=Clock())
    servers = iter(range(1000))
    for turn, (what, number, more) in enumerate(happened, 2):
        name = f"cn{number}"
        if what == "place":
            request = placement_request(number, *more, server_uuids=tuple(f"s{next(servers)}" for _ in range(number)))
            snapshot = table.snapshot()
            made = ranking.decide(snapshot, request)
            assert made == plain.decide(snapshot, request)
            for one in made:
                if one.hosts and int(one.server_uuid[1:]) % 3:  # not every decision comes to be counted
                    table.count(one.server_uuid, (one.hosts[0].host, one.hosts[0].node), request.resources)
        elif what == "gone":
            table.update(HostStates(gone=((name, name),)))
        elif what == "disable":
            table.update(HostStates(states=(state_of(number, (0, 0, 0, {}), service_version=turn, enabled=more),)))
        else:
            table.update(HostStates(states=(state_of(number, (more, 0, 0, {}), generation=turn),)))


def test_decide_when_the_hosts_stay_then_no_other_host_is_looked_at_again():
    asked = []

    class Asking(Weigher):
        reads = ()

        def weigh(self, host, request):
            asked.append(host.host)
            return float(host.free_memory_mb)

    pipeline = Pipeline(filter_options())
    pipeline.weighers = (Asking(),)
    table = table_of(*(host_state(f"cn{number:03}", provider_id=number + 1) for number in range(200)))
    for turn in range(20):
        asked.clear()
        uuid = f"s{turn}"
        [selection] = pipeline.decide(table.snapshot(), placement_request(1, server_uuids=(uuid,)))
        table.count(uuid, (selection.hosts[0].host, selection.hosts[0].node), placement_request().resources)
        assert len(asked) == (200, 201)[turn] if turn < 2 else len(asked) <= 3


@pytest.mark.parametrize("field", ["image_properties", "availability_zone", "extra_specs", "resources"])
def test_decide_when_the_request_is_of_another_kind_then_other_hosts_are_candidates(field):
    pipeline = Pipeline(filter_options())
    table = table_of(host_state("cn1", zone="a"), host_state("cn2", zone="b", supported=(), memory_mb_used=16000,
                                                             capabilities={"fast": "1"}))
    first = {"image_properties": {}, "availability_zone": "b", "extra_specs": {"fast": "1"}, "resources": None}[field]
    small, large = placement_request(memory_mb=100), placement_request(memory_mb=9000)
    chosen = []
    for second in (False, False, True, True, False):
        if field == "resources":
            request = large if second else small
        else:
            fields = {"image_properties": {"hw_vm_mode": "hvm"}}.get(field, {"hw_vm_mode": "none"}) if second else first
            value = {"availability_zone": "a", "extra_specs": {"fast": "2"}}.get(field, fields) if second else first
            request = placement_request(memory_mb=100, **{field: value})
        [selection] = pipeline.decide(table.snapshot(), request)
        chosen.append(tuple(choice.host for choice in selection.hosts))
    assert chosen[0] == chosen[1] == chosen[4] != chosen[2] == chosen[3]


def test_decide_when_a_weigher_says_nothing_finite_then_still_decided():
    class Infinite(Weigher):
        def weigh(self, host, request):
            return float("inf") if host.host == "cn1" else 0.0

    pipeline = Pipeline(filter_options())
    pipeline.weighers = (Infinite(),)
    table = table_of(host_state("cn1"), host_state("cn2", provider_id=2))
    [selection] = pipeline.decide(table.snapshot(), placement_request())
    assert len(selection.hosts) == 2


def test_decide_when_a_plugin_fails_in_the_middle_then_nothing_half_made_is_kept():
    class Failing(Weigher):
        reads, fails = (), False

        def weigh(self, host, request):
            if self.fails:
                raise RuntimeError
            return float(host.free_memory_mb)

    pipeline = Pipeline(filter_options())
    pipeline.weighers = (failing,) = (Failing(),)
    table = table_of(host_state("cn1"), host_state("cn2", provider_id=2, memory_mb_used=1000))
    for _ in range(2):
        pipeline.decide(table.snapshot(), placement_request())
    table.update(HostStates(states=(host_state("cn1", generation=2, memory_mb_used=5000),)))
    failing.fails = True
    with pytest.raises(RuntimeError):
        pipeline.decide(table.snapshot(), placement_request())
    failing.fails = False
    [selection] = pipeline.decide(table.snapshot(), placement_request())
    assert [choice.host for choice in selection.hosts] == ["cn2", "cn1"]


def test_best_when_all_values_are_the_same_then_the_order_of_the_hosts():
    pipeline = Pipeline(filter_options())
    views = [host_view(f"cn{number}") for number in range(5)]
    ranking = Ranking(list, pipeline.weighers, placement_request(), enumerate(views))
    assert ranking.best(3) == [0, 1, 2] and ranking.equals() == [0, 1, 2, 3, 4]
    ranking.update(0, None)
    ranking.update(7, host_view("cn7"))
    assert ranking.best(9) == [1, 2, 3, 4, 7]


def test_changes_when_too_many_came_then_they_are_forgotten_and_the_ranking_is_made_anew():
    changes = Changes(kept=4)
    view = host_view("cn1")
    for turn in range(6):
        changes.note(("cn1", f"n{turn}"), view)
    assert changes.count == 6 and changes.since(0) is None
    assert changes.since(4) == {4: view, 5: view} and changes.since(6) == {}
    changes.note(("cn1", "n2"), None)
    changes.note(("never", "known"), None)
    assert changes.since(6) == {2: None}
    changes.note(("cn1", "n2"), view)
    assert [number for number, _ in changes.numbered([view] * 6)] == [0, 1, 3, 4, 5, 6]


def test_changes_when_few_hosts_change_again_and_again_then_each_is_kept_once():
    changes, view = Changes(), host_view("cn1")
    for turn in range(1000):
        changes.note(("cn1", f"n{turn % 2}"), view)
    assert len(changes) == 2 and changes.count == 1000
    assert changes.since(0) == {0: view, 1: view} and changes.since(999) == {1: view}


