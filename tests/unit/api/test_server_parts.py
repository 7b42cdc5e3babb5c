"""Tags, password, diagnostics, topology, reset and external events over the API."""

from __future__ import annotations

import pytest

from nova.model.server.diagnostics import CpuUse, Diagnostics, DiskUse, NicUse
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.states import PowerState, TaskState, VmState
from tests.fakes.api import ADMIN, DEMO, READER, ApiClient

UUID = "11111111-2222-4333-8444-555555555555"
OTHERS = "22222222-2222-4333-8444-555555555555"
NOBODY = "33333333-2222-4333-8444-555555555555"
TAGS = f"/servers/{UUID}/tags"


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO, version="2.95")
    made.conductor.add_server(uuid=UUID, tags=("blue",))
    made.conductor.add_server(uuid=OTHERS, project_id="other")
    return made


def test_server_when_only_a_part_of_it_is_shown_then_the_network_service_is_not_asked(client):
    for path, as_kept in (("/tags", True), ("/metadata", True), ("", False)):
        client.get(f"/servers/{UUID}{path}")
        assert client.conductor.asked("get_server")[-1].as_kept == as_kept


# tags

def test_putting_a_tag_is_201_with_its_location_and_204_when_it_is_there(client):
    answer = client.request("PUT", f"{TAGS}/light%20green")
    assert answer.status_int == 201 and answer.body == b""
    assert answer.headers["Location"] == f"http://localhost/v2.1/servers/{UUID}/tags/light%20green"
    answer = client.request("PUT", f"{TAGS}/light%20green")
    assert answer.status_int == 204 and "Location" not in answer.headers
    assert client.get(TAGS).json == {"tags": ["blue", "light green"]}


def test_a_tag_that_is_not_there_is_404(client):
    assert client.get(f"{TAGS}/blue").status_int == 204
    assert client.get(f"{TAGS}/Blue").status_int == 404
    assert client.delete(f"{TAGS}/red").status_int == 404
    assert client.delete(f"{TAGS}/blue").status_int == 204
    assert client.get(f"{TAGS}/blue").status_int == 404


@pytest.mark.parametrize("tag", ["a,b", "x" * 61, "%2C"])
def test_putting_a_tag_that_can_be_none_is_400(client, tag):
    assert client.request("PUT", f"{TAGS}/{tag}").status_int == 400
    assert client.get(TAGS).json == {"tags": ["blue"]}


@pytest.mark.parametrize("tags", [["a,b"], ["a/b"], ["x" * 61], [""], [str(n) for n in range(51)], "a", [1]])
def test_replacing_by_what_can_be_no_tags_is_400(client, tags):
    assert client.put(TAGS, {"tags": tags}).status_int == 400


def test_replacing_takes_each_tag_once_and_all_can_go(client):
    assert client.put(TAGS, {"tags": ["b", "a", "b"]}).json == {"tags": ["a", "b"]}
    assert client.delete(TAGS).status_int == 204
    assert client.get(TAGS).json == {"tags": []}


@pytest.mark.parametrize("state", [VmState.BUILDING, VmState.ERROR, VmState.RESCUED, VmState.SHELVED])
def test_changing_tags_in_another_state_is_409_that_names_it(client, state):
    server = client.conductor.add_server(vm_state=state, tags=("t",))
    path = f"/servers/{server.uuid}/tags"
    for answer in (client.put(path, {"tags": []}), client.delete(path), client.request("PUT", f"{path}/a"),
                   client.delete(f"{path}/t")):
        assert answer.status_int == 409 and state.value in answer.json["conflictingRequest"]["message"]
    assert client.get(path).json == {"tags": ["t"]}


def test_changing_tags_of_a_locked_server_is_fine(client):
    server = client.conductor.add_server(locked=True, locked_by="admin")
    assert client.put(f"/servers/{server.uuid}/tags", {"tags": ["a"]}).status_int == 200


def test_tags_below_their_version_are_404_and_another_projects_too(client):
    assert client.get(TAGS, version="2.25").status_int == 404
    assert client.get(f"/servers/{OTHERS}/tags").status_int == 404
    assert client.put(f"/servers/{OTHERS}/tags", {"tags": []}).status_int == 404


# the password

def test_password_is_shown_and_cleared(client):
    client.conductor.passwords[UUID] = "ENCRYPTED"
    path = f"/servers/{UUID}/os-server-password"
    assert client.get(path).json == {"password": "ENCRYPTED"}
    assert client.delete(path).status_int == 204
    assert client.get(path).json == {"password": ""}
    assert client.get(f"/servers/{OTHERS}/os-server-password").status_int == 404


# diagnostics

REPORTED = Diagnostics(
    power_state=PowerState.PAUSED, driver="libvirt", cpus=(CpuUse(id=0, time_ns=7), CpuUse(id=1)),
    nics=(NicUse(device="tap1", mac="fa:16:3e:00:00:01", rx_octets=1, tx_packets=2),),
    disks=(DiskUse(device="vda", read_bytes=3, write_requests=4),), memory_max_mb=512, memory_used_mb=100)


def test_diagnostics_in_the_standard_form(client):
    client.conductor.given(get_diagnostics=REPORTED)
    found = client.get(f"/servers/{UUID}/diagnostics", token=ADMIN).json
    assert found["state"] == "paused" and found["num_cpus"] == 2 and found["num_nics"] == found["num_disks"] == 1
    assert found["memory_details"] == {"maximum": 512, "used": 100}
    assert found["cpu_details"][1] == {"id": 1, "time": None, "utilisation": None}
    assert found["nic_details"][0]["mac_address"] == "fa:16:3e:00:00:01" and found["nic_details"][0]["tx_packets"] == 2


def test_diagnostics_in_the_old_form_are_flat_and_name_the_devices(client):
    client.conductor.given(get_diagnostics=REPORTED)
    found = client.get(f"/servers/{UUID}/diagnostics", token=ADMIN, version="2.47").json
    assert found["cpu0_time"] == 7 and found["cpu1_time"] == -1 and found["vda_read"] == 3
    assert found["vda_errors"] == -1 and found["tap1_rx"] == 1 and found["memory"] == 512 * 1024
    assert all(isinstance(number, int) for number in found.values())


def test_diagnostics_are_for_admins_and_need_a_host(client):
    assert client.get(f"/servers/{UUID}/diagnostics").status_int == 403
    nowhere = client.conductor.add_server(host=None)
    assert client.get(f"/servers/{nowhere.uuid}/diagnostics", token=ADMIN).status_int == 409
    assert client.get(f"/servers/{NOBODY}/diagnostics", token=ADMIN).status_int == 404


# topology

def test_topology_without_numa_is_empty(client):
    assert client.get(f"/servers/{UUID}/topology").json == {"nodes": [], "pagesize_kb": None}
    assert client.get(f"/servers/{OTHERS}/topology").status_int == 404


# os-resetState

def reset(client: ApiClient, uuid: str, state: object, token: str = ADMIN) -> int:
    return client.post(f"/servers/{uuid}/action", {"os-resetState": {"state": state}}, token=token).status_int


def test_reset_in_any_state_and_though_locked(client):
    server = client.conductor.add_server(vm_state=VmState.BUILDING, task_state=TaskState.SPAWNING, locked=True,
                                         locked_by="admin", launched_at=None, host=None)
    assert reset(client, server.uuid, "active") == 202
    assert [one.state for one in client.conductor.asked("reset_state")] == ["active"]


@pytest.mark.parametrize("state", ["Active", "deleted", "", None, 1])
def test_reset_to_another_state_is_400(client, state):
    assert reset(client, UUID, state) == 400


def test_reset_is_for_admins_and_of_known_servers(client):
    assert reset(client, UUID, "error", token=DEMO) == 403
    assert reset(client, NOBODY, "error") == 404
    assert client.conductor.asked("reset_state") == []


# external events

def events(client: ApiClient, *items: dict[str, str], **at: str):
    return client.post("/os-server-external-events", {"events": list(items)}, **{"token": ADMIN, **at})


def test_events_are_all_accepted_then_200_and_shown_as_sent(client):
    answer = events(client, {"name": "network-changed", "server_uuid": UUID},
                    {"name": "network-vif-plugged", "server_uuid": UUID, "tag": "port", "status": "failed"})
    assert answer.status_int == 200
    assert answer.json["events"] == [
        {"name": "network-changed", "server_uuid": UUID, "status": "completed", "code": 200},
        {"name": "network-vif-plugged", "server_uuid": UUID, "status": "failed", "tag": "port", "code": 200}]


def test_events_when_one_fails_then_207_and_each_has_its_code(client):
    client.conductor.given(external_events=(200, 404))
    answer = events(client, {"name": "network-changed", "server_uuid": UUID},
                    {"name": "network-changed", "server_uuid": NOBODY, "tag": "lost"})
    assert answer.status_int == 207 and [one["code"] for one in answer.json["events"]] == [200, 404]


@pytest.mark.parametrize(("version", "name"), [
    ("2.50", "volume-extended"), ("2.75", "power-update"), ("2.81", "accelerator-request-bound"),
    ("2.92", "volume-reimaged"), ("2.95", "test-event")])
def test_events_of_a_name_that_the_version_does_not_know_are_400(client, version, name):
    event = {"name": name, "server_uuid": UUID, "tag": "t"}
    assert events(client, event, version=version).status_int == 400
    if name != "test-event":
        assert events(client, event, version=f"2.{int(version[2:]) + 1}").status_int == 200


@pytest.mark.parametrize(("version", "event"), [
    ("2.51", {"name": "volume-extended", "tag": NOBODY}), ("2.51", {"name": "volume-extended"}),
    ("2.93", {"name": "volume-reimaged", "tag": NOBODY, "status": "failed"})])
def test_events_of_volumes_are_passed_on_as_they_came_and_whether_a_tag_is_missing_is_told_of_each(
        client, version, event):
    code = 200 if "tag" in event else 400
    client.conductor.given(external_events=(code,))
    answer = events(client, {**event, "server_uuid": UUID}, version=version)
    assert client.conductor.asked("external_events") == [(ExternalEvent(**event, server_uuid=UUID),)]
    assert (answer.status_int, answer.json["events"][0]["code"]) == (200 if code == 200 else 207, code)


@pytest.mark.parametrize("item", [
    {"name": "network-changed"}, {"server_uuid": UUID}, {"name": "network-changed", "server_uuid": "x"},
    {"name": "network-changed", "server_uuid": UUID, "status": "done"},
    {"name": "network-changed", "server_uuid": UUID, "tag": "x" * 256},
    {"name": "network-changed", "server_uuid": UUID, "colour": "blue"}])
def test_events_that_are_malformed_are_400(client, item):
    assert events(client, item).status_int == 400 and client.conductor.asked("external_events") == []


def test_events_by_a_project_member_are_403_and_no_events_are_400(client):
    assert events(client, {"name": "network-changed", "server_uuid": UUID}, token=READER).status_int == 403
    assert events(client).status_int == 400
