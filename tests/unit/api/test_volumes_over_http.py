"""What old versions passed on to the volume service, and the snapshots that it asks for."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from nova import errors
from nova.model.volumes import (
    NewAssistedSnapshot,
    NewVolume,
    NewVolumeSnapshot,
    OldAssistedSnapshot,
    VolumeQuery,
    VolumeUse,
)
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration

NEW = "aaaaaaaa-199f-48c0-816c-13e38010b442"
SERVER = "11111111-2222-4333-8444-555555555555"
ASSISTED = "/os-assisted-volume-snapshots"
INFO = {"snapshot_id": "s1", "type": "qcow2", "new_file": "volume-1.s1"}


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


# -- volumes

def test_volume_that_a_server_has_is_shown_with_it_and_without_what_is_not_known(client: ApiClient) -> None:
    used = client.conductor.add_volume(attachments=(VolumeUse(server_id=SERVER, device="/dev/vdb"),
                                                    VolumeUse(server_id=NEW)))
    bare = client.conductor.add_volume(id=NEW, attachments=(VolumeUse(server_id=SERVER),), availability_zone="",
                                       volume_type="", description="text")
    shown, other = (client.get(f"/os-volumes/{one.id}").json["volume"] for one in (used, bare))
    attachment = {"id": used.id, "volumeId": used.id, "serverId": SERVER, "device": "/dev/vdb"}
    assert shown == {"id": used.id, "status": "available", "size": 1, "availabilityZone": "nova",
                     "createdAt": "2026-01-02T03:04:05.678901", "attachments": [attachment], "displayName": "data",
                     "displayDescription": None, "volumeType": "lvm", "snapshotId": None, "metadata": {}}
    assert "device" not in other["attachments"][0] and other["displayDescription"] == "text"
    assert other["availabilityZone"] is None and other["volumeType"] is None


def test_volume_that_nobody_has_is_shown_with_one_empty_attachment(client: ApiClient) -> None:
    client.conductor.add_volume()
    assert client.get("/os-volumes").json["volumes"][0]["attachments"] == [{}]


@pytest.mark.parametrize("path", ["/os-volumes", "/os-volumes/detail", "/os-snapshots", "/os-snapshots/detail"])
def test_lists_come_in_pages_that_the_operator_bounds(path: str) -> None:
    client = ApiClient(conf=configuration(max_limit=2))
    for number in range(3):
        client.conductor.add_volume()
        client.conductor.add_volume_snapshot(name=str(number))
    key = path.split("/")[1].removeprefix("os-")
    assert [len(client.get(f"{path}?{query}").json[key]) for query in ("", "limit=1", "offset=2", "limit=9")] == [
        2, 1, 1, 2]
    asked = client.conductor.asked("list_volumes", "list_volume_snapshots")
    assert asked[2:] == [VolumeQuery(limit=2, offset=2), VolumeQuery(limit=2)]
    assert client.get(f"{path}?limit=x").status_int == 400
    assert client.get(f"{path}?colour=blue").status_int == 200


def test_create_when_all_is_said_then_the_conductor_hears_it_and_the_answer_says_where_it_is(client: ApiClient) -> None:
    snapshot = client.conductor.add_volume_snapshot()
    answer = client.post("/os-volumes", {"volume": {
        "size": "5", "display_name": "n", "display_description": "d", "snapshot_id": snapshot.id, "volume_type": "t",
        "availability_zone": "z", "metadata": {"k": "v"}}})
    assert answer.status_int == 200
    assert answer.headers["Location"] == f"http://localhost/v2.1/os-volumes/{answer.json['volume']['id']}"
    assert client.conductor.asked("create_volume") == [NewVolume(
        size_gb=5, name="n", description="d", snapshot_id=snapshot.id, volume_type="t", availability_zone="z",
        metadata={"k": "v"})]


@pytest.mark.parametrize("volume", [{}, {"size": 0}, {"size": "big"}, {"size": 1, "metadata": {"k": 1}},
                                    {"size": 1, "metadata": []}, {"size": 1, "imageRef": NEW}, {"size": 1,
                                                                                               "display_name": None}])
def test_create_when_the_body_is_bad_then_it_is_400_and_nothing_is_asked(client: ApiClient,
                                                                         volume: dict[str, Any]) -> None:
    assert client.post("/os-volumes", {"volume": volume}).status_int == 400
    assert client.conductor.asked("create_volume") == []


@pytest.mark.parametrize(("error", "code"), [
    (errors.OverQuota("full"), 403), (errors.Invalid("no such type"), 400), (errors.NotFound("no such snapshot"), 404),
    (errors.Unavailable("Cinder does not answer"), 503)])
def test_volume_service_when_it_refuses_then_the_caller_has_its_error(client: ApiClient, error: errors.NovaError,
                                                                      code: int) -> None:
    client.conductor.given(**dict.fromkeys(("create_volume", "create_volume_snapshot", "list_volumes", "delete_volume",
                                            "delete_volume_snapshot", "list_volume_snapshots"), error))
    found = [client.post("/os-volumes", {"volume": {"size": 1}}), client.get("/os-volumes"),
             client.delete(f"/os-volumes/{NEW}"), client.get("/os-snapshots"), client.delete(f"/os-snapshots/{NEW}"),
             client.post("/os-snapshots", {"snapshot": {"volume_id": NEW}})]
    assert [answer.status_int for answer in found] == [code] * 6


@pytest.mark.parametrize("id", [NEW, "x", "..%2f..%2fv3"])
def test_one_that_is_not_there_is_404_and_a_strange_id_is_nobodys(client: ApiClient, id: str) -> None:
    for path in (f"/os-volumes/{id}", f"/os-snapshots/{id}"):
        assert [client.get(path).status_int, client.delete(path).status_int] == [404, 404]
    if id != NEW:
        assert client.post("/os-snapshots", {"snapshot": {"volume_id": id}}).status_int == 404
        assert client.conductor.calls == []


def test_snapshot_when_it_is_made_shown_and_deleted_then_it_comes_and_goes(client: ApiClient) -> None:
    volume = client.conductor.add_volume(status="in-use")
    body: dict[str, Any] = {"volume_id": volume.id, "display_name": "n", "display_description": "d"}
    assert client.post("/os-snapshots", {"snapshot": body}).status_int == 400
    made = client.post("/os-snapshots", {"snapshot": {**body, "force": "true"}})
    assert client.conductor.asked("create_volume_snapshot")[1] == NewVolumeSnapshot(
        volume_id=volume.id, name="n", description="d", force=True)
    path = f"/os-snapshots/{made.json['snapshot']['id']}"
    assert (made.status_int, client.get(path).json) == (200, made.json)
    assert [client.delete(path).status_int, client.get(path).status_int] == [202, 404]


# -- snapshots that the volume service asks for

def test_assisted_snapshot_when_it_is_asked_for_then_it_is_begun(client: ApiClient) -> None:
    answer = client.post(ASSISTED, {"snapshot": {"volume_id": NEW, "create_info": {**INFO, "id": SERVER}}}, token=ADMIN)
    assert (answer.status_int, answer.json) == (200, {"snapshot": {"id": SERVER, "volumeId": NEW}})
    assert client.conductor.asked("create_assisted_snapshot") == [
        NewAssistedSnapshot(volume_id=NEW, snapshot_id="s1", new_file="volume-1.s1", id=SERVER)]
    plain = client.post(ASSISTED, {"snapshot": {"volume_id": NEW, "create_info": INFO}}, token=ADMIN)
    assert plain.json["snapshot"]["id"] is None


@pytest.mark.parametrize("changed", [
    {"type": "raw"}, {"new_file": ""}, {"new_file": "../x"}, {"new_file": "/etc/passwd"}, {"new_file": ".."},
    {"new_file": "a\0"}, {"snapshot_id": ""}, {"stranger": 1}])
def test_assisted_snapshot_when_its_body_is_bad_then_it_is_400_and_nothing_is_asked(client: ApiClient,
                                                                                    changed: dict[str, Any]) -> None:
    body = {"snapshot": {"volume_id": NEW, "create_info": {**INFO, **changed}}}
    assert client.post(ASSISTED, body, token=ADMIN).status_int == 400
    assert client.conductor.asked("create_assisted_snapshot") == []


def delete(client: ApiClient, info: Any, **at: str) -> int:
    query = "" if info is None else f"?delete_info={quote(info if isinstance(info, str) else json.dumps(info))}"
    return client.delete(f"{ASSISTED}/s1{query}", **{"token": ADMIN, **at}).status_int


@pytest.mark.parametrize(("files", "wanted"), [
    ({}, {}), ({"file_to_merge": None, "merge_target_file": None}, {}),
    ({"file_to_merge": "a"}, {"file_to_merge": "a"}),
    ({"file_to_merge": "a", "merge_target_file": "b", "more": 1}, {"file_to_merge": "a", "merge_target_file": "b"})])
def test_assisted_snapshot_when_it_shall_go_then_the_conductor_hears_which_files(
        client: ApiClient, files: dict[str, Any], wanted: dict[str, str]) -> None:
    assert delete(client, {"volume_id": NEW, "type": "qcow2", **files}) == 204
    assert client.conductor.asked("delete_assisted_snapshot") == [
        OldAssistedSnapshot(snapshot_id="s1", volume_id=NEW, **wanted)]


@pytest.mark.parametrize("info", [
    None, "", "x", "[]", "{}", "null", {"volume_id": 5}, {"volume_id": NEW, "type": "raw"},
    {"volume_id": NEW, "file_to_merge": "../a"}, {"volume_id": NEW, "merge_target_file": "/a"},
    {"volume_id": NEW, "file_to_merge": ["a"]}])
def test_assisted_snapshot_when_what_shall_go_cannot_be_read_then_it_is_400(client: ApiClient, info: Any) -> None:
    assert delete(client, info) == 400
    assert client.conductor.asked("delete_assisted_snapshot") == []


def test_assisted_snapshots_are_the_volume_services_and_refused_as_the_conductor_says(client: ApiClient) -> None:
    body = {"snapshot": {"volume_id": NEW, "create_info": INFO}}
    assert client.post(ASSISTED, body).status_int == 403
    assert delete(client, {"volume_id": NEW}, token=DEMO) == 403
    client.conductor.given(create_assisted_snapshot=errors.Invalid("busy"),
                           delete_assisted_snapshot=errors.NotFound("no such snapshot"))
    assert client.post(ASSISTED, body, token=ADMIN).status_int == 400
    assert delete(client, {"volume_id": NEW}) == 404
    assert delete(client, {"volume_id": NEW}, version="2.75") == 404
    assert client.delete(f"{ASSISTED}/s1?colour=blue", token=ADMIN, version="2.75").status_int == 400
