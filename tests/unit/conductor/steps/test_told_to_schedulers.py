"""What a request to the scheduler tells of other servers."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context
from nova.db.models import cell as tables
from nova.model.host.aggregates import NewAggregate
from nova.model.server.server_orders import RebuildServer
from nova.scheduler.filters import all_filters
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.scheduling import filter_options
from tests.fakes.small_cloud import DEMO, SmallCloud


def with_settings(cloud: SmallCloud, **fields: Any) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, **fields)


def test_busy_hosts_and_named_servers_are_told(cloud: SmallCloud) -> None:
    near, far = cloud.active(2)
    at = tables.servers.c.uuid == far
    cloud.write("cell", sa.update(tables.servers).where(at).values(task_state="image_uploading", host="b"))
    cloud.active(scheduler_hints={"same_host": [near], "different_host": far, "query": "[]"})
    request = cloud.scheduler.requests[-1]
    assert request.busy == {"b": 1}
    assert request.server_hosts == {near: "a", far: "b"}
    assert request.image_matches == {} and not request.tenant_aggregates and not request.rebuild


def test_hints_of_nonsense_ask_the_database_nothing(cloud: SmallCloud) -> None:
    cloud.active(scheduler_hints={"same_host": "near", "different_host": [5, {"a": 1}]})
    assert cloud.scheduler.requests[-1].server_hosts == {}


#: Words that schedulers, of this or another release, say to themselves (OSSA-2026-022), and names of our own fields.
OUR_OWN = {"_nova_check_type": ["rebuild"], "rebuild": True, "force": True, "host": "b", "node": "b", "resources": {},
           "source_host": "b", "server_hosts": {"x": "b"}, "exclude": ["a"], "wishes": None, "group_host": ["b"]}


def test_hints_when_they_are_our_own_words_then_all_is_asked_and_claimed_as_without_them(cloud: SmallCloud) -> None:
    requests = []
    for hints in ({}, OUR_OWN):
        [uuid] = cloud.active(scheduler_hints=hints)
        request = cloud.scheduler.requests[-1]
        assert uuid in {server for _, server in cloud.claims()}
        requests.append(msgspec.structs.replace(request, server_uuids=(), hints={}, busy={}))
    assert requests[0] == requests[1]


def test_hints_when_they_are_our_own_words_then_no_filter_reads_them(cloud: SmallCloud) -> None:
    [uuid] = cloud.active(scheduler_hints=OUR_OWN)
    request = cloud.scheduler.requests[-1]
    assert request.hints == OUR_OWN
    filters = [kind(filter_options()) for kind in all_filters()]
    without = msgspec.structs.replace(request, hints={})
    assert [one.wanted(request) for one in filters] == [one.wanted(without) for one in filters]


@pytest.mark.parametrize(("multiplier", "expected"), [(0.0, {}), (1.0, {"a": 1.0})])
def test_shared_image_properties_are_counted_where_they_weigh(cloud: SmallCloud, multiplier, expected) -> None:
    with_settings(cloud, image_props_weight_multiplier=multiplier)
    cloud.image_service.add("debian", properties={"os_distro": "debian"})
    for _ in range(2):
        cloud.active(image_id="debian")
    assert cloud.scheduler.requests[-1].image_matches == expected


@pytest.mark.parametrize(("asked", "named", "expected"), [
    (True, "demo", True), (True, "other", False), (False, "demo", False)])
def test_tenants_aggregates_are_looked_for_where_they_matter(cloud: SmallCloud, asked, named, expected) -> None:
    with_settings(cloud, limit_tenants_to_placement_aggregate=asked)
    made = cloud.control.create_aggregate(NewAggregate(name="theirs"))
    cloud.control.set_aggregate_metadata(made.id, {"filter_tenant_id": named})
    cloud.active()
    assert cloud.scheduler.requests[-1].tenant_aggregates is expected


def test_disk_format_is_the_images_that_it_boots_from(cloud: SmallCloud) -> None:
    cloud.image_service.add("debian", disk_format="vmdk")
    cloud.active(image_id="debian")
    assert cloud.scheduler.requests[-1].image_disk_format == "vmdk"


def test_rebuild_with_another_image_asks_for_the_same_host_as_a_rebuild(cloud: SmallCloud) -> None:
    for name in ("debian", "other"):
        cloud.image_service.add(name, disk_format="qcow2", properties={"os_distro": name})
    [uuid] = cloud.active(image_id="debian")
    with context.entered(DEMO):
        cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id="other", admin_password="a very secret word"))
    assert cloud.ended(uuid).vm_state == "active"
    request = cloud.scheduler.requests[-1]
    assert request.rebuild and (request.host, request.busy, request.requirements) == ("a", {}, None)
    assert request.image_properties["os_distro"] == "other" and request.image_disk_format == "qcow2"


def test_a_move_tells_where_it_comes_from(tmp_path, templates) -> None:
    cloud = FailingCloud(tmp_path, templates)
    try:
        [uuid] = cloud.active()
        assert cloud.scheduler.requests[-1].source_host is None
        cloud.begin(uuid, "resize")
        cloud.settle(uuid)
        assert cloud.scheduler.requests[-1].source_host == "host1"
    finally:
        cloud.close()
