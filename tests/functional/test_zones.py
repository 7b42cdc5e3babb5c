"""Aggregates and zones on a running cloud: the scheduler knows a change before the next request, and when it is new."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import sampling
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE, Client, Refused
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(5, 10)


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=2, cells=sampling.cells(2))).start()


@pytest.fixture
def admin(cloud: Cloud) -> Iterator[Client]:
    admin = cloud.api("admin", "admin")
    yield admin
    cloud.empty()
    for aggregate in admin.get("/os-aggregates")["aggregates"]:
        for host in aggregate["hosts"]:
            act(admin, aggregate["id"], "remove_host", host)
        admin.call("DELETE", f"/os-aggregates/{aggregate['id']}")


def make(admin: Client, name: str, zone: str | None, *hosts: str) -> int:
    body = {"aggregate": {"name": name, "availability_zone": zone}}
    key = admin.call("POST", "/os-aggregates", body).json()["aggregate"]["id"]
    for host in hosts:
        act(admin, key, "add_host", host)
    return int(key)


def act(admin: Client, key: int, action: str, host: str) -> None:
    admin.call("POST", f"/os-aggregates/{key}/action", {action: {"host": host}})


def where(admin: Client, uuid: str) -> tuple[str, str]:
    shown = admin.show(uuid)
    return shown["OS-EXT-SRV-ATTR:host"], shown["OS-EXT-AZ:availability_zone"]


def test_boot_right_after_a_change_goes_where_the_zone_is_now(cloud: Cloud, admin: Client) -> None:
    """Each change is followed by a request at once: no sweep of the scheduler's comes in between."""
    api, key = cloud.api(), make(admin, "moving", "london")
    for host in ("host1", "host2", "host1"):
        act(admin, key, "add_host", host)
        booted = [api.boot(f"vm{number}", availability_zone="london")["id"] for number in range(3)]
        assert {where(admin, uuid) for uuid in booted} == {(host, "london")}
        with pytest.raises(Refused) as refused:
            act(admin, key, "remove_host", host)
        assert refused.value.status == 409 and "requested availability zone london" in refused.value.message
        api.remove(*booted)
        act(admin, key, "remove_host", host)
        with pytest.raises(Refused) as refused:
            api.create(availability_zone="london")
        assert (refused.value.status, "london" in refused.value.message) == (400, True)


def test_server_that_asked_for_no_zone_follows_its_host(cloud: Cloud, admin: Client) -> None:
    uuid = cloud.api().boot()["id"]
    host, zone = where(admin, uuid)
    assert zone == "nova"
    key = make(admin, "one", "london", host)
    assert where(admin, uuid) == (host, "london")
    zones = {one["zoneName"]: sorted(one["hosts"]) for one in
             admin.get("/os-availability-zone/detail")["availabilityZoneInfo"]}
    assert zones["london"] == [host] and len(zones["nova"]) == 1
    act(admin, key, "remove_host", host)
    assert where(admin, uuid) == (host, "nova")


def test_scheduler_when_it_starts_again_then_it_knows_the_zones(cloud: Cloud, admin: Client) -> None:
    make(admin, "one", "london", "host2")
    cloud.daemons["scheduler"].restart()
    assert where(admin, cloud.api().boot(availability_zone="london")["id"]) == ("host2", "london")
    assert where(admin, cloud.api().boot(availability_zone="nova")["id"]) == ("host1", "nova")


def test_images_are_asked_for_and_a_fake_host_needs_none(cloud: Cloud, admin: Client) -> None:
    key = make(admin, "one", None, "host1", "host2")
    assert admin.call("POST", f"/os-aggregates/{key}/images", {"cache": [{"id": IMAGE}]}).status_code == 202
    log = cloud.daemons["conductor"]
    wait_until("both hosts were asked", lambda: all(
        f"image {IMAGE} on host {host}: unsupported" in log.text() for host in cloud.hosts), 20)
