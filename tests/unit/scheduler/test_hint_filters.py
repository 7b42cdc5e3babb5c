"""Filters that read hints, whatever a user wrote there; metrics; queries in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.model.placement.ratios import ratios
from nova.model.scheduling.hints import all_named
from nova.scheduler.filters import Filter
from nova.scheduler.filters.cidr_affinity import SimpleCIDRAffinityFilter
from nova.scheduler.filters.json_query import MOST_TERMS, JsonFilter
from nova.scheduler.filters.metrics import MetricsFilter
from nova.scheduler.filters.other_servers import DifferentHostFilter, SameHostFilter
from nova.scheduler.pipeline import Pipeline
from tests.fakes.scheduling import filter_options, host_state, host_view, placement_request, snapshot_of

A, B, C = (f"{letter * 8}-0000-0000-0000-000000000000" for letter in "abc")
PLACES = {A: "cn1", B: "cn2"}


def refusal(filter_: Filter, host: dict[str, Any], hints: dict[str, Any], **request: Any) -> str | None:
    asked = placement_request(hints=hints, **request)
    if not filter_.wanted(asked):
        return None
    view = host_view(**host)
    said = filter_.refuses(view, asked)
    assert filter_.passing([view], asked) == ([] if said else [view])
    return said


@pytest.mark.parametrize(("hint", "different", "same"), [
    (A, True, False), ([A], True, False), ([A, B], True, False), (B, False, True), ([B, C], False, True),
    (C, False, True), ([], False, False), (None, False, False), ("", False, False), (5, False, False),
    ({"a": 1}, False, False), ([5, None], False, False),
])
def test_different_and_same_host_filters(hint, different, same):
    """Of the host that A runs on; C runs nowhere. Whether each refuses it."""
    assert bool(refusal(DifferentHostFilter(), {}, {"different_host": hint}, server_hosts=PLACES)) is different
    assert bool(refusal(SameHostFilter(), {}, {"same_host": hint}, server_hosts=PLACES)) is same


def test_all_named_when_hints_are_whatever_then_only_what_may_be_a_uuid():
    assert all_named({"same_host": [A, 5, "x"], "different_host": B, "other": C}) == {A, B}
    assert all_named({"same_host": {"a": A}}) == frozenset()


@pytest.mark.parametrize(("ip", "hints", "refused"), [
    ("192.0.2.5", {"build_near_host_ip": "192.0.2.77"}, False),
    ("192.0.3.5", {"build_near_host_ip": "192.0.2.77"}, True),
    ("192.0.3.5", {"build_near_host_ip": "192.0.2.77", "cidr": "/16"}, False),
    ("192.0.3.5", {"build_near_host_ip": "192.0.2.77", "cidr": "/255.255.0.0"}, False),
    ("2001:db8::1", {"build_near_host_ip": "2001:db8::77", "cidr": "/64"}, False),
    ("192.0.2.5", {"build_near_host_ip": "2001:db8::77", "cidr": "/64"}, True),
    ("", {"build_near_host_ip": "192.0.2.77"}, True),
    ("192.0.2.5", {"cidr": "/24"}, False),
    ("192.0.2.5", {"build_near_host_ip": ""}, False),
])
def test_simple_cidr_affinity_filter(ip, hints, refused):
    assert bool(refusal(SimpleCIDRAffinityFilter(), {"host_ip": ip}, hints)) is refused


@pytest.mark.parametrize("hints", [
    {"build_near_host_ip": "nowhere"}, {"build_near_host_ip": "192.0.2.77", "cidr": "/99"},
    {"build_near_host_ip": ["192.0.2.77"]}, {"build_near_host_ip": "192.0.2.77", "cidr": "/1.2:3"},
])
def test_simple_cidr_affinity_filter_when_the_hints_are_no_network_then_it_says_so(hints):
    said = refusal(SimpleCIDRAffinityFilter(), {"host_ip": "192.0.2.5"}, hints)
    assert said is not None and "are not a valid network" in said


HOST = {"memory_mb_used": 384, "vcpus_used": 4, "instances": 3, "busy": 2, "host_ip": "192.0.2.5", "failed_builds": 1,
        "capabilities": {"cpu_info": '{"vendor": "AMD"}', "gpu": "true"}, "metrics": {"cpu.percent": 0.5}}


@pytest.mark.parametrize(("query", "passes"), [
    ([">=", "$free_ram_mb", 1024], True),
    ([">=", "$free_ram_mb", 16001], False),
    (["=", "$hypervisor_hostname", "cn1"], True),
    (["=", "$hypervisor_type", "QEMU", "QEMU"], True),
    (["=", "$hypervisor_type", "QEMU", "xen"], False),
    (["=", "$hypervisor_version", "7002000"], True),
    (["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]], False),
    (["or", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]], True),
    (["not", ["=", "$gpu", "true"]], False),
    (["not", ["=", "$gpu", "false"], ["<", "$vcpus_total", 2]], True),
    (["in", "$host", "cn7", "cn1"], True),
    (["in", "$host", "cn7"], False),
    (["=", "$cpu_info.vendor", "AMD"], True),
    (["=", "$cpu_info.model", "x"], False),
    (["<", "$num_io_ops", 3], True),
    (["<", "$num_instances", 3], False),
    (["<=", "$failed_builds", 1], True),
    (["=", "$no_such_fact", "x"], False),
    (["not", ["=", "$no_such_fact", "x"]], True),
    (["<", "$host", "cn2"], True),
    (["and", True], True),
    (["and", "$gpu"], True),
    (["or", 0, ""], False),
    (["=", "$vcpus_used", 10 ** 400], False),
])
def test_json_filter(query, passes):
    said = refusal(JsonFilter(), HOST, {"query": json.dumps(query)})
    assert said == (None if passes else "does not meet the hint query")


NESTED = "[" * 40 + "]" * 40


@pytest.mark.parametrize(("query", "words"), [
    ("{", "it is not JSON"), ("[", "it is not JSON"), ("[" * 4000, "it is not JSON"), ("x" * 5000, "longer than"),
    ("7", "a condition is a list"), ("[]", "a condition is a list"), ("[1, 2]", "a condition is a list"),
    ({"and": 1}, "a condition is a list"), ('["and"]', "and has too few operands"),
    ('["=", "$host"]', "= has too few operands"), ('["xor", 1, 2]', "unknown operator 'xor'"),
    ('["and", {"a": 1}]', "an object is neither a condition"), ('["and", ' * 20 + "1" + "]" * 20, "nested too deeply"),
    (json.dumps(["in", "$host", *range(MOST_TERMS)]), f"more than {MOST_TERMS} terms"), (NESTED, "a condition is"),
    (["and", 1], None),
])
def test_json_filter_when_the_query_cannot_be_understood_then_it_says_why(query, words):
    said = refusal(JsonFilter(), {}, {"query": query})
    assert (said is None) if words is None else (
        said is not None and words in said and said.startswith("the hint query"))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
                    | st.sampled_from(["$free_ram_mb", "$cpu_info.vendor", "$metrics.x", "$", "$."]),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
                    | st.tuples(st.sampled_from(["=", "<", "and", "or", "not", "in", ">="]), inner, inner).map(list),
                    max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(query=JSON, as_text=st.booleans())
def test_no_query_makes_the_filter_fail(query, as_text):
    said = refusal(JsonFilter(), HOST, {"query": json.dumps(query) if as_text else query})
    assert said is None or "hint query" in said


class Unreadable(dict[str, Any]):
    """Fails when somebody goes through it."""

    def items(self) -> Any:
        raise AssertionError("it was made a text")


def test_json_filter_when_the_query_is_an_object_then_it_is_not_made_a_text_for_each_host():
    assert "a condition is a list" in (refusal(JsonFilter(), {}, {"query": Unreadable(a=1)}) or "")


class Counting(dict[str, str]):
    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


@pytest.mark.parametrize("filter_", [SameHostFilter(), DifferentHostFilter()])
def test_hosts_of_named_servers_when_many_hosts_are_asked_then_they_are_looked_up_once_for_a_request(filter_):
    for places in (Counting(PLACES), Counting({A: "cn2"})):
        asked = placement_request(hints={filter_.hint: [A, B, C]}, server_hosts=places)
        for name in ("cn1", "cn2", "cn3"):
            said = filter_.refuses(host_view(name), asked)
            assert bool(said) is ((name in places.values()) is isinstance(filter_, DifferentHostFilter))
        assert places.asked == 3


def test_a_bad_query_is_told_to_its_user_when_no_host_is_left():
    pipeline = Pipeline(filter_options(enabled_filters=["JsonFilter"]))
    found, = pipeline.decide(snapshot_of(host_state("cn1")), placement_request(hints={"query": "{"}))
    assert not found.hosts and "the hint query is invalid: it is not JSON" in found.reason


METRICS = {"weight_setting": ["cpu.percent=-1.0", "net=0.5"]}


@pytest.mark.parametrize(("metrics", "expected"), [
    ({"cpu.percent": 0.1, "net": 3.0, "more": 1.0}, None),
    ({"cpu.percent": 0.1}, "does not report net"),
    ({}, "does not report cpu.percent, net"),
])
def test_metrics_filter(metrics, expected):
    assert refusal(MetricsFilter(filter_options(metrics=METRICS)), {"metrics": metrics}, {}) == expected


def test_metrics_filter_when_no_metric_is_named_then_it_is_not_asked():
    assert not MetricsFilter(filter_options()).wanted(placement_request())
    assert not MetricsFilter().wanted(placement_request())


@pytest.mark.parametrize(("given_", "usual", "expected"), [
    ([], None, {}), (["a=1", " b = -2.5 "], None, {"a": 1.0, "b": -2.5}), (["a", "b=3"], 1.0, {"a": 1.0, "b": 3.0}),
    (["a=b=1"], None, None), (["a"], None, None), (["=1"], None, None), (["a=nan"], None, None),
    (["a=inf"], None, None), (["a="], 1.0, None), ([""], 1.0, None)])
def test_ratios(given_, usual, expected):
    if expected is None:
        with pytest.raises(errors.daemon.SchedulerBadRatio, match="must be NAME=NUMBER"):
            ratios("[x]y", given_, usual)
    else:
        assert ratios("[x]y", given_, usual) == expected
