"""Hosts, as versions up to 2.42 have them."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.model.host.services import HostPowerChange
from tests.fakes.api import ADMIN, DEMO, ApiClient


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_hypervisor("host1")
    made.conductor.add_service("control", "nova-scheduler", topic="scheduler")
    return made


def test_list_has_an_entry_a_daemon_and_is_filtered_by_zone(client: ApiClient) -> None:
    compute = {"host_name": "host1", "service": "compute", "zone": "nova"}
    scheduler = {"host_name": "control", "service": "scheduler", "zone": "internal"}
    assert client.get("/os-hosts").json == {"hosts": [compute, scheduler]}
    assert client.get("/os-hosts?zone=nova").json == {"hosts": [compute]}
    assert len(client.get("/os-hosts?zone=").json["hosts"]) == len(client.get("/os-hosts").json["hosts"]) > 1
    assert client.get("/os-hosts?zone=none&zone=internal&x=1").json == {"hosts": [scheduler]}


@pytest.mark.parametrize("count", [1, 50])
def test_list_when_there_are_many_hosts_then_the_conductor_is_asked_once(client: ApiClient, count: int) -> None:
    for number in range(count):
        client.conductor.add_hypervisor(f"more{number}")
    before = len(client.conductor.calls)
    assert len(client.get("/os-hosts").json["hosts"]) == count + 2
    assert [call.name for call in client.conductor.calls[before:]] == ["list_services"]


def test_show_tells_amounts_in_all_and_by_project(client: ApiClient) -> None:
    shown = [entry["resource"] for entry in client.get("/os-hosts/host1").json["host"]]
    assert [(one["project"], one["cpu"], one["memory_mb"], one["disk_gb"]) for one in shown] == [
        ("(total)", 4, 8192, 100), ("(used_now)", 0, 512, 0), ("(used_max)", 1, 512, 1), ("demo", 1, 512, 1)]
    assert {one["host"] for one in shown} == {"host1"}
    assert client.get("/os-hosts/nowhere").status_int == 404


def test_update_switches_the_service_and_maintenance(client: ApiClient) -> None:
    answer = client.put("/os-hosts/host1", {"status": "Disable", "maintenance_mode": "ENABLE"})
    assert answer.json == {"host": "host1", "status": "disabled", "maintenance_mode": "on_maintenance"}
    assert client.conductor.services[0].disabled
    assert client.put("/os-hosts/host1", {"status": "enable"}).json == {"host": "host1", "status": "enabled"}
    assert client.conductor.asked("change_host_power") == [HostPowerChange(host="host1", action="maintenance_on")]


def test_update_when_the_driver_cannot_then_nothing_is_changed(client: ApiClient) -> None:
    client.conductor.given(change_host_power=errors.NotSupported("the driver cannot"))
    answer = client.put("/os-hosts/host1", {"status": "disable", "maintenance_mode": "enable"})
    assert answer.status_int == 501 and not client.conductor.services[0].disabled


@pytest.mark.parametrize(("host", "body", "status"), [
    ("host1", {}, 400), ("host1", {"x": 1}, 400), ("host1", {"status": "on"}, 400),
    ("host1", {"status": "disable", "x": 1}, 400), ("host1", {"maintenance_mode": True}, 400),
    ("nowhere", {"status": "enable", "maintenance_mode": "enable"}, 404), ("control", {"status": "enable"}, 404)])
def test_update_that_does_not_fit_is_refused(client: ApiClient, host: str, body: Any, status: int) -> None:
    before = list(client.conductor.services)
    assert client.put(f"/os-hosts/{host}", body).status_int == status
    assert client.conductor.services == before and not client.conductor.asked("change_host_power")


@pytest.mark.parametrize("action", ["startup", "shutdown", "reboot"])
def test_power_actions_are_the_drivers(client: ApiClient, action: str) -> None:
    assert client.get(f"/os-hosts/host1/{action}").json == {"host": "host1", "power_action": action}
    assert client.conductor.asked("change_host_power") == [HostPowerChange(host="host1", action=action)]
    for error, status in ((errors.NotSupported("x"), 501), (errors.NotFound("x"), 404), (errors.Invalid("x"), 400)):
        client.conductor.given(change_host_power=error)
        assert client.get(f"/os-hosts/host1/{action}").status_int == status


@pytest.mark.parametrize(("method", "path", "body"), [
    ("GET", "/os-hosts", None), ("GET", "/os-hosts/host1", None), ("PUT", "/os-hosts/host1", {"status": "disable"}),
    ("GET", "/os-hosts/host1/startup", None), ("GET", "/os-hosts/host1/shutdown", None),
    ("GET", "/os-hosts/host1/reboot", None)])
def test_hosts_are_for_admins_and_end_with_2_42(client: ApiClient, method: str, path: str, body: Any) -> None:
    assert client.request(method, path, body, token=DEMO).status_int == 403
    assert client.request(method, path, body, version="2.42").status_int == 200
    assert client.request(method, path, body, version="2.43").status_int == 404
