"""Each weigher by table, and how weights are summed."""

from __future__ import annotations

import pytest

from nova.scheduler.pipeline import Pipeline
from nova.scheduler.weighers.cpu import CPUWeigher
from nova.scheduler.weighers.disk import DiskWeigher
from nova.scheduler.weighers.ram import RAMWeigher
from tests.fakes.scheduling import filter_options, host_view, placement_request

OURS = "nova.scheduler.weights."


@pytest.mark.parametrize(("weigher", "used", "expected"), [
    (CPUWeigher, {"vcpus_used": 4}, 12),
    (RAMWeigher, {"memory_mb_used": 384}, 16000),
    (DiskWeigher, {"disk_gb_used": 30}, 70),
])
def test_weigher_prefers_what_is_free(weigher, used, expected):
    host = host_view(**used)
    made = weigher(filter_options())
    assert made.weigh(host, placement_request()) == expected
    assert made.weigh_all([host, host], placement_request()) == [expected, expected]


@pytest.mark.parametrize(("options", "expected"), [
    ({}, [0.0, 0.5, 1.0]),
    ({"ram_weight_multiplier": 2.0}, [0.0, 1.0, 2.0]),
    ({"ram_weight_multiplier": -1.0}, [0.0, -0.5, -1.0]),
    ({"ram_weight_multiplier": 0.0}, [0.0, 0.0, 0.0]),
])
def test_weights_are_scaled_between_lowest_and_highest(options, expected):
    pipeline = Pipeline(filter_options(weight_classes=[OURS + "RAMWeigher"], **options))
    hosts = [host_view(memory_mb_used=used) for used in (3000, 2000, 1000)]
    assert pipeline.weights(hosts, placement_request()) == pytest.approx(expected)


def test_weights_sum_over_weighers_and_alike_hosts_get_none():
    pipeline = Pipeline(filter_options(cpu_weight_multiplier=10.0))
    hosts = [host_view(memory_mb_used=1000), host_view(vcpus_used=1)]
    assert pipeline.weights(hosts, placement_request()) == pytest.approx([10.0, 1.0])
    assert pipeline.weights(hosts[:1], placement_request()) == [0.0]


@pytest.mark.parametrize(("metadata", "expected"), [
    (("5",), [0.0, 5.0]),
    (("5", "3", "4.5"), [0.0, 3.0]),  # the lowest wins
    (("5", "much"), [0.0, 5.0]),
    (("much",), [0.0, 2.0]),  # no number at all: the option's
])
def test_weights_when_an_aggregate_sets_the_multiplier_then_it_counts_for_its_hosts(metadata, expected):
    pipeline = Pipeline(filter_options(weight_classes=[OURS + "ram.RAMWeigher"], ram_weight_multiplier=2.0))
    hosts = [host_view(memory_mb_used=1000),
             host_view(aggregate_metadata={"ram_weight_multiplier": metadata, "ssd": ("true",)})]
    assert pipeline.weights(hosts, placement_request()) == pytest.approx(expected)
