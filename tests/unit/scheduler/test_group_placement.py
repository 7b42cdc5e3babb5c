"""Server groups in a decision: filters, weighers, and servers of one request that count for each other."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.model.scheduling.decisions import PlacementGroup
from nova.model.server.server_groups import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from nova.scheduler.filters.server_groups import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.weighers.server_groups import ServerGroupSoftAffinityWeigher, ServerGroupSoftAntiAffinityWeigher
from tests.fakes.scheduling import filter_options, host_state, host_view, placement_request, snapshot_of


def group(policy: str, most: int = 1, **hosts: int) -> PlacementGroup:
    return PlacementGroup(uuid="g", policy=policy, max_per_host=most, hosts=hosts)


def chosen(count: int, wanted: PlacementGroup | None, names: tuple[str, ...] = ("a", "b", "c"),
           **fields: object) -> list[str | None]:
    """The host of each of ``count`` servers."""
    hosts = snapshot_of(*(host_state(name, provider_id=at) for at, name in enumerate(names)))
    options = {name: fields.pop(name) for name in tuple(fields) if name.endswith(("filters", "multiplier"))}
    pipeline = Pipeline(filter_options(**options), random.Random(1))
    found = pipeline.decide(hosts, placement_request(count, group=wanted, **fields))
    return [one.hosts[0].host if one.hosts else None for one in found]


@pytest.mark.parametrize(("filter_", "wanted", "refused"), [
    (ServerGroupAffinityFilter(), group(AFFINITY), False),
    (ServerGroupAffinityFilter(), group(AFFINITY, cn1=2), False),
    (ServerGroupAffinityFilter(), group(AFFINITY, cn2=1), True),
    (ServerGroupAntiAffinityFilter(), group(ANTI_AFFINITY), False),
    (ServerGroupAntiAffinityFilter(), group(ANTI_AFFINITY, cn2=1), False),
    (ServerGroupAntiAffinityFilter(), group(ANTI_AFFINITY, cn1=1), True),
    (ServerGroupAntiAffinityFilter(), group(ANTI_AFFINITY, 2, cn1=1), False),
    (ServerGroupAntiAffinityFilter(), group(ANTI_AFFINITY, 2, cn1=2), True)])
def test_filter_refuses_by_where_the_members_are(filter_, wanted, refused):
    request = placement_request(group=wanted)
    assert filter_.wanted(request)
    assert (filter_.refuses(host_view(), request) is not None) is refused


def test_filters_are_not_asked_about_other_policies_or_none():
    for filter_ in (ServerGroupAffinityFilter(), ServerGroupAntiAffinityFilter()):
        assert not filter_.wanted(placement_request())
        assert not filter_.wanted(placement_request(hints={"group": "x"}))
        assert not filter_.wanted(placement_request(group=group(SOFT_AFFINITY)))


def test_servers_of_one_request_count_for_each_other():
    assert sorted(filter(None, chosen(4, group(ANTI_AFFINITY)))) == ["a", "b", "c"]
    assert Counter(chosen(6, group(ANTI_AFFINITY, 2))) == {"a": 2, "b": 2, "c": 2}
    assert len(set(chosen(5, group(AFFINITY)))) == 1
    assert chosen(2, group(AFFINITY, b=1)) == ["b", "b"]


def test_policies_hold_though_their_filters_are_not_enabled():
    assert chosen(2, group(AFFINITY, c=1), enabled_filters=["ComputeFilter"]) == ["c", "c"]


def test_affinity_when_the_host_is_full_then_there_is_none_and_the_reason_says_why():
    hosts = snapshot_of(host_state("a", vcpus_used=16), host_state("b", provider_id=2))
    found = Pipeline(filter_options()).decide(hosts, placement_request(group=group(AFFINITY, a=1)))[0]
    assert found.hosts == () and "the members of the server group are on other hosts" in found.reason


def test_soft_policies_prefer_and_fall_back():
    assert set(chosen(3, group(SOFT_AFFINITY, b=1), ram_weight_multiplier=0.0, cpu_weight_multiplier=0.0,
                      disk_weight_multiplier=0.0)) == {"b"}
    assert Counter(chosen(6, group(SOFT_ANTI_AFFINITY), ram_weight_multiplier=0.0, cpu_weight_multiplier=0.0,
                          disk_weight_multiplier=0.0)) == {"a": 2, "b": 2, "c": 2}
    assert set(chosen(2, group(SOFT_AFFINITY, b=1), soft_affinity_weight_multiplier=0.0, ram_weight_multiplier=0.0,
                      cpu_weight_multiplier=0.0, disk_weight_multiplier=0.0)) == {"a"}


def test_soft_weighers_weigh_by_members_and_alike_in_bulk():
    hosts = [host_view("a"), host_view("b")]
    for weigher, policy, sign in ((ServerGroupSoftAffinityWeigher(filter_options()), SOFT_AFFINITY, 1),
                                  (ServerGroupSoftAntiAffinityWeigher(filter_options()), SOFT_ANTI_AFFINITY, -1)):
        for wanted, expected in ((group(policy, b=3), [0, sign * 3]), (group(AFFINITY, b=3), [0, 0]), (None, [0, 0])):
            request = placement_request(group=wanted)
            assert weigher.weigh_all(hosts, request) == expected == [weigher.weigh(one, request) for one in hosts]


def test_forced_host_skips_the_filters():
    """An administrator's zone:host: what the claim says of it is another matter."""
    assert chosen(1, group(ANTI_AFFINITY, b=1), host="b", force=True) == ["b"]


@settings(max_examples=150, deadline=None)
@given(policy=st.sampled_from([AFFINITY, ANTI_AFFINITY]), most=st.integers(1, 3), count=st.integers(1, 8),
       there=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3)))
def test_decision_never_breaks_a_hard_policy_and_places_as_many_as_it_allows(policy, most, count, there):
    if policy == AFFINITY:
        there = dict(list(there.items())[:1])
    names = tuple("abcd")
    placed = [host for host in chosen(count, group(policy, most, **there), names) if host]
    after = Counter(there) + Counter(placed)
    if policy == AFFINITY:
        assert len(after) == 1 and len(placed) == count
    else:
        assert all(after[host] <= max(most, there.get(host, 0)) for host in names)
        assert len(placed) == min(count, sum(max(0, most - there.get(host, 0)) for host in names))
