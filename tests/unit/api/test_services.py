"""Services: listed, changed by word and by uuid, taken out; and availability zones."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from tests.fakes.api import ADMIN, DEMO, ApiClient

COMPUTE = {"host": "host1", "binary": "nova-compute"}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_service("host1")
    made.conductor.add_service("host2", disabled=True, disabled_reason="broken", up=False)
    made.conductor.add_service("control", "nova-scheduler")
    return made


def uuid_of(client: ApiClient, index: int = 0) -> str:
    return client.conductor.services[index].uuid


@pytest.mark.parametrize(("query", "hosts"), [("", ["host1", "host2", "control"]), ("host=host1", ["host1"]),
                                              ("binary=nova-scheduler", ["control"]), ("host=host1&binary=x", [])])
def test_list_by_host_and_binary(client: ApiClient, query: str, hosts: list[str]) -> None:
    assert [entry["host"] for entry in client.get(f"/os-services?{query}").json["services"]] == hosts


def test_list_tells_state_and_status(client: ApiClient) -> None:
    shown = client.get("/os-services?host=host2", version="2.11").json["services"][0]
    assert shown == {"id": 2, "binary": "nova-compute", "host": "host2", "zone": "nova", "status": "disabled",
                     "state": "down", "updated_at": "2026-01-02T03:04:05.678901", "disabled_reason": "broken",
                     "forced_down": False}
    assert client.get("/os-services", version="2.53").json["services"][0]["id"] == uuid_of(client)
    assert "forced_down" not in client.get("/os-services", version="2.10").json["services"][0]


def test_list_of_a_silent_cell_is_asked_for_in_part_from_2_69_only(client: ApiClient) -> None:
    client.conductor.silent_cell = True
    assert client.get("/os-services?host=host1", version="2.68").json["services"][0]["status"] == "enabled"
    assert client.get("/os-services", version="2.69").json["services"] == [
        {"binary": "nova-compute", "host": host, "status": "UNKNOWN"} for host in ("host1", "host2")]


@pytest.mark.parametrize(("method", "path", "body"), [
    ("GET", "/os-services", None), ("PUT", "/os-services/enable", COMPUTE), ("DELETE", "/os-services/1", None),
    ("GET", "/os-availability-zone/detail", None)])
def test_services_are_for_admins(client: ApiClient, method: str, path: str, body: Any) -> None:
    assert client.request(method, path, body, token=DEMO).status_int == 403


def test_update_by_word_answers_what_it_changed(client: ApiClient) -> None:
    def put(word: str, version: str = "2.11", **fields: Any) -> Any:
        return client.put(f"/os-services/{word}", {**COMPUTE, **fields}, version=version).json["service"]
    assert put("disable") == {**COMPUTE, "status": "disabled"}
    shown = put("disable-log-reason", disabled_reason="why")
    assert shown == {**COMPUTE, "status": "disabled", "disabled_reason": "why"}
    assert client.conductor.services[0].disabled_reason == "why"
    assert put("enable") == {**COMPUTE, "status": "enabled"}
    assert client.conductor.services[0].disabled_reason is None
    assert put("force-down", forced_down="true") == {**COMPUTE, "forced_down": True}
    assert client.conductor.services[0].forced_down is True


@pytest.mark.parametrize(("word", "body", "version", "status"), [
    ("dance", COMPUTE, "2.1", 404), ("force-down", {**COMPUTE, "forced_down": True}, "2.11", 200),
    ("force-down", COMPUTE, "2.10", 404), ("force-down", COMPUTE, "2.11", 400),
    ("disable-log-reason", COMPUTE, "2.1", 400),
    ("enable", {"host": "host1"}, "2.1", 400), ("enable", {"host": "nowhere", "binary": "nova-compute"}, "2.1", 404),
    ("disable", {"host": "control", "binary": "nova-scheduler"}, "2.1", 400), ("enable", COMPUTE, "2.53", 400),
    ("disable", {**COMPUTE, "host": "a b"}, "2.1", 400)])
def test_update_by_word_is_refused_when_it_does_not_fit(client: ApiClient, word: str, body: Any, version: str,
                                                        status: int) -> None:
    assert client.put(f"/os-services/{word}", body, version=version).status_int == status


def test_update_by_uuid_answers_the_whole_service(client: ApiClient) -> None:
    path = f"/os-services/{uuid_of(client)}"
    shown = client.put(path, {"status": "disabled", "disabled_reason": "why"}, version="2.53").json["service"]
    assert (shown["id"], shown["status"], shown["disabled_reason"]) == (uuid_of(client), "disabled", "why")
    shown = client.put(path, {"status": "enabled", "forced_down": True}, version="2.53").json["service"]
    assert (shown["status"], shown["disabled_reason"], shown["forced_down"]) == ("enabled", None, True)


@pytest.mark.parametrize(("index", "body", "status"), [
    (0, {}, 400), (0, {"disabled_reason": "why"}, 400), (0, {"status": "enabled", "disabled_reason": "why"}, 400),
    (0, {"status": "on"}, 400), (0, COMPUTE, 400), (2, {"status": "disabled"}, 400)])
def test_update_by_uuid_is_refused_when_it_does_not_fit(client: ApiClient, index: int, body: Any, status: int) -> None:
    before = list(client.conductor.services)
    assert client.put(f"/os-services/{uuid_of(client, index)}", body, version="2.53").status_int == status
    assert client.conductor.services == before


def test_update_and_delete_of_none_are_404(client: ApiClient) -> None:
    path = "/os-services/6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
    assert client.put(path, {"status": "enabled"}, version="2.53").status_int == 404
    assert client.delete(path, version="2.53").status_int == 404
    assert client.delete("/os-services/99", version="2.52").status_int == 404


def test_delete_takes_a_service_out_by_the_versions_id(client: ApiClient) -> None:
    gone, also = uuid_of(client, 1), client.conductor.services[2].id
    assert client.delete("/os-services/2", version="2.53").status_int == 400
    assert client.delete(f"/os-services/{gone}", version="2.52").status_int == 400
    assert client.delete(f"/os-services/{gone}", version="2.53").status_int == 204
    assert client.delete(f"/os-services/{also}", version="2.52").status_int == 204
    assert [service.host for service in client.conductor.services] == ["host1"]


def test_delete_while_the_host_has_servers_is_409(client: ApiClient) -> None:
    client.conductor.given(delete_service=errors.Conflict("it is hosting instances"))
    assert client.delete("/os-services/1").status_int == 409


# availability zones

def test_zones_for_users_hide_hosts_and_the_internal_zone(client: ApiClient) -> None:
    assert client.get("/os-availability-zone", token=DEMO).json == {"availabilityZoneInfo": [
        {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}]}


def test_zones_in_detail_show_every_service(client: ApiClient) -> None:
    zones = client.get("/os-availability-zone/detail").json["availabilityZoneInfo"]
    assert [zone["zoneName"] for zone in zones] == ["internal", "nova"]
    assert zones[0]["hosts"] == {"control": {"nova-scheduler": {
        "active": True, "available": True, "updated_at": "2026-01-02T03:04:05.678901"}}}
    assert zones[1]["hosts"]["host2"]["nova-compute"] == {
        "active": False, "available": False, "updated_at": "2026-01-02T03:04:05.678901"}
