"""Servers over the API: look-up before policy, locks, states, updates, links."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from nova.model.server.servers import Fault, ServerDetail
from nova.model.server.states import TaskState, VmState
from tests.fakes.api import ADMIN, DEMO, ApiClient

STRANGER, NOBODY = "other:other", "nobody:demo"


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


@pytest.fixture
def server(client: ApiClient) -> ServerDetail:
    return client.conductor.add_server()


def test_show_of_another_projects_server_is_404(client: ApiClient, server: ServerDetail) -> None:
    assert client.get(f"/servers/{server.uuid}", token=STRANGER).status_int == 404
    assert client.get(f"/servers/{server.uuid}", token=ADMIN).status_int == 200
    assert client.get("/servers/no-uuid").status_int == 404


def test_show_hides_what_policy_refuses(client: ApiClient, server: ServerDetail) -> None:
    mine = client.get(f"/servers/{server.uuid}", version="2.96").json["server"]
    admins = client.get(f"/servers/{server.uuid}", version="2.96", token=ADMIN).json["server"]
    assert "OS-EXT-SRV-ATTR:host" not in mine and "host_status" not in mine
    assert admins["OS-EXT-SRV-ATTR:host"] == "host1" and "host_status" in admins
    assert "OS-EXT-SRV-ATTR:hostname" in mine
    assert mine["flavor"]["extra_specs"] == {}


def test_nothing_is_spelled_as_the_contract_says(client: ApiClient) -> None:
    server = client.conductor.add_server(vm_state=VmState.BUILDING, task_state=TaskState.SCHEDULING, host=None,
                                         node=None, launched_at=None)
    shown = client.get(f"/servers/{server.uuid}").json["server"]
    assert shown["status"] == "BUILD" and shown["progress"] == 0
    assert (shown["accessIPv4"], shown["image"], shown["config_drive"], shown["hostId"]) == ("", "", "", "")
    assert shown["addresses"] == {} and shown["key_name"] is None
    assert shown["OS-EXT-AZ:availability_zone"] == "" and shown["OS-EXT-STS:power_state"] == 0
    assert "security_groups" not in shown and "fault" not in shown


def test_host_id_is_of_project_and_host(client: ApiClient, server: ServerDetail) -> None:
    shown = client.get(f"/servers/{server.uuid}").json["server"]
    assert shown["hostId"] == hashlib.sha224(b"demohost1").hexdigest()


def test_fault_is_shown_in_error_with_details_for_admins(client: ApiClient) -> None:
    server = client.conductor.add_server(vm_state=VmState.ERROR, fault=Fault(message="No valid host", details="why"))
    assert "details" not in client.get(f"/servers/{server.uuid}").json["server"]["fault"]
    assert client.get(f"/servers/{server.uuid}", token=ADMIN).json["server"]["fault"]["details"] == "why"


@pytest.mark.parametrize("code", [400, 500, 501, 503])
def test_fault_of_any_code_then_its_details_are_for_admins_alone(client: ApiClient, code: int) -> None:
    fault = Fault(code=code, message="No valid host", details="Traceback at cn7.internal")
    server = client.conductor.add_server(vm_state=VmState.ERROR, fault=fault)
    assert "cn7" not in client.get(f"/servers/{server.uuid}").text
    assert "cn7" in client.get(f"/servers/{server.uuid}", token=ADMIN).text


@pytest.mark.parametrize(("action", "order"), [
    ({"os-stop": None}, "stop"), ({"reboot": {"type": "soft"}}, "soft_reboot"),
    ({"reboot": {"type": "HARD"}}, "hard_reboot")])
def test_action_in_a_right_state_is_ordered(client: ApiClient, server: ServerDetail, action: Any, order: str) -> None:
    answer = client.post(f"/servers/{server.uuid}/action", action)
    assert answer.status_int == 202 and answer.body == b""
    assert [(made.uuid, made.action) for made in client.conductor.asked("order_server")] == [(server.uuid, order)]


def test_action_in_a_wrong_state_is_409_with_the_reason(client: ApiClient, server: ServerDetail) -> None:
    answer = client.post(f"/servers/{server.uuid}/action", {"os-start": None})
    assert answer.status_int == 409
    assert answer.json["conflictingRequest"]["message"] == (
        f"Cannot 'start' instance {server.uuid} while it is in vm_state active")
    assert client.conductor.asked("order_server") == []


def test_action_on_a_server_without_host_is_409(client: ApiClient) -> None:
    server = client.conductor.add_server(host=None)
    assert client.post(f"/servers/{server.uuid}/action", {"os-stop": None}).status_int == 409


def test_action_without_the_role_is_403_and_of_a_stranger_404(client: ApiClient, server: ServerDetail,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/servers/{server.uuid}/action"
    assert client.post(path, {"os-stop": None}, token=STRANGER).status_int == 404
    from nova.web.auth import NoAuth
    original = NoAuth.identify
    monkeypatch.setattr(NoAuth, "identify", lambda self, headers: {**original(self, headers), "roles": ("reader",)})
    refused = client.post(path, {"os-stop": None})
    assert refused.status_int == 403
    assert "os_compute_api:servers:stop" in refused.json["forbidden"]["message"]
    assert client.get(f"/servers/{server.uuid}").status_int == 200


@pytest.mark.parametrize("request_", [("DELETE", "", None), ("POST", "/action", {"os-stop": None}),
                                      ("POST", "/metadata", {"metadata": {"a": "b"}})])
def test_locked_server_is_409_for_its_owner_never_for_an_admin(client: ApiClient, request_: Any) -> None:
    server = client.conductor.add_server(locked=True, locked_by="owner")
    method, tail, body = request_
    assert client.request(method, f"/servers/{server.uuid}{tail}", body).status_int == 409
    assert client.request(method, f"/servers/{server.uuid}{tail}", body, token=ADMIN).status_int < 300


def test_owner_cannot_undo_an_admins_lock(client: ApiClient, server: ServerDetail) -> None:
    path = f"/servers/{server.uuid}/action"
    assert client.post(path, {"lock": None}, token=ADMIN).status_int == 202
    assert client.conductor.servers[server.uuid].locked_by == "admin"
    assert client.post(path, {"unlock": None}).status_int == 403
    assert client.post(path, {"unlock": None}, token=ADMIN).status_int == 202
    assert not client.conductor.servers[server.uuid].locked


def test_lock_value_below_2_73_is_not_looked_at(client: ApiClient, server: ServerDetail) -> None:
    path = f"/servers/{server.uuid}/action"
    assert client.post(path, {"lock": {"locked_reason": 5}}, version="2.72").status_int == 202
    assert client.conductor.servers[server.uuid].locked_reason is None
    client.post(path, {"unlock": None})
    assert client.post(path, {"lock": {"locked_reason": "mine"}}, version="2.73").status_int == 202
    assert client.conductor.servers[server.uuid].locked_reason == "mine"
    assert client.post(path, {"lock": {"colour": "red"}}, version="2.73").status_int == 400


def test_second_lock_of_the_owner_changes_nothing(client: ApiClient) -> None:
    server = client.conductor.add_server(locked=True, locked_by="admin", locked_reason="hands off")
    assert client.post(f"/servers/{server.uuid}/action", {"lock": None}).status_int == 202
    assert client.conductor.servers[server.uuid].locked_by == "admin"


@pytest.mark.parametrize(("length", "output"), [(None, "one\ntwo\nthree\n"), (-1, "one\ntwo\nthree\n"),
                                                ("1", "three\n"), (2, "two\nthree\n")])
def test_console_output_is_its_last_lines_without_control_characters(
        client: ApiClient, server: ServerDetail, length: Any, output: str) -> None:
    client.conductor.console = "on\x1be\ntwo\x00\nthree\n"
    answer = client.post(f"/servers/{server.uuid}/action", {"os-getConsoleOutput": {"length": length}})
    assert answer.status_int == 200
    assert answer.json == {"output": output}


def test_delete_is_ordered_and_204(client: ApiClient, server: ServerDetail) -> None:
    answer = client.delete(f"/servers/{server.uuid}")
    assert answer.status_int == 204 and answer.body == b""
    assert client.conductor.asked("order_server")[0].action == "delete"
    assert client.get(f"/servers/{server.uuid}").status_int == 404


def test_update_writes_only_what_was_given(client: ApiClient, server: ServerDetail) -> None:
    answer = client.put(f"/servers/{server.uuid}", {"server": {"description": None, "accessIPv4": "192.0.2.1"}},
                        version="2.19")
    assert answer.status_int == 200
    assert client.conductor.asked("update_server")[0].fields == ("description", "access_ip_v4")
    assert answer.json["server"]["accessIPv4"] == "192.0.2.1"
    assert "key_name" not in answer.json["server"]
    assert "key_name" in client.put(f"/servers/{server.uuid}", {"server": {}}, version="2.75").json["server"]


@pytest.mark.parametrize(("pinned", "asked", "status"), [
    (None, "az1", 200), (None, "az2", 409), ("az1", None, 200), ("az1", "az1", 200), ("az2", "az1", 409)])
def test_pin_is_taken_away_or_set_to_where_the_server_is(client: ApiClient, pinned: Any, asked: Any,
                                                        status: int) -> None:
    server = client.conductor.add_server(availability_zone="az1", pinned_availability_zone=pinned)
    answer = client.put(f"/servers/{server.uuid}", {"server": {"pinned_availability_zone": asked}}, version="2.104")
    assert answer.status_int == status
    assert client.conductor.servers[server.uuid].pinned_availability_zone == (asked if status == 200 else pinned)


def test_metadata_all_verbs(client: ApiClient) -> None:
    server = client.conductor.add_server(metadata={"a": "1"})
    path = f"/servers/{server.uuid}/metadata"
    assert client.get(path).json == {"metadata": {"a": "1"}}
    assert client.post(path, {"metadata": {"b": "2"}}).json == {"metadata": {"a": "1", "b": "2"}}
    assert client.put(path, {"metadata": {"c": "3"}}).json == {"metadata": {"c": "3"}}
    assert client.put(f"{path}/c", {"meta": {"c": "4"}}).json == {"meta": {"c": "4"}}
    assert client.put(f"{path}/c", {"meta": {"d": "4"}}).status_int == 400
    assert client.get(f"{path}/c").json == {"meta": {"c": "4"}}
    assert client.get(f"{path}/x").status_int == 404
    assert client.delete(f"{path}/x").status_int == 404
    assert client.delete(f"{path}/c").status_int == 204
    assert client.get(path).json == {"metadata": {}}


def test_metadata_of_a_building_server_cannot_change(client: ApiClient) -> None:
    server = client.conductor.add_server(vm_state=VmState.BUILDING)
    answer = client.post(f"/servers/{server.uuid}/metadata", {"metadata": {"a": "b"}})
    assert answer.status_int == 409
    assert "building" in answer.json["conflictingRequest"]["message"]


def test_ips_of_an_unknown_network_is_404(client: ApiClient, server: ServerDetail) -> None:
    assert client.get(f"/servers/{server.uuid}/ips").json == {"addresses": {}}
    assert client.get(f"/servers/{server.uuid}/ips/private").status_int == 404


def test_old_volumes_boot_path_serves_servers_up_to_2_102(client: ApiClient, server: ServerDetail) -> None:
    assert client.get(f"/os-volumes_boot/{server.uuid}", version="2.102").status_int == 200
    assert client.post(f"/os-volumes_boot/{server.uuid}/action", {"os-stop": None}, version="2.102").status_int == 202
    assert client.get(f"/os-volumes_boot/{server.uuid}", version="2.103").status_int == 404
