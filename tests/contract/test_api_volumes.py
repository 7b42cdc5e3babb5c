"""What we answer about volumes passes the contract's rows at every version, and has the samples' fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova import errors
from nova.model.server.states import VmState
from nova.model.volumes import AttachVolume, VolumeUse
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient

pytestmark = rows.needs_contract

UUID = "11111111-2222-4333-8444-555555555555"
NOTHING = "00000000-0000-4000-8000-00000000ffff"
NEW = "aaaaaaaa-199f-48c0-816c-13e38010b442"
ONE = f"/servers/{UUID}/os-volume_attachments"
UNDER = "/servers/{server_id}/os-volume_attachments"
LIST, SHOW, ATTACH, UPDATE, DETACH = (f"GET {UNDER}", f"GET {UNDER}/{{volume_id}}", f"POST {UNDER}",
                                      f"PUT {UNDER}/{{volume_id}}", f"DELETE {UNDER}/{{volume_id}}")
PROXIES = ("GET /os-volumes", "GET /os-volumes/detail", "GET /os-volumes/{volume_id}", "GET /os-snapshots",
           "GET /os-snapshots/detail", "GET /os-snapshots/{snapshot_id}")
POSTS: dict[str, Any] = {ATTACH: {"volumeAttachment": {"volumeId": NEW}}, "POST /os-volumes": {"volume": {"size": 1}},
                         "POST /os-snapshots": {"snapshot": {"volume_id": NEW}}}


#: The beginning of a sample's name -> whose it is.
SAMPLES = {"attach-volume-to-server": ATTACH, "list-volume-attachments": LIST, "volume-attachment-detail": SHOW,
           "update-volume": UPDATE, "os-volumes-post": "POST /os-volumes", "os-volumes-index": "GET /os-volumes",
           "os-volumes-detail": "GET /os-volumes/detail", "os-volumes-get": "GET /os-volumes/{volume_id}",
           "snapshot-create": "POST /os-snapshots", "snapshots-list": "GET /os-snapshots",
           "snapshots-detail": "GET /os-snapshots/detail", "snapshots-show": "GET /os-snapshots/{snapshot_id}"}


def published(ending: str) -> list[Any]:
    """(id, version, content) of every sample whose name ends so, whether or not its operation names it."""
    found = []
    for folder in ("os-volume_attachments", "os-volumes", "os-snapshots"):
        for path in sorted((rows.SHARED / "samples" / folder).rglob(f"*-{ending}.json")):
            [id] = [id for stem, id in SAMPLES.items() if path.name.startswith(stem)]
            found.append((id, str(path.relative_to(rows.SHARED / "samples")), json.loads(path.read_text())))
    return [pytest.param(id, rows.sample_version(name), content, id=name) for id, name, content in found]


def servers_with_devices() -> list[Any]:
    """Samples of creates that have block devices."""
    paths = sorted((rows.SHARED / "samples" / "servers").rglob("server-create-req.json"))
    found = [(f"{path.parent.name}/{path.name}", json.loads(path.read_text())) for path in paths]
    return [pytest.param("POST /servers", rows.sample_version(f"/{name}"), content, id=name)
            for name, content in found if "block_device_mapping_v2" in content["server"]]


@pytest.fixture
def client() -> ApiClient:
    """A server with two volumes; a volume that it has, one that nobody has, and a snapshot."""
    made = ApiClient(token=ADMIN)
    made.conductor.add_server(uuid=UUID, project_id="demo", user_id="demo")
    for number in range(2):
        device = made.conductor.add_device(UUID, tag="foo" if number else None)
        use = VolumeUse(server_id=UUID, attachment_id=device.attachment_id, device="/dev/vdb" if number else "")
        made.conductor.add_volume(id=device.volume_id, attachments=(use,), status="in-use")
    made.conductor.add_volume(id=NEW, availability_zone="", volume_type="", metadata={"a": "b"})
    made.conductor.add_volume_snapshot(volume_id=NEW)
    return made


def volume(client: ApiClient, number: int = 0) -> str:
    return client.conductor.devices[UUID][number].volume_id


def path_of(id: str, client: ApiClient) -> str:
    snapshot = next(iter(client.conductor.volume_snapshots))
    return (id.partition(" ")[2].replace("{server_id}", UUID).replace("{volume_id}", volume(client, 1))
            .replace("{snapshot_id}", snapshot))


@pytest.mark.parametrize("id", [LIST, SHOW, *PROXIES])
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    answers.assert_reads(id, client, path_of(id, client))


@pytest.mark.parametrize(("id", "version", "content"), published("resp"))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    method, path = id.partition(" ")[0], path_of(id, client)
    answer = client.request(method, path, POSTS.get(id), version=f"2.{version}")
    new = id == "POST /os-volumes"  # what is new is attached nowhere
    assert {field for field in answers.fields(content) if not (new and "attachments[]" in field)} == answers.fields(
        answer.json)


@pytest.mark.parametrize(("id", "version", "content"), [*published("req"), *servers_with_devices()])
def test_published_request_is_taken(id: str, version: int, content: Any, client: ApiClient) -> None:
    path, asked = path_of(id, client), content.get("volumeAttachment", {})
    if "delete_on_termination" in asked and id == UPDATE:  # it repeats what the attachment is
        server = client.conductor.add_server(uuid=asked.get("serverId", UUID)).uuid
        client.conductor.add_device(server, volume_id=asked["volumeId"], device_name=asked.get("device"),
                                    tag=asked.get("tag"))
        path = f"/servers/{server}/os-volume_attachments/{asked['volumeId']}"
    answers.assert_answer(id, version, client.request(id.partition(" ")[0], path, content, version=f"2.{version}"))


def test_answers_to_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        at: dict[str, Any] = {"version": f"2.{version}"}
        answers.assert_answer(ATTACH, version, client.post(ONE, {"volumeAttachment": {"volumeId": NEW}}, **at))
        body = {"volumeAttachment": {"volumeId": NEW}}
        answers.assert_answer(UPDATE, version, client.put(f"{ONE}/{NEW}", body, **at))
        answers.assert_answer(DETACH, version, client.delete(f"{ONE}/{NEW}", **at))
    assert [wait for _, _, wait in client.conductor.asked("attach_volume")] == [True] * 100 + [False] * 4


@pytest.mark.parametrize("resource", ["volumes", "snapshots"])
def test_answers_to_writes_of_proxies_pass_the_contract_up_to_2_35(resource: str, client: ApiClient) -> None:
    make, drop = f"POST /os-{resource}", f"DELETE /os-{resource}/{{{resource[:-1]}_id}}"
    body = {"volumes": {"volume": {"size": "2", "display_name": "d", "metadata": {"k": "v"}}},
            "snapshots": {"snapshot": {"volume_id": NEW}}}[resource]
    for version in answers.span(make):
        made = client.post(f"/os-{resource}", body, version=f"2.{version}")
        answers.assert_answer(make, version, made)
        answers.assert_answer(drop, version, client.delete(
            f"/os-{resource}/{made.json[resource[:-1]]['id']}", version=f"2.{version}"))
    for answer in (client.get(f"/os-{resource}", version="2.36"), client.post(f"/os-{resource}", body, version="2.36"),
                   client.delete(f"/os-{resource}/{NEW}", version="2.36")):
        assert answer.status_int == 404


def test_assisted_snapshots_at_every_version_pass_the_contract(client: ApiClient) -> None:
    make, drop = "POST /os-assisted-volume-snapshots", "DELETE /os-assisted-volume-snapshots/{snapshot_id}"
    info = {"snapshot_id": NEW, "type": "qcow2", "new_file": "volume-x.snap"}
    for version in answers.span(make):
        made = client.post("/os-assisted-volume-snapshots", {"snapshot": {"volume_id": NEW, "create_info": info}},
                           version=f"2.{version}")
        answers.assert_answer(make, version, made)
        gone = client.delete(f'/os-assisted-volume-snapshots/{NEW}?delete_info={{"volume_id":"{NEW}"}}',
                             version=f"2.{version}")
        answers.assert_answer(drop, version, gone)


# -- a server's volumes

def test_list_when_it_has_a_limit_and_an_offset_then_it_is_a_page(client: ApiClient) -> None:
    def shown(query: str, **at: str) -> list[str]:
        return [one["volumeId"] for one in client.get(f"{ONE}?{query}", **at).json["volumeAttachments"]]
    both = [volume(client, 0), volume(client, 1)]
    assert shown("") == both and shown("limit=1") == both[:1] and shown("offset=1") == both[1:]
    assert shown("limit=5&offset=2") == [] == shown("limit=0")
    assert shown("colour=blue", version="2.74") == both
    assert client.get(f"{ONE}?colour=blue", version="2.75").status_int == 400
    assert client.get(f"{ONE}?limit=x").status_int == 400


@pytest.mark.parametrize("version", ["2.1", "2.88", "2.89"])
def test_device_that_the_volume_service_does_not_know_yet_is_not_shown(client: ApiClient, version: str) -> None:
    pending = client.conductor.add_device(UUID, attachment_id="").volume_id
    assert len(client.get(ONE, version=version).json["volumeAttachments"]) == 2
    assert client.get(f"{ONE}/{pending}", version=version).status_int == 404
    assert client.put(f"{ONE}/{pending}", {"volumeAttachment": {"volumeId": pending}}, version="2.85").status_int == 404


def test_ids_of_an_attachment_from_2_89_are_both_its_own(client: ApiClient) -> None:
    device = client.conductor.devices[UUID][0]
    shown = client.get(f"{ONE}/{device.volume_id.upper()}", version="2.89").json["volumeAttachment"]
    assert (shown["attachment_id"], shown["bdm_uuid"]) == (device.attachment_id, device.id) and "id" not in shown
    assert client.get(f"{ONE}/{device.volume_id}").json["volumeAttachment"]["id"] == device.volume_id


@pytest.mark.parametrize("path", [f"{ONE}/{NOTHING}", f"{ONE}/x", f"/servers/{NOTHING}/os-volume_attachments",
                                  f"/servers/{NOTHING}/os-volume_attachments/{NEW}"])
def test_one_that_is_not_there_is_404_whoever_asks_and_whatever_is_done(client: ApiClient, path: str) -> None:
    methods = ["GET"] if path.endswith("attachments") else ["GET", "DELETE"]
    assert [client.request(method, path).status_int for method in methods] == [404] * len(methods)


def test_servers_of_other_projects_have_no_volumes_to_see(client: ApiClient) -> None:
    stranger = {"token": "other:other"}
    body = {"volumeAttachment": {"volumeId": NEW}}
    found = [client.get(ONE, **stranger), client.post(ONE, body, **stranger), client.delete(f"{ONE}/{NEW}", **stranger),
             client.put(f"{ONE}/{NEW}", body, **stranger)]
    assert [answer.status_int for answer in found] == [404] * 4
    assert client.conductor.asked("list_server_volumes", "attach_volume", "detach_volume", "swap_volume") == []


@pytest.mark.parametrize(("version", "more", "wanted"), [
    ("2.1", {}, {}), ("2.1", {"device": "/dev/vdc"}, {"device": "/dev/vdc"}), ("2.1", {"device": None}, {}),
    ("2.49", {"tag": "a"}, {"tag": "a"}), ("2.60", {}, {"multiattach": True}),
    ("2.79", {"delete_on_termination": "true"}, {"delete_on_termination": True, "multiattach": True})])
def test_attach_when_it_is_asked_for_then_the_conductor_hears_just_that(
        client: ApiClient, version: str, more: dict[str, Any], wanted: dict[str, Any]) -> None:
    answer = client.post(ONE, {"volumeAttachment": {"volumeId": NEW.upper(), **more}}, version=version, token=DEMO)
    assert answer.status_int == 200
    assert client.conductor.asked("attach_volume") == [(UUID, AttachVolume(volume_id=NEW, **wanted), True)]


@pytest.mark.parametrize(("version", "body"), [
    ("2.1", {}), ("2.1", {"volumeId": "x"}), ("2.1", {"volumeId": NEW, "device": "vdb"}),
    ("2.1", {"volumeId": NEW, "device": "/dev/"}), ("2.48", {"volumeId": NEW, "tag": "a"}),
    ("2.49", {"volumeId": NEW, "tag": "a,b"}), ("2.78", {"volumeId": NEW, "delete_on_termination": True}),
    ("2.79", {"volumeId": NEW, "delete_on_termination": "maybe"}), ("2.104", {"volumeId": NEW, "bdm_uuid": NEW})])
def test_attach_when_the_body_is_bad_then_it_is_400_and_nothing_is_asked(client: ApiClient, version: str,
                                                                         body: dict[str, Any]) -> None:
    assert client.post(ONE, {"volumeAttachment": body}, version=version).status_int == 400
    assert client.conductor.asked("attach_volume") == []


@pytest.mark.parametrize(("error", "code"), [
    (errors.Invalid("in use"), 400), (errors.NotFound("no such volume"), 404), (errors.Conflict("it is busy"), 409),
    (errors.Forbidden("too many disks"), 403), (errors.Unavailable("Cinder does not answer"), 503)])
@pytest.mark.parametrize("version", ["2.100", "2.101"])
def test_attach_when_it_is_refused_then_the_caller_has_the_error(client: ApiClient, error: errors.NovaError, code: int,
                                                                 version: str) -> None:
    client.conductor.given(attach_volume=error)
    assert client.post(ONE, {"volumeAttachment": {"volumeId": NEW}}, version=version).status_int == code


def test_attach_of_a_tagged_volume_when_the_server_is_offloaded_then_it_is_400(client: ApiClient) -> None:
    client.conductor.add_server(uuid=UUID, vm_state=VmState.SHELVED_OFFLOADED, host=None)
    body = {"volumeAttachment": {"volumeId": NEW, "tag": "a"}}
    assert client.post(ONE, body, version="2.49").status_int == 400
    body["volumeAttachment"].pop("tag")
    assert client.post(ONE, body, version="2.49").status_int == 200


def write_all(client: ApiClient, **at: str) -> list[int]:
    """The codes of an attach, a detach and a swap."""
    body = {"volumeAttachment": {"volumeId": NEW}}
    return [client.post(ONE, body, **at).status_int, client.delete(f"{ONE}/{volume(client)}", **at).status_int,
            client.put(f"{ONE}/{volume(client)}", body, **at).status_int]


@pytest.mark.parametrize(("state", "version", "codes"), [
    (VmState.ACTIVE, "2.19", [200, 202, 202]), (VmState.PAUSED, "2.1", [200, 202, 202]),
    (VmState.RESIZED, "2.1", [200, 202, 202]), (VmState.STOPPED, "2.1", [200, 202, 409]),
    (VmState.SOFT_DELETED, "2.1", [200, 202, 409]), (VmState.SUSPENDED, "2.104", [409] * 3),
    (VmState.RESCUED, "2.104", [409] * 3), (VmState.ERROR, "2.104", [409] * 3), (VmState.BUILDING, "2.104", [409] * 3),
    (VmState.SHELVED, "2.19", [409] * 3), (VmState.SHELVED_OFFLOADED, "2.19", [409] * 3),
    (VmState.SHELVED, "2.20", [200, 202, 409]), (VmState.SHELVED_OFFLOADED, "2.101", [202, 202, 409])])
def test_writes_in_every_state_are_what_the_table_says(client: ApiClient, state: VmState, version: str,
                                                       codes: list[int]) -> None:
    host = None if state is VmState.SHELVED_OFFLOADED else "host1"
    client.conductor.add_server(uuid=UUID, vm_state=state, host=host)
    client.conductor.add_device(UUID)
    assert write_all(client, version=version) == codes


def test_writes_when_the_server_is_locked_or_busy_then_they_are_409(client: ApiClient) -> None:
    client.conductor.add_server(uuid=UUID, locked=True)
    body = {"volumeAttachment": {"volumeId": NEW}}
    assert client.post(ONE, body, token=DEMO).status_int == 409
    assert client.delete(f"{ONE}/{volume(client)}", token=DEMO).status_int == 409
    client.conductor.add_server(uuid=UUID, task_state="rebooting")
    assert write_all(client) == [409] * 3
    assert client.conductor.asked("attach_volume", "detach_volume", "swap_volume") == []


def test_detach_when_the_server_boots_from_it_then_it_is_400(client: ApiClient) -> None:
    root = client.conductor.add_device(UUID, boot_index=0).volume_id
    assert client.delete(f"{ONE}/{root}").status_int == 400


# -- swaps and updates

def test_swap_is_for_the_volume_service_at_every_version(client: ApiClient) -> None:
    old, body = volume(client), {"volumeAttachment": {"volumeId": NEW}}
    for version in ("2.1", "2.84", "2.85", "2.104"):
        assert client.put(f"{ONE}/{old}", body, token=DEMO, version=version).status_int == 403
    same = {"volumeAttachment": {"volumeId": old}}
    assert client.put(f"{ONE}/{old}", same, token=DEMO, version="2.84").status_int == 403
    assert client.conductor.asked("swap_volume", "keep_volume") == []
    assert client.put(f"{ONE}/{old}", body, version="2.85").status_int == 202
    assert client.conductor.asked("swap_volume") == [(UUID, old, NEW)]


@pytest.mark.parametrize(("error", "code"), [(errors.Conflict("it is not migrating"), 409), (errors.Invalid("no"), 400),
                                             (errors.NotFound("no such volume"), 404)])
def test_swap_when_it_is_refused_then_the_caller_has_the_error(client: ApiClient, error: errors.NovaError,
                                                               code: int) -> None:
    client.conductor.given(swap_volume=error)
    assert client.put(f"{ONE}/{volume(client)}", {"volumeAttachment": {"volumeId": NEW}}).status_int == code


def test_swap_when_more_shall_change_then_it_is_400(client: ApiClient) -> None:
    body = {"volumeAttachment": {"volumeId": NEW, "delete_on_termination": True}}
    assert client.put(f"{ONE}/{volume(client)}", body, version="2.85").status_int == 400
    assert client.put(f"{ONE}/{volume(client)}", body, version="2.84").status_int == 400
    assert client.conductor.asked("swap_volume") == []


def test_update_when_the_volume_is_the_same_then_a_member_may_say_whether_it_stays(client: ApiClient) -> None:
    client.conductor.add_server(uuid=UUID, vm_state=VmState.RESCUED, locked=True)
    device = client.conductor.devices[UUID][1]
    body = {"volumeId": device.volume_id.upper(), "id": device.volume_id, "serverId": UUID,
            "device": device.device_name, "tag": "foo", "delete_on_termination": "yes"}
    answer = client.put(f"{ONE}/{device.volume_id}", {"volumeAttachment": body}, token=DEMO, version="2.85")
    assert (answer.status_int, answer.body) == (202, b"")
    assert client.conductor.asked("keep_volume") == [(UUID, device.volume_id, True)]
    assert client.get(f"{ONE}/{device.volume_id}", version="2.85").json["volumeAttachment"]["delete_on_termination"]


@pytest.mark.parametrize("changed", [{"id": NEW}, {"serverId": NEW}, {"device": "/dev/vdz"}, {"tag": "Foo"}])
def test_update_when_what_is_fixed_differs_then_it_is_400_and_named(client: ApiClient, changed: dict[str, str]) -> None:
    body = {"volumeAttachment": {"volumeId": volume(client, 1), "delete_on_termination": True, **changed}}
    answer = client.put(f"{ONE}/{volume(client, 1)}", body, version="2.85")
    assert answer.status_int == 400 and next(iter(changed)) in answer.json["badRequest"]["message"]
    assert client.conductor.asked("keep_volume") == []


def test_update_when_nothing_changes_then_nothing_is_done(client: ApiClient) -> None:
    body = {"volumeAttachment": {"volumeId": volume(client)}}
    assert client.put(f"{ONE}/{volume(client)}", body, version="2.85").status_int == 202
    assert client.put(f"{ONE}/{NEW}", {"volumeAttachment": {"volumeId": NEW}}, version="2.85").status_int == 404
    assert client.conductor.asked("keep_volume", "swap_volume") == []
