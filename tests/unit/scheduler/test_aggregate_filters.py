"""Filters that look at aggregates, and limits of hosts: what they refuse, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.scheduler.filters import Filter
from nova.scheduler.filters.aggregate_extra_specs import AggregateInstanceExtraSpecsFilter
from nova.scheduler.filters.aggregate_image_properties import AggregateImagePropertiesIsolation
from nova.scheduler.filters.aggregate_members import AggregateMultiTenancyIsolation, AggregateTypeAffinityFilter
from nova.scheduler.filters.host_limits import (
    AggregateIoOpsFilter,
    AggregateNumInstancesFilter,
    IoOpsFilter,
    NumInstancesFilter,
)
from nova.scheduler.filters.isolated_hosts import IsolatedHostsFilter
from tests.fakes.scheduling import filter_options, host_view, placement_request


def refusal(cls: type[Filter], host: dict[str, Any], request: dict[str, Any], **options: Any) -> str | None:
    """What is said of one host; and all that a filter may be asked must agree."""
    filter_, asked, view = cls(filter_options(**options)), placement_request(**request), host_view(**host)
    said = filter_.refuses(view, asked) if filter_.wanted(asked) else None
    if filter_.wanted(asked):
        assert filter_.passing([view, view], asked) == ([] if said else [view, view])
    return said


def metadata(**values: str | tuple[str, ...]) -> dict[str, Any]:
    return {"aggregate_metadata": {key.replace("__", "."): (value,) if isinstance(value, str) else value
                                   for key, value in values.items()}}


IMAGES = "its aggregates are for images with another os"


@pytest.mark.parametrize(("host", "properties", "expected"), [
    ({}, {"os": "windows"}, None),
    (metadata(os="windows"), {"os": "windows"}, None),
    (metadata(os="windows"), {"os": "linux"}, IMAGES),
    (metadata(os="windows"), {}, None),
    (metadata(os="windows"), {"hw": "x"}, None),
    (metadata(os="windows, linux"), {"os": "linux"}, None),
    (metadata(os=("bsd", "windows")), {"os": "linux"}, IMAGES),
    (metadata(os="a,b"), {"os": "a,b"}, None),
    (metadata(os="a,b"), {"os": "a,c"}, IMAGES),
    (metadata(os=""), {"os": "linux"}, IMAGES),
])
def test_aggregate_image_properties_isolation(host, properties, expected):
    assert refusal(AggregateImagePropertiesIsolation, host, {"image_properties": properties}) == expected


@pytest.mark.parametrize(("separator", "expected"), [(".", None), ("_", IMAGES.replace("os", "iso_os"))])
def test_aggregate_image_properties_isolation_when_there_is_a_namespace_then_only_its_keys_count(separator, expected):
    host = {"aggregate_metadata": {"os": ("windows",), "iso_os": ("windows",), "iso.other": ("x",)}}
    asked = {"image_properties": {"os": "linux", "iso_os": "linux"}}
    assert refusal(AggregateImagePropertiesIsolation, host, asked,
                   aggregate_image_properties_isolation_namespace="iso",
                   aggregate_image_properties_isolation_separator=separator) == expected


@pytest.mark.parametrize(("host", "specs", "expected"), [
    ({}, {}, None),
    ({}, {"hw:cpu_policy": "dedicated", "capabilities:x": "1", "group_policy": "none"}, None),
    ({}, {"ssd": "true"}, "no aggregate with ssd"),
    (metadata(ssd="true"), {"ssd": "true"}, None),
    (metadata(ssd="true"), {"aggregate_instance_extra_specs:ssd": "true"}, None),
    (metadata(ssd="true"), {"aggregate_instance_extra_specs:ssd": "false"}, "ssd of its aggregates is not false"),
    (metadata(ssd=("false", "true")), {"ssd": "true"}, None),
    (metadata(speed="10"), {"aggregate_instance_extra_specs:speed": ">= 10"}, None),
    (metadata(speed="ten"), {"speed": ">= 10"}, "speed of its aggregates is not >= 10"),
    (metadata(speed="5,20"), {"speed": ">= 10"}, None),
    (metadata(os="c"), {"os": "<or> a <or> b"}, "os of its aggregates is not <or> a <or> b"),
    (metadata(ssd=""), {"ssd": ""}, "ssd of its aggregates is not "),
])
def test_aggregate_instance_extra_specs_filter(host, specs, expected):
    assert refusal(AggregateInstanceExtraSpecsFilter, host, {"extra_specs": specs}) == expected


@pytest.mark.parametrize(("host", "expected"), [
    ({}, None),
    (metadata(ssd="true"), None),
    (metadata(filter_tenant_id="demo"), None),
    (metadata(filter_tenant_id="other, demo"), None),
    (metadata(filter_tenant_id="other", filter_tenant_id_2="demo"), None),
    (metadata(filter_tenant_id=("other", "third")), "its aggregates are for other projects"),
    (metadata(filter_tenant_id_2="demo2"), "its aggregates are for other projects"),
    (metadata(filter_tenant_id=""), None),
])
def test_aggregate_multi_tenancy_isolation(host, expected):
    assert refusal(AggregateMultiTenancyIsolation, host, {"project_id": "demo"}) == expected


@pytest.mark.parametrize(("host", "expected"), [
    ({}, None),
    (metadata(instance_type="small"), None),
    (metadata(instance_type="big,small"), None),
    (metadata(instance_type=("big", "huge")), "its aggregates are for other flavors"),
])
def test_aggregate_type_affinity_filter(host, expected):
    assert refusal(AggregateTypeAffinityFilter, host, {"flavor_name": "small"}) == expected


COPIES, SERVERS = "builds, moves and copies at one time", "servers"


@pytest.mark.parametrize(("cls", "host", "expected"), [
    (IoOpsFilter, {}, None),
    (IoOpsFilter, {"busy": 7}, None),
    (IoOpsFilter, {"busy": 8}, f"is at its limit of 8 {COPIES}"),
    (IoOpsFilter, {"busy": 7, "pending": 1}, f"is at its limit of 8 {COPIES}"),
    (IoOpsFilter, {"busy": 9, **metadata(max_io_ops_per_host="20")}, f"is at its limit of 8 {COPIES}"),
    (AggregateIoOpsFilter, {"busy": 9}, f"is at its limit of 8 {COPIES}"),
    (AggregateIoOpsFilter, {"busy": 9, **metadata(max_io_ops_per_host="20")}, None),
    (AggregateIoOpsFilter, {"busy": 9, **metadata(max_io_ops_per_host=("20", "3"))}, f"is at its limit of 3 {COPIES}"),
    (AggregateIoOpsFilter, {"busy": 9, **metadata(max_io_ops_per_host=("20", "few"))}, None),
    (AggregateIoOpsFilter, {"busy": 9, **metadata(max_io_ops_per_host="few")}, f"is at its limit of 8 {COPIES}"),
    (AggregateIoOpsFilter, {"busy": 0, **metadata(max_io_ops_per_host="-5")}, None),  # no number of ours: the option's
    (AggregateIoOpsFilter, {"busy": 0, **metadata(max_io_ops_per_host="²")}, None),
    (NumInstancesFilter, {"instances": 49}, None),
    (NumInstancesFilter, {"instances": 49, "pending": 1}, f"is at its limit of 50 {SERVERS}"),
    (AggregateNumInstancesFilter, {"instances": 2, **metadata(max_instances_per_host="2")},
     f"is at its limit of 2 {SERVERS}"),
    (AggregateNumInstancesFilter, {"instances": 60, **metadata(max_instances_per_host="100")}, None),
])
def test_limits(cls, host, expected):
    assert refusal(cls, host, {}) == expected


@pytest.mark.parametrize(("image", "host", "options", "expected"), [
    ("", "cn1", {}, None),
    ("secret", "cn9", {}, None),
    ("secret", "cn1", {}, "is not for isolated images"),
    ("other", "cn9", {}, "is for isolated images"),
    ("", "cn9", {}, "is for isolated images"),
    ("other", "cn9", {"restrict_isolated_hosts_to_isolated_images": False}, None),
    ("secret", "cn1", {"restrict_isolated_hosts_to_isolated_images": False}, "is not for isolated images"),
    ("secret", "cn1", {"isolated_hosts": []}, "is not for isolated images"),
    ("secret", "cn1", {"isolated_hosts": [], "isolated_images": []}, None),
])
def test_isolated_hosts_filter(image, host, options, expected):
    options = {"isolated_hosts": ["cn9"], "isolated_images": ["secret"], **options}
    assert refusal(IsolatedHostsFilter, {"host": host}, {"image_id": image}, **options) == expected


TEXT = st.text(max_size=12)


@settings(max_examples=60, deadline=None)
@given(values=st.dictionaries(st.sampled_from(["max_io_ops_per_host", "max_instances_per_host", "instance_type", "os",
                                               "filter_tenant_id", "filter_tenant_id9", "ram_weight_multiplier"]),
                              st.lists(TEXT, min_size=1, max_size=3).map(tuple)),
       asked=TEXT)
def test_no_metadata_and_no_value_make_a_filter_fail(values, asked):
    host = host_view(aggregate_metadata=values)
    request = placement_request(extra_specs={"os": asked}, image_properties={"os": asked}, project_id=asked)
    for cls in (AggregateIoOpsFilter, AggregateNumInstancesFilter, AggregateTypeAffinityFilter,
                AggregateMultiTenancyIsolation, AggregateInstanceExtraSpecsFilter, AggregateImagePropertiesIsolation):
        said = cls(filter_options()).refuses(host, request)
        assert said is None or (said and host.host not in said)
