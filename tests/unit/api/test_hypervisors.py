"""Hypervisors: lists, pages and patterns, one by number or uuid, uptime and statistics."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.api import ADMIN, DEMO, ApiClient
from tests.fakes.conductor import numbered

FIRST = numbered(2, 1)


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    for name in ("one.example", "two.example", "three"):
        made.conductor.add_hypervisor(name)
    made.conductor.add_server(name="vm", host="one.example", node="one.example")
    return made


def names(answer: Any) -> list[str]:
    return [entry["hypervisor_hostname"] for entry in answer.json["hypervisors"]]


@pytest.mark.parametrize("path", ["/os-hypervisors", "/os-hypervisors/detail", "/os-hypervisors/1",
                                  "/os-hypervisors/statistics", "/os-hypervisors/one/search",
                                  "/os-hypervisors/one/servers", "/os-hypervisors/1/uptime"])
def test_hypervisors_are_for_admins(client: ApiClient, path: str) -> None:
    assert client.get(path, token=DEMO).status_int == 403
    assert client.get(path).status_int == 200


@pytest.mark.parametrize("path", ["/os-hypervisors", "/os-hypervisors/detail"])
@pytest.mark.parametrize(("version", "marker"), [("2.33", "2"), ("2.53", numbered(2, 2)), ("2.88", numbered(2, 2))])
def test_lists_come_in_pages(client: ApiClient, path: str, version: str, marker: str) -> None:
    first = client.get(f"{path}?limit=2", version=version)
    assert names(first) == ["one.example", "two.example"]
    link = first.json["hypervisors_links"][0]
    assert link == {"rel": "next", "href": f"http://localhost/v2.1{path}?limit=2&marker={marker}"}
    rest = client.get(f"{path}?limit=2&marker={marker}", version=version)
    assert names(rest) == ["three"] and "hypervisors_links" not in rest.json


def test_lists_before_2_33_are_whole(client: ApiClient) -> None:
    answer = client.get("/os-hypervisors?limit=1&marker=zzz", version="2.32")
    assert len(names(answer)) == 3 and list(answer.json) == ["hypervisors"]


@pytest.mark.parametrize(("query", "version"), [
    ("marker=x", "2.33"), ("marker=99", "2.33"), ("marker=2", "2.53"), ("limit=-1", "2.33"), ("stranger=1", "2.53"),
    ("marker=6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "2.53"), ("with_servers=maybe", "2.53"),
    ("limit=1&limit=2", "2.53"), ("hypervisor_hostname_pattern=a*b", "2.53"),
    ("hypervisor_hostname_pattern=one&limit=1", "2.53")])
def test_list_when_a_parameter_is_wrong_is_400(client: ApiClient, query: str, version: str) -> None:
    assert client.get(f"/os-hypervisors?{query}", version=version).status_int == 400


def test_pattern_finds_part_of_the_name_or_is_404(client: ApiClient) -> None:
    answer = client.get("/os-hypervisors/detail?hypervisor_hostname_pattern=example", version="2.53")
    assert names(answer) == ["one.example", "two.example"] and list(answer.json) == ["hypervisors"]
    assert names(client.get("/os-hypervisors/example/search", version="2.52")) == ["one.example", "two.example"]
    assert client.get("/os-hypervisors?hypervisor_hostname_pattern=none", version="2.53").status_int == 404
    assert client.get("/os-hypervisors/none/search", version="2.52").status_int == 404
    assert client.get("/os-hypervisors/none/servers", version="2.52").status_int == 404


def test_servers_are_left_out_where_there_are_none_until_2_75(client: ApiClient) -> None:
    def shown(path: str, version: str) -> list[bool]:
        return ["servers" in entry for entry in client.get(path, version=version).json["hypervisors"]]
    assert shown("/os-hypervisors/example/servers", "2.52") == [True, False]
    assert shown("/os-hypervisors/example/search", "2.52") == [False, False]
    assert shown("/os-hypervisors?with_servers=1", "2.74") == [True, False, False]
    assert shown("/os-hypervisors?with_servers=1", "2.75") == [True, True, True]
    assert shown("/os-hypervisors?with_servers=0", "2.75") == [False, False, False]


@pytest.mark.parametrize(("id", "version", "status"), [
    ("1", "2.52", 200), ("99", "2.52", 404), ("x", "2.52", 404), (FIRST, "2.52", 404), (FIRST, "2.53", 200),
    ("1", "2.53", 400), ("6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "2.53", 404), ("9" * 40, "2.52", 404)])
def test_one_is_named_by_number_then_by_uuid(client: ApiClient, id: str, version: str, status: int) -> None:
    assert client.get(f"/os-hypervisors/{id}", version=version).status_int == status
    assert client.get(f"/os-hypervisors/{id}/uptime", version=version).status_int == status


def test_cpu_info_is_text_then_an_object_then_gone(client: ApiClient) -> None:
    def shown(version: str, id: str = "1") -> Any:
        return client.get(f"/os-hypervisors/{id}", version=version).json["hypervisor"].get("cpu_info", "gone")
    assert shown("2.27") == '{"arch": "x86_64"}'
    assert shown("2.28") == {"arch": "x86_64"}
    assert shown("2.88", FIRST) == "gone"


@pytest.mark.parametrize("text", ["", "Xeon", "[1]"])
def test_cpu_info_that_is_no_object_is_an_empty_one(client: ApiClient, text: str) -> None:
    client.conductor.add_hypervisor("odd", cpu_info=text)
    assert client.get("/os-hypervisors/4", version="2.28").json["hypervisor"]["cpu_info"] == {}


def test_free_amounts_are_what_is_not_used(client: ApiClient) -> None:
    client.conductor.add_hypervisor("used", memory_mb=100, memory_mb_used=30, local_gb=10, local_gb_used=12)
    shown = client.get("/os-hypervisors/4").json["hypervisor"]
    assert (shown["free_ram_mb"], shown["free_disk_gb"]) == (70, -2)


def test_state_and_status_are_the_services(client: ApiClient) -> None:
    service = client.conductor.add_service("bad", up=False, disabled=True, disabled_reason="why")
    client.conductor.add_hypervisor("bad", service=service)
    shown = client.get("/os-hypervisors/4").json["hypervisor"]
    assert (shown["state"], shown["status"]) == ("down", "disabled")
    assert shown["service"] == {"host": "bad", "id": service.id, "disabled_reason": "why"}


@pytest.mark.parametrize(("version", "asked"), [("2.87", False), ("2.88", True)])
def test_hosts_are_asked_for_their_uptime_only_where_it_is_shown(client: ApiClient, version: str, asked: bool) -> None:
    shown = client.get("/os-hypervisors/detail", version=version).json["hypervisors"][0]
    assert ("uptime" in shown) is asked
    assert client.conductor.asked("list_hypervisors")[-1].with_uptime is asked
    client.get("/os-hypervisors", version=version)
    assert client.conductor.asked("list_hypervisors")[-1].with_uptime is False


def test_uptime_a_driver_does_not_tell_is_501_and_null_from_2_88(client: ApiClient) -> None:
    client.conductor.uptime = None
    assert client.get("/os-hypervisors/1/uptime").status_int == 501
    assert client.get(f"/os-hypervisors/{FIRST}", version="2.88").json["hypervisor"]["uptime"] is None
    assert client.get(f"/os-hypervisors/{FIRST}/uptime", version="2.88").status_int == 404


def test_uptime_of_a_host_that_is_down_is_400(client: ApiClient) -> None:
    client.conductor.uptime = None
    client.conductor.add_hypervisor("down", service=client.conductor.add_service("down", up=False))
    answer = client.get("/os-hypervisors/4/uptime")
    assert answer.status_int == 400
    assert "down" in answer.json["badRequest"]["message"]


def test_statistics_until_2_87(client: ApiClient) -> None:
    shown = client.get("/os-hypervisors/statistics", version="2.87").json["hypervisor_statistics"]
    assert (shown["count"], shown["vcpus"], shown["free_ram_mb"]) == (3, 12, 3 * (8192 - 512))
    assert client.get("/os-hypervisors/statistics", version="2.88").status_int == 404
