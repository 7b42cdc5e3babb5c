from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nova.scheduler.filters import always
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.snapshot import Snapshot
from tests.fakes.scheduling import filter_options, host_state, host_view, placement_request, snapshot_of


def decide(snapshot, request, **options):
    return Pipeline(filter_options(**options), random.Random(1)).decide(snapshot, request)


def names(selection):
    return [choice.host for choice in selection.hosts]


def test_decide_gives_the_best_host_and_its_alternates_in_order():
    hosts = [host_state(f"cn{used}", provider_id=used, memory_mb_used=used * 1000) for used in (3, 1, 4, 2)]
    (selection,) = decide(snapshot_of(*hosts), placement_request(alternates=2))
    assert names(selection) == ["cn1", "cn2", "cn3"]
    assert (selection.hosts[0].node, selection.hosts[0].provider_id) == ("cn1", 1)
    assert (selection.reason, selection.details) == ("", "")


def test_decide_when_there_are_fewer_hosts_than_alternates_then_all():
    (selection,) = decide(snapshot_of(host_state("cn1")), placement_request(alternates=5))
    assert names(selection) == ["cn1"]


def test_decide_when_many_servers_then_each_counts_for_the_next():
    snapshot = snapshot_of(*(host_state(f"cn{number}") for number in range(4)))
    selections = decide(snapshot, placement_request(8))
    assert Counter(names(selection)[0] for selection in selections) == {f"cn{number}": 2 for number in range(4)}


def test_decide_when_not_all_servers_fit_then_the_others_are_told_why():
    snapshot = snapshot_of(host_state("cn1"), host_state("cn2", vcpus_used=10))
    selections = decide(snapshot, placement_request(4, vcpus=6))
    assert [names(selection)[:1] for selection in selections] == [["cn1"], ["cn2"], ["cn1"], []]
    assert selections[3].reason == "No valid host was found. There are not enough hosts available: " \
                                   "not enough vcpus (6 requested)."
    assert "6 vcpus, 4 free on cn1" in selections[3].details


def test_decide_when_a_host_or_node_is_asked_for_then_only_that():
    hosts = [host_state("cn1", node=node, memory_mb_used=used) for node, used in (("n1", 0), ("n2", 9000))]
    snapshot = snapshot_of(*hosts, host_state("cn2"))
    assert names(decide(snapshot, placement_request(host="cn2"))[0]) == ["cn2"]
    (selection,) = decide(snapshot, placement_request(node="n2"))
    assert [(choice.host, choice.node) for choice in selection.hosts] == [("cn1", "n2")]


def test_decide_when_hosts_are_excluded_then_others():
    snapshot = snapshot_of(host_state("cn1"), host_state("cn2", memory_mb_used=9000))
    assert names(decide(snapshot, placement_request(exclude=("cn1",)))[0]) == ["cn2"]


def test_decide_when_forced_then_filters_and_zone_are_skipped_but_not_capacity():
    snapshot = snapshot_of(host_state("cn1", enabled=False, zone="b", supported=()), host_state("cn2"))
    asked = {"host": "cn1", "availability_zone": "a", "image_properties": {"hw_vm_mode": "hvm"}}
    assert names(decide(snapshot, placement_request(force=True, **asked))[0]) == ["cn1"]
    assert names(decide(snapshot, placement_request(**asked))[0]) == []
    assert names(decide(snapshot, placement_request(force=True, vcpus=99, **asked))[0]) == []


def test_decide_when_subset_is_larger_then_any_of_the_best_but_no_other():
    snapshot = snapshot_of(*(host_state(f"cn{used}", memory_mb_used=used * 100) for used in range(6)))
    pipeline = Pipeline(filter_options(host_subset_size=3), random.Random(1))
    selections = [pipeline.decide(snapshot, placement_request(alternates=1))[0] for _ in range(60)]
    assert {names(selection)[0] for selection in selections} == {"cn0", "cn1", "cn2"}
    assert all(len(set(names(selection))) == 2 for selection in selections)


def test_decide_when_equals_are_shuffled_then_any_of_the_equal_best():
    hosts = [host_state("cn1"), host_state("cn2"), host_state("cn3", memory_mb_used=100)]
    pipeline = Pipeline(filter_options(shuffle_best_same_weighed_hosts=True), random.Random(1))
    found = [names(pipeline.decide(snapshot_of(*hosts), placement_request())[0]) for _ in range(40)]
    assert {chosen[0] for chosen in found} == {"cn1", "cn2"}
    assert all(chosen[2] == "cn3" for chosen in found)
    plain = [names(decide(snapshot_of(*hosts), placement_request())[0])[0] for _ in range(5)]
    assert set(plain) == {"cn1"}


def test_decide_asks_a_filter_once_for_hosts_that_are_alike():
    pipeline = Pipeline(filter_options())
    asked = []
    [image_filter] = [one for one in pipeline.filters if one.name == "ImagePropertiesFilter"]
    original = image_filter.refuses
    image_filter.refuses = lambda host, request: asked.append(host.host) or original(host, request)
    hosts = [host_state(f"cn{number}") for number in range(20)] + [host_state("odd", supported=())]
    selections = pipeline.decide(snapshot_of(*hosts), placement_request(image_properties={"hw_vm_mode": "hvm"},
                                                                        alternates=30))
    assert len(names(selections[0])) == 20
    assert asked[:2] == ["cn0", "odd"]


small = st.integers(min_value=0, max_value=20)
states = st.lists(st.builds(
    lambda used, enabled, zone: host_state(vcpus_capacity=used[0], memory_mb_capacity=used[1], disk_gb_capacity=used[2],
                                           vcpus_used=used[3], enabled=enabled, zone=zone),
    st.tuples(small, small, small, st.integers(-2, 5)), st.booleans(), st.sampled_from("ab")), max_size=8)
requests = st.builds(
    lambda count, size, zone, force: placement_request(count, *size, availability_zone=zone, force=force),
    st.integers(1, 6), st.tuples(small, small, small), st.sampled_from([None, "a", "b"]), st.booleans())


def named(found) -> Snapshot:
    return Snapshot(tuple(host_view(f"cn{at}", up=at % 3 != 2, **{
        field: getattr(state, field) for field in ("vcpus_capacity", "memory_mb_capacity", "disk_gb_capacity",
                                                   "vcpus_used", "enabled", "zone")})
        for at, state in enumerate(found)))


@settings(max_examples=200, deadline=None)
@given(states, requests)
def test_decide_never_chooses_a_host_without_capacity_zone_or_service(found, request):
    snapshot = named(found)
    free = {host.host: [host.free_vcpus, host.free_memory_mb, host.free_disk_gb] for host in snapshot.hosts}
    by_name = {host.host: host for host in snapshot.hosts}
    need = [request.resources.vcpus, request.resources.memory_mb, request.resources.disk_gb]
    selections = decide(snapshot, request)
    assert [selection.server_uuid for selection in selections] == list(request.server_uuids)
    for selection in selections:
        assert bool(selection.hosts) != bool(selection.reason)
        for choice in selection.hosts:
            assert all(want == 0 or want <= has for want, has in zip(need, free[choice.host], strict=True))
            host = by_name[choice.host]
            assert host.up and (request.force or (host.state.enabled
                                                  and request.availability_zone in (None, host.zone)))
        for choice in selection.hosts[:1]:
            free[choice.host] = [has - want for has, want in zip(free[choice.host], need, strict=True)]


@settings(max_examples=200, deadline=None)
@given(states, requests)
def test_passing_says_the_same_as_the_filters_that_say_why(found, request):
    snapshot = named(found)
    passing = always.passing(snapshot.hosts, request)
    assert passing == [host for host in snapshot.hosts
                       if all(check.refuses(host, request) is None for check in always.CHECKS)]
