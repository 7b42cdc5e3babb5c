"""The cell's database away, over real daemons: what is shown of servers and services until it is back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.functional.backends import wait_until
from tests.functional.client import IMAGE, Refused
from tests.functional.cloud import ADMIN, Cloud, Plan

pytestmark = pytest.mark.in_turn(5, 10)

NOTICED_S, BACK_S = 5.0, 40.0
PARTIAL = {"id", "status", "tenant_id", "created", "links"}
SHOWN = PARTIAL | {"user_id", "image", "flavor", "OS-EXT-AZ:availability_zone", "OS-EXT-STS:power_state"}


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def cloud(make_cloud, request: pytest.FixtureRequest) -> Cloud:
    return make_cloud(Plan(database=request.param, computes=1, conductors=2, workers=1, cuttable_cell=True)).start()


@pytest.fixture
def servers(cloud: Cloud) -> Iterator[list[str]]:
    """Three of the demo project's, the newest first; one more of another's."""
    api = cloud.api()
    cloud.api(project="other").boot("theirs")
    yield [api.boot(f"vm{number}")["id"] for number in range(3)][::-1]
    cloud.empty()


def refusal(api, path: str, method: str = "GET", body: object = None) -> int:
    with pytest.raises(Refused) as refused:
        api.call(method, path, body)
    assert refused.value.message
    return refused.value.status


def test_reads_when_the_cell_is_cut_then_they_are_partial_by_version_and_whole_again_after(cloud: Cloud,
                                                                                           servers: list[str]) -> None:
    old, new, newest = (cloud.api(version=version) for version in ("2.68", "2.69", "2.71"))
    before = newest.show(servers[0])
    cloud.cell_link.cut()
    try:
        started = time.monotonic()
        assert [one["id"] for one in new.servers()] == servers
        assert time.monotonic() - started < NOTICED_S
        assert all(one.keys() == PARTIAL and one["status"] == "UNKNOWN" for one in new.servers())
        assert [one.keys() for one in new.get("/servers")["servers"]] == [{"id", "status", "links"}] * 3
        assert len(cloud.api(ADMIN).servers("?all_tenants=1")) == 4
        assert new.servers("?limit=2") == new.servers("?name=vm") == old.servers() == []
        _check_shown(new.show(servers[0]), newest.show(servers[0]), before)
        assert refusal(old, f"/servers/{servers[0]}") == 503
        assert refusal(cloud.api(project="other", version="2.71"), f"/servers/{servers[0]}") == 404
        assert refusal(newest, f"/servers/{servers[0]}/action", "POST", {"os-stop": None}) == 503
        assert refusal(newest, f"/servers/{servers[0]}", "DELETE") == 503
        assert refusal(newest, "/servers", "POST", {"server": {
            "name": "x", "flavorRef": "1", "imageRef": IMAGE, "networks": "auto"}}) == 503
        services = cloud.api(ADMIN, version="2.69").get("/os-services")["services"]
        assert services == [{"binary": "nova-compute", "host": "host1", "status": "UNKNOWN"}]
        assert refusal(cloud.api(ADMIN, version="2.68"), "/os-services") == 503
    finally:
        cloud.cell_link.repair()
    wait_until("the server is whole again", lambda: newest.show(servers[0])["status"] != "UNKNOWN", BACK_S)
    assert newest.show(servers[0]) == before
    assert [one["id"] for one in old.servers()] == servers


def _check_shown(found: dict, newer: dict, before: dict) -> None:
    assert found.keys() == SHOWN and newer.keys() == SHOWN | {"server_groups"} and newer["server_groups"] == []
    same = ("id", "tenant_id", "user_id", "image", "flavor", "links")
    assert {name: newer[name] for name in same} == {name: before[name] for name in same}
    assert (newer["status"], newer["OS-EXT-AZ:availability_zone"], newer["OS-EXT-STS:power_state"]) == (
        "UNKNOWN", "UNKNOWN", 0)


def test_work_when_the_cell_was_away_longer_than_a_lease_then_it_goes_on_by_itself(cloud: Cloud,
                                                                                  servers: list[str]) -> None:
    cloud.cell_link.cut()
    try:
        time.sleep(6)  # a lease has 4 s
        assert len(cloud.api(version="2.69").servers()) == 3
        assert all(daemon.running for daemon in cloud.daemons.values())
    finally:
        cloud.cell_link.repair()
    wait_until("all daemons are up", lambda: ("nova-compute", "host1") in _up(cloud), BACK_S, 0.2)
    cloud.api().boot("after")


def _up(cloud: Cloud) -> set[tuple[str, str]]:
    try:
        return {(one["binary"], one["host"]) for one in cloud.api(ADMIN).get("/os-services")["services"]
                if one.get("state") == "up"}
    except Refused:
        return set()
