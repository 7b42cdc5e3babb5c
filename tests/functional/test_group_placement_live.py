"""Server groups through all daemons: real requests side by side, the real scheduler, claims and hosts."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests import sampling
from tests.functional.client import IMAGE, Client, Refused
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(4, 10)

HOST = "OS-EXT-SRV-ATTR:host"
NOWHERE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=3, cells=sampling.cells(3))).start()


@pytest.fixture
def api(cloud: Cloud) -> Iterator[Client]:
    yield cloud.api()
    cloud.empty()


def make(api: Client, policy: str, **rules: int) -> str:
    body = {"server_group": {"name": policy, "policy": policy, **({"rules": rules} if rules else {})}}
    return str(api.call("POST", "/os-server-groups", body).json()["server_group"]["id"])


def members(api: Client, group: str) -> list[str]:
    return list(api.get(f"/os-server-groups/{group}")["server_group"]["members"])


def create(api: Client, group: str, **fields: Any) -> str:
    body = {"server": {"name": "vm", "flavorRef": "1", "imageRef": IMAGE, "networks": "auto", **fields},
            "os:scheduler_hints": {"group": group}}
    return str(api.call("POST", "/servers", body).json()["server"]["id"])


def hosts(cloud: Cloud, api: Client, uuids: list[str], *states: str) -> collections.Counter[str | None]:
    for uuid in uuids:
        api.settled(uuid, *(states or ("ACTIVE",)))
    found = {server["id"]: server[HOST] for server in cloud.api("admin").servers("?all_tenants=1")}
    return collections.Counter(found[uuid] for uuid in uuids)


def side_by_side(cloud: Cloud, group: str, count: int) -> list[str]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _number: create(cloud.api(), group), range(count)))


def test_anti_affinity_when_requests_race_then_hosts_get_one_each_and_the_rest_none(cloud, api) -> None:
    group = make(api, "anti-affinity")
    uuids = side_by_side(cloud, group, 5)
    assert hosts(cloud, api, uuids, "ACTIVE", "ERROR") == {**dict.fromkeys(cloud.hosts, 1), None: 2}
    assert sorted(members(api, group)) == sorted(uuids)
    failed = next(uuid for uuid in uuids if api.show(uuid)["status"] == "ERROR")
    assert "server group" in api.show(failed)["fault"]["message"].lower()
    api.remove(*uuids)
    assert members(api, group) == []


def test_affinity_when_requests_race_then_all_are_on_one_host(cloud, api) -> None:
    group = make(api, "affinity")
    found = hosts(cloud, api, side_by_side(cloud, group, 5))
    assert len(found) == 1 and None not in found


def test_one_request_for_many_counts_its_own_servers(cloud, api) -> None:
    group = make(api, "anti-affinity", max_server_per_host=2)
    create(api, group, min_count=6, max_count=6)
    assert hosts(cloud, api, members(api, group)) == dict.fromkeys(cloud.hosts, 2)


def test_soft_policies_spread_as_far_as_they_can_and_refuse_nobody(cloud, api) -> None:
    """Free room weighs too, so that soft-affinity is no more than a wish."""
    apart, together = make(api, "soft-anti-affinity"), make(api, "soft-affinity")
    for group in (apart, together):
        create(api, group, min_count=4, max_count=4)
    assert set(hosts(cloud, api, members(api, apart)).values()) <= {1, 2}
    assert sum(hosts(cloud, api, members(api, together)).values()) == 4


def test_server_shows_its_group_and_a_bad_group_is_refused(cloud, api) -> None:
    group = make(api, "affinity")
    uuid = create(api, group)
    assert api.settled(uuid, "ACTIVE")["server_groups"] == [group]
    for wrong in (NOWHERE, make(cloud.api("other", "other"), "affinity")):
        with pytest.raises(Refused) as refused:
            create(api, wrong)
        assert refused.value.status == 400 and wrong in refused.value.message
    api.call("DELETE", f"/os-server-groups/{group}")
    assert api.show(uuid)["server_groups"] == []


def test_reset_events_and_diagnostics_reach_the_host(cloud, api) -> None:
    admin, uuid = cloud.api("admin"), api.boot()["id"]
    reported = admin.get(f"/servers/{uuid}/diagnostics")
    assert reported["state"] == "running" and reported["num_cpus"] == 1 and reported["num_nics"] == 1
    event = {"name": "power-update", "server_uuid": uuid, "tag": "POWER_OFF"}
    answer = admin.call("POST", "/os-server-external-events", {"events": [event, {**event, "server_uuid": NOWHERE}]})
    assert answer.status_code == 207 and [one["code"] for one in answer.json()["events"]] == [200, 404]
    api.settled(uuid, "SHUTOFF")
    assert admin.get(f"/servers/{uuid}/diagnostics")["state"] == "shutdown"
    admin.act(uuid, "os-resetState", {"state": "error"})
    assert api.settled(uuid, "ERROR")["status"] == "ERROR"
    assert admin.get(f"/servers/{uuid}/os-instance-actions")["instanceActions"][0]["action"] == "resetState"
