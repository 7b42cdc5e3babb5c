"""Weighers that look at more than free resources: by table, and what they make of a decision."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.model.numa.topology import DeviceClaim, HostTopology, PciDevice, TopologyClaim
from nova.scheduler import plugins
from nova.scheduler.pipeline import Pipeline
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.weighers import all_weighers
from nova.scheduler.weighers.build_failures import BuildFailureWeigher
from nova.scheduler.weighers.cross_cell import CrossCellWeigher
from nova.scheduler.weighers.hypervisor_version import HypervisorVersionWeigher
from nova.scheduler.weighers.image_properties import ImagePropertiesWeigher
from nova.scheduler.weighers.io_ops import IoOpsWeigher
from nova.scheduler.weighers.metrics import MetricsWeigher
from nova.scheduler.weighers.num_instances import NumInstancesWeigher
from nova.scheduler.weighers.pci import PCIWeigher
from tests.fakes.scheduling import filter_options, host_state, host_view, placement_request, snapshot_of


def devices(count: int, used: int = 0) -> dict[str, Any]:
    """A host's topology with so many devices, and guests that have some."""
    given_ = tuple(PciDevice(address=f"0000:00:{at:02x}.0", vendor_id="8086", product_id="1") for at in range(count))
    taken = tuple(DeviceClaim(address=one.address, request=0) for one in given_[:used])
    return {"topology": HostTopology(devices=given_), "packings": (TopologyClaim(devices=taken),)}


@pytest.mark.parametrize(("weigher", "host", "expected"), [
    (BuildFailureWeigher, {}, 0), (BuildFailureWeigher, {"failed_builds": 3}, -3),
    (HypervisorVersionWeigher, {"hypervisor_version": 9_000_000}, 9_000_000),
    (IoOpsWeigher, {"busy": 2}, 2), (IoOpsWeigher, {"busy": 2, "pending": 5}, 2),
    (NumInstancesWeigher, {"instances": 4, "pending": 1}, 5),
    (PCIWeigher, {}, 0), (PCIWeigher, {"topology": HostTopology()}, 0),
    (PCIWeigher, devices(3), -3), (PCIWeigher, devices(3, 2), -1), (PCIWeigher, devices(200), -100),
    (ImagePropertiesWeigher, {}, 1.5), (ImagePropertiesWeigher, {"host": "cn2"}, 0.0),
    (CrossCellWeigher, {"cell": "here"}, 1.0), (CrossCellWeigher, {"cell": "there"}, -1.0),
])
def test_weigher(weigher, host, expected):
    made, view = weigher(filter_options()), host_view(**host)
    request = placement_request(image_matches={"cn1": 1.5}, source_host="cn7", source_cell="here")
    assert made.weigh(view, request) == expected
    assert made.weigh_all([view, view], request) == [expected, expected]


def test_weighers_that_have_nothing_to_say_are_not_asked():
    request = placement_request()
    assert CrossCellWeigher(filter_options()).neutral(placement_request(source_host="cn1", cell="here"))
    assert not CrossCellWeigher(filter_options()).neutral(placement_request(source_host="cn1", source_cell="here"))
    assert ImagePropertiesWeigher(filter_options()).neutral(request)
    assert MetricsWeigher(filter_options()).neutral(request)


@pytest.mark.parametrize(("reported", "expected"), [
    ({"cpu": 0.5, "net": 2.0, "other": 9.0}, 3.5), ({"cpu": 0.5}, -10000.0), ({}, -10000.0)])
def test_metrics_weigher(reported, expected):
    weigher = MetricsWeigher(filter_options(metrics={"weight_setting": ["cpu=-1", "net = 2.0"],
                                                     "weight_multiplier": 3.0}))
    assert weigher.multiplier == 3.0 and not weigher.neutral(placement_request())
    assert weigher.weigh(host_view(metrics=reported), placement_request()) == expected


def test_metrics_weigher_when_a_ratio_is_none_then_the_scheduler_does_not_start():
    with pytest.raises(errors.daemon.SchedulerBadRatio, match=r"\[metrics\]weight_setting: each .* NAME=NUMBER"):
        Pipeline(filter_options(metrics={"weight_setting": ["cpu"]}))


@pytest.mark.parametrize(("required", "chosen"), [(True, []), (False, ["cn1"])])
def test_host_without_the_metrics_is_refused_only_when_they_are_required(required, chosen):
    pipeline = Pipeline(filter_options(metrics={"weight_setting": ["cpu=1"], "required": required}))
    found, = pipeline.decide(snapshot_of(host_state("cn1")), placement_request())
    assert [one.host for one in found.hosts] == chosen
    assert chosen or "MetricsFilter" in found.details


def best(hosts: list[Any], request: dict[str, Any] | None = None, **options: Any) -> str:
    states = [host_state(f"cn{at}", provider_id=at, **fields) for at, fields in enumerate(hosts)]
    found, = Pipeline(filter_options(**options)).decide(snapshot_of(*states), placement_request(**request or {}))
    return found.hosts[0].host


def test_by_default_hosts_on_which_builds_fail_come_last_and_newer_hypervisors_first():
    assert best([{"failed_builds": 1}, {"vcpus_used": 15, "memory_mb_used": 15000, "disk_gb_used": 99}]) == "cn1"
    assert best([{}, {"hypervisor_version": 8_000_000}]) == "cn1"
    assert best([{}, {"hypervisor_version": 8_000_000}], hypervisor_version_weight_multiplier=-1.0) == "cn0"


def test_by_default_hosts_with_devices_are_kept():
    assert best([devices(4), {}]) == "cn1"
    assert best([devices(4), devices(1)]) == "cn1"


@pytest.mark.parametrize(("multiplier", "expected"), [(0.0, "cn0"), (-1.0, "cn1"), (1.0, "cn0")])
def test_number_of_servers_counts_only_when_it_is_switched_on(multiplier, expected):
    assert best([{"instances": 5}, {}], num_instances_weight_multiplier=multiplier) == expected


def test_image_properties_count_only_when_they_are_switched_on():
    asked = {"image_matches": {"cn1": 3.0}}
    assert best([{}, {}], asked) == "cn0"
    assert best([{}, {}], asked, image_props_weight_multiplier=1.0) == "cn1"


def test_multiplier_of_an_aggregate_counts_where_the_options_is_zero():
    hosts: list[Any] = [{"instances": 5}, {}, {"instances": 1}]
    for host in hosts:
        host["aggregate_metadata"] = {"num_instances_weight_multiplier": ("-1",)}
    assert best(hosts) == "cn1"
    assert best(hosts[:1] + [{}, {}]) == "cn1"


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "much", "", "1e999"])
def test_multiplier_of_an_aggregate_that_is_no_number_changes_nothing(bad):
    assert best([{"memory_mb_used": 500}, {"aggregate_metadata": {"ram_weight_multiplier": (bad,)}}]) == "cn1"


#: What a monitor reads. Next to the smallest numbers there are, one way of adding rounds otherwise than another.
READINGS = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
METRICS = {"metrics": {"weight_setting": ["x=1"], "required": False}}


@settings(max_examples=40, deadline=None)
@given(hosts=st.lists(st.fixed_dictionaries({
    "failed_builds": st.integers(0, 3), "hypervisor_version": st.integers(0, 10), "instances": st.integers(0, 5),
    "metrics": st.dictionaries(st.just("x"), READINGS, max_size=1),
    "aggregate_metadata": st.dictionaries(st.sampled_from([cls.multiplier_option for cls in all_weighers()]),
                                          st.lists(st.sampled_from(["1", "-2", "0", "x"]), min_size=1).map(tuple),
                                          max_size=3)}), min_size=1, max_size=6))
def test_decisions_with_and_without_memory_are_the_same(hosts):
    states = [host_state(f"cn{at}", provider_id=at, **fields) for at, fields in enumerate(hosts)]
    request = placement_request(5, image_matches={"cn0": 1.0, "cn2": 2.0})
    options = filter_options(image_props_weight_multiplier=1.0, **METRICS)
    one, other = (Pipeline(options, ranks=ranks).decide(snapshot_of(*states), request) for ranks in (True, False))
    assert [found.hosts for found in one] == [found.hosts for found in other]


def test_all_weighers_are_made_from_the_options_of_a_configuration_without_a_file():
    options = PluginOptions.of_sections(filter_options(), filter_options().metrics, filter_options().scheduler)
    assert {type(one) for one in plugins.load_weighers(options)} == set(all_weighers())
