"""The fake Glance: records, data, and who may do what, over real sockets with tokens of the fake Keystone."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from webob import Request

from nova.devel.image.data import DataFolder
from nova.devel.image.glance import DATA_TYPE, PATCH_TYPE, FakeGlance
from nova.devel.service import TokenOwner
from tests.unit.devel.served import FakeCloud, fake_cloud

DATA = os.urandom(200_000)
FORMATS = {"disk_format": "raw", "container_format": "bare"}
RAW = {"Content-Type": DATA_TYPE}


class User:
    """One who speaks HTTP with a token of a project."""

    def __init__(self, cloud: FakeCloud, user: str, project: str) -> None:
        made = cloud.session(user, project)
        self.url, self.token, self.project_id = cloud.image_url, made.get_token(), made.get_project_id()

    def __call__(self, method: str, path: str, **said: object) -> requests.Response:
        headers = {"X-Auth-Token": self.token, **said.pop("headers", {})}
        return requests.request(method, f"{self.url}{path}", headers=headers, timeout=30, **said)

    def create(self, data: bytes | None = None, **members: object) -> dict[str, object]:
        made = self("POST", "/v2/images", json={**FORMATS, **members})
        assert made.status_code == 201, made.text
        if data is not None:
            assert self("PUT", f"{made.json()['file']}", data=data, headers=RAW).status_code == 204
        return self("GET", made.json()["self"]).json()

    def patch(self, image: dict[str, object], *operations: object) -> requests.Response:
        return self("PATCH", image["self"], json=operations, headers={"Content-Type": PATCH_TYPE})

    def names(self, query: str = "") -> list[str]:
        answer = self("GET", f"/v2/images{query}")
        assert answer.status_code == 200, answer.text
        return sorted(one["name"] for one in answer.json()["images"])


@pytest.fixture
def demo(cloud: FakeCloud) -> User:
    return User(cloud, "demo", "demo")


@pytest.fixture
def admin(cloud: FakeCloud) -> User:
    return User(cloud, "admin", "admin")


@pytest.fixture
def other(cloud: FakeCloud) -> User:
    """Of the project service, and no administrator."""
    directory = cloud.keystone.directory
    project = directory.by_name("projects", "service", "default")
    session = cloud.session()
    user = session.post(f"{cloud.identity_url}/v3/users", json={"user": {
        "name": "eve", "password": "a password of the tests"}}).json()["user"]
    role = directory.by_name("roles", "member")
    session.put(f"{cloud.identity_url}/v3/projects/{project['id']}/users/{user['id']}/roles/{role['id']}")
    return User(cloud, "eve", "service")


@pytest.mark.parametrize("in_memory", [False, True], ids=["folder", "memory"])
def test_data_then_they_come_back_with_their_sums(tmp_path: Path, in_memory: bool) -> None:
    with fake_cloud(None if in_memory else tmp_path) as cloud:
        demo = User(cloud, "demo", "demo")
        image = demo.create(DATA, name="one")
        assert (image["status"], image["size"], image["checksum"], image["os_hash_algo"], image["os_hash_value"]) == (
            "active", len(DATA), hashlib.md5(DATA).hexdigest(), "sha512", hashlib.sha512(DATA).hexdigest())
        got = demo("GET", image["file"])
        assert got.content == DATA
        assert [got.headers[name] for name in ("Content-Length", "Content-MD5", "Content-Type")] == [
            str(len(DATA)), image["checksum"], DATA_TYPE]
        files = [one.name for one in tmp_path.iterdir()]
        assert files == ([] if in_memory else [image["id"]])
        assert all((tmp_path / one).stat().st_mode & 0o777 == 0o600 for one in files)
        assert demo("DELETE", image["self"]).status_code == 204
        assert list(tmp_path.iterdir()) == []
        assert demo("GET", image["file"]).status_code == 404


def test_data_when_they_come_in_chunks_then_they_are_the_same(demo: User) -> None:
    image = demo.create()
    parts: Iterator[bytes] = iter([DATA[:70_000], DATA[70_000:]])
    assert demo("PUT", image["file"], data=parts, headers=RAW).status_code == 204
    assert demo("GET", image["file"]).content == DATA


@pytest.mark.parametrize(("wanted", "status", "part"), [
    ("bytes=0-9", 206, DATA[:10]), ("bytes=70000-", 206, DATA[70000:]), ("bytes=-5", 206, DATA[-5:]),
    ("bytes=999999-", 416, None)])
def test_data_when_a_range_is_asked_for_then_it_alone_is_sent(demo: User, wanted: str, status: int,
                                                             part: bytes | None) -> None:
    image = demo.create(DATA)
    got = demo("GET", image["file"], headers={"Range": wanted})
    assert got.status_code == status
    assert part is None or got.content == part


def test_data_when_there_are_none_then_204_and_later_they_are_sent_once(demo: User) -> None:
    image = demo.create()
    assert demo("GET", image["file"]).status_code == 204
    assert demo("PUT", image["file"], data=DATA, headers=RAW).status_code == 204
    assert demo("PUT", image["file"], data=b"x", headers=RAW).status_code == 409
    assert demo("GET", image["file"]).content == DATA


def test_data_when_formats_or_the_type_are_missing_then_they_are_refused(demo: User) -> None:
    image = demo.create(disk_format=None)
    assert demo("PUT", image["file"], data=DATA, headers=RAW).status_code == 409
    assert demo("PUT", image["file"], data=DATA).status_code == 415
    assert demo("GET", image["self"]).json()["status"] == "queued"


def test_data_when_the_client_goes_then_the_image_waits_as_before(cloud: FakeCloud, demo: User, tmp_path: Path) -> None:
    image = demo.create()
    host, port = cloud.image_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"PUT {image['file']} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {demo.token}\r\nContent-Type: "
                     f"{DATA_TYPE}\r\nContent-Length: 100\r\n\r\nhalf".encode())
        wait_for(lambda: demo("GET", image["self"]).json()["status"] == "saving")
    wait_for(lambda: demo("GET", image["self"]).json()["status"] == "queued")
    assert list((tmp_path / "images").iterdir()) == []
    assert demo("PUT", image["file"], data=DATA, headers=RAW).status_code == 204


def wait_for(condition: object) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("It has not come true in 10 s")


def test_upload_when_the_image_is_deleted_meanwhile_then_410_and_nothing_stays(
        cloud: FakeCloud, demo: User, tmp_path: Path) -> None:
    image = demo.create()
    host, port = cloud.image_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"PUT {image['file']} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {demo.token}\r\nContent-Type: "
                     f"{DATA_TYPE}\r\nContent-Length: 8\r\n\r\nhalf".encode())
        wait_for(lambda: demo("GET", image["self"]).json()["status"] == "saving")
        assert demo("DELETE", image["self"]).status_code == 204
        sock.sendall(b"half")
        assert sock.recv(100).startswith(b"HTTP/1.1 410")
    assert list((tmp_path / "images").iterdir()) == []
    assert demo("POST", "/v2/images", json={"id": image["id"]}).status_code == 409


def test_data_folder_when_a_part_fails_then_nothing_is_kept(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise FloatingPointError

    for folder in (DataFolder(tmp_path), DataFolder()):
        with pytest.raises(FloatingPointError):
            folder.keep("one", broken())
        with pytest.raises((KeyError, FileNotFoundError)):
            folder.open("one")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("members", "status", "named"), [
    ([], 400, "object"), ({"name": 7}, 400, "name"), ({"name": "x" * 256}, 400, "name"),
    ({"name": "\U0001f600"}, 400, "name"),
    ({"visibility": "secret"}, 400, "visibility"), ({"disk_format": "zip"}, 400, "disk_format"),
    ({"min_disk": -1}, 400, "min_disk"), ({"min_ram": True}, 400, "min_ram"), ({"tags": "x"}, 400, "tags"),
    ({"protected": "no"}, 400, "protected"), ({"own": 7}, 400, "own"), ({"id": "../../etc"}, 400, "id"),
    ({"id": {}}, 400, "id"), ({"status": "active"}, 403, "status"), ({"checksum": "x"}, 403, "checksum"),
    ({"visibility": "public"}, 403, "publicize"), ({"owner": "another"}, 403, "owner")])
def test_create_when_a_member_is_wrong_then_the_answer_names_it(
        cloud: FakeCloud, demo: User, members: object, status: int, named: str) -> None:
    answer = demo("POST", "/v2/images", json=members)
    assert answer.status_code == status
    assert named in answer.json()["message"]
    assert cloud.glance.state.images == {}


def test_create_then_the_record_has_what_was_said_and_defaults(demo: User) -> None:
    image_id = str(uuid.uuid4())
    made = demo("POST", "/v2/images", json={"id": image_id, "name": "one", "tags": ["b", "a", "b"], "hw_x": "y"})
    assert made.headers["Location"] == f"{demo.url}/v2/images/{image_id}"
    image = made.json()
    assert (image["id"], image["owner"], image["visibility"], image["status"], image["tags"], image["hw_x"]) == (
        image_id, demo.project_id, "shared", "queued", ["a", "b"], "y")
    assert demo("POST", "/v2/images", json={"id": image_id}).status_code == 409


def test_patch_then_members_and_properties_change(demo: User) -> None:
    image = demo.create(own="1", gone="2")
    changed = demo.patch(image, {"op": "replace", "path": "/name", "value": "new"},
                         {"op": "replace", "path": "/own", "value": "3"}, {"op": "remove", "path": "/gone"},
                         {"op": "add", "path": "/a~1b~0c", "value": "4"},
                         {"op": "add", "path": "/tags", "value": ["t"]}).json()
    assert (changed["name"], changed["own"], changed["a/b~c"], changed["tags"]) == ("new", "3", "4", ["t"])
    assert "gone" not in changed
    assert demo("GET", image["self"]).json() == changed


@pytest.mark.parametrize(("operation", "status"), [
    ({"op": "replace", "path": "/none", "value": "x"}, 409), ({"op": "remove", "path": "/none"}, 409),
    ({"op": "remove", "path": "/name"}, 403), ({"op": "replace", "path": "/status", "value": "active"}, 403),
    ({"op": "replace", "path": "/id", "value": "x"}, 403), ({"op": "replace", "path": "/size", "value": 1}, 403),
    ({"op": "replace", "path": "/visibility", "value": "public"}, 403),
    ({"op": "replace", "path": "/owner", "value": "another"}, 403), ({"op": "replace", "path": "/name"}, 400),
    ({"op": "add", "path": "/a/b", "value": "x"}, 400), ({"op": "move", "path": "/a"}, 400), ({"op": []}, 400),
    ({"op": "add", "path": "/own", "value": 7}, 400), ("x", 400), ({"op": "add", "path": 7, "value": "x"}, 400),
    ({"op": "replace", "path": "/disk_format", "value": "qcow2"}, 403)])
def test_patch_when_an_operation_is_wrong_then_none_is_done(demo: User, operation: object, status: int) -> None:
    image = demo.create(DATA, name="one")
    first = {"op": "replace", "path": "/name", "value": "two"}
    assert demo.patch(image, first, operation).status_code == status
    assert demo("GET", image["self"]).json() == image
    assert demo("PATCH", image["self"], json=[first]).status_code == 415


def test_delete_when_the_image_is_protected_then_403(demo: User) -> None:
    image = demo.create(DATA, protected=True)
    assert demo("DELETE", image["self"]).status_code == 403
    assert demo("GET", image["file"]).content == DATA
    demo.patch(image, {"op": "replace", "path": "/protected", "value": False})
    assert demo("DELETE", image["self"]).status_code == 204
    assert demo("DELETE", image["self"]).status_code == 404


def test_image_of_another_project_then_what_is_seen_depends_on_its_visibility(
        demo: User, other: User, admin: User) -> None:
    made = {name: demo.create(DATA, name=name, visibility=name) for name in ("private", "shared", "community")}
    made["public"] = demo.create(DATA, name="public")
    assert admin.patch(made["public"], {"op": "replace", "path": "/visibility", "value": "public"}).status_code == 200
    assert {name: other("GET", one["self"]).status_code for name, one in made.items()} == {
        "private": 404, "shared": 404, "community": 200, "public": 200}
    assert other("GET", made["private"]["file"]).status_code == 404
    assert other("GET", made["public"]["file"]).content == DATA
    for one in (made["public"], made["community"]):
        assert other("DELETE", one["self"]).status_code == 403
        assert other.patch(one, {"op": "add", "path": "/x", "value": "y"}).status_code == 403
        assert other("PUT", f"{one['self']}/tags/x").status_code == 403
        assert other("PUT", one["file"], data=b"x", headers=RAW).status_code == 403
    assert other.names() == ["public"]
    assert other.names("?visibility=community") == ["community"]
    assert other.names("?visibility=all") == ["community", "public"]
    assert demo.names() == ["community", "private", "public", "shared"]
    assert "private" in admin.names()


def test_member_when_it_accepts_then_the_image_is_listed(demo: User, other: User) -> None:
    image = demo.create(DATA, name="one", visibility="shared")
    path = f"{image['self']}/members"
    assert demo("POST", path, json={"member": other.project_id}).json()["status"] == "pending"
    assert demo("POST", path, json={"member": other.project_id}).status_code == 409
    assert other("GET", image["file"]).content == DATA
    assert (other.names(), other.names("?visibility=shared&member_status=pending")) == ([], ["one"])
    one = f"{path}/{other.project_id}"
    assert demo("PUT", one, json={"status": "accepted"}).status_code == 403
    assert other("PUT", one, json={"status": "perhaps"}).status_code == 400
    assert other("PUT", one, json={"status": "accepted"}).json()["status"] == "accepted"
    assert other.names() == ["one"]
    assert [one["member_id"] for one in other("GET", path).json()["members"]] == [other.project_id]
    assert other("GET", one).json()["image_id"] == image["id"]
    for refused in (other("POST", path, json={"member": "x"}), other("DELETE", one), other("DELETE", image["self"])):
        assert refused.status_code == 403
    assert demo("DELETE", one).status_code == 204
    assert demo("GET", one).status_code == 404
    assert other("GET", image["self"]).status_code == 404


def test_member_when_the_image_is_not_shared_then_403(demo: User) -> None:
    path = f"{demo.create(visibility='private')['self']}/members"
    assert demo("POST", path, json={"member": "x"}).status_code == 403
    assert demo("GET", path).status_code == 403
    shared = f"{demo.create(visibility='shared')['self']}/members"
    assert demo("POST", shared, json={"member": 7}).status_code == demo("POST", shared, json=[]).status_code == 400


def test_tags_then_they_are_set_and_taken(demo: User) -> None:
    image = demo.create()
    for tag in ("b", "a", "b"):
        assert demo("PUT", f"{image['self']}/tags/{tag}").status_code == 204
    assert demo("GET", image["self"]).json()["tags"] == ["a", "b"]
    assert demo("DELETE", f"{image['self']}/tags/a").status_code == 204
    assert demo("DELETE", f"{image['self']}/tags/a").status_code == 404


def test_image_when_it_is_deactivated_then_only_administrators_read_it(demo: User, admin: User) -> None:
    image = demo.create(DATA)
    assert demo("POST", f"{image['self']}/actions/deactivate").status_code == 403
    for _again in range(2):
        assert admin("POST", f"{image['self']}/actions/deactivate").status_code == 204
    assert demo("GET", image["file"]).status_code == 403
    assert admin("GET", image["file"]).content == DATA
    assert admin("POST", f"{image['self']}/actions/reactivate").status_code == 204
    assert demo("GET", image["file"]).content == DATA
    assert admin("POST", f"{demo.create()['self']}/actions/deactivate").status_code == 403


@pytest.mark.parametrize(("query", "found"), [
    ("?name=a", ["a"]), ("?name=in:a,b", ["a", "b"]), ('?name=in:"c, d"', ["c, d"]), ("?status=active", ["b"]),
    ("?tag=t1", ["a", "b"]), ("?tag=t1&tag=t2", ["b"]), ("?owner=none", []), ("?own=x", ["c, d"]),
    ("?size_min=2", ["b"]), ("?size_max=2", ["a", "c, d"]), ("?protected=true", ["a"]), ("?protected=True", ["a"]),
    ("?os_hidden=true", ["h"]), ("?visibility=private", ["a"]), ("?limit=0", []), ("?visibility=public", [])])
def test_list_when_it_is_filtered_then_those_that_fit_are_in_it(demo: User, query: str, found: list[str]) -> None:
    demo.create(name="a", tags=["t1"], protected=True, visibility="private")
    demo.create(b"four", name="b", tags=["t1", "t2"])
    demo.create(name="c, d", own="x")
    demo.create(name="h", os_hidden=True)
    assert demo.names(query) == found


@pytest.mark.parametrize("sort", ["sort=name:asc", "sort_key=name&sort_dir=asc", "sort=status:desc,name:asc"])
def test_list_when_it_has_pages_then_links_lead_through_all_of_it(demo: User, sort: str) -> None:
    names = [f"n{number}" for number in range(5)]
    for name in reversed(names):
        demo.create(name=name)
    seen, path = [], f"/v2/images?limit=2&{sort}"
    while path:
        body = demo("GET", path).json()
        assert len(body["images"]) <= 2 and body["first"].startswith("/v2/images?limit=2")
        seen += [one["name"] for one in body["images"]]
        path = body.get("next")
    assert seen == names


@pytest.mark.parametrize("query", [
    "limit=x", "limit=-1", "marker=none", "sort=colour", "sort=name:up", "sort_key=colour", "visibility=secret",
    "member_status=perhaps", "size_min=x", "sort_key=name&sort_dir=asc&sort_dir=asc"])
def test_list_when_the_query_is_wrong_then_400(demo: User, query: str) -> None:
    demo.create()
    assert demo("GET", f"/v2/images?{query}").status_code == 400


def test_reader_then_it_changes_nothing(cloud: FakeCloud, demo: User) -> None:
    image = demo.create(DATA, visibility="shared")
    session = cloud.session()
    directory = cloud.keystone.directory
    user = session.post(f"{cloud.identity_url}/v3/users", json={"user": {
        "name": "eve", "password": "a password of the tests"}}).json()["user"]
    role = directory.by_name("roles", "reader")
    session.put(f"{cloud.identity_url}/v3/projects/{demo.project_id}/users/{user['id']}/roles/{role['id']}")
    reader = User(cloud, "eve", "demo")
    assert reader("GET", image["file"]).content == DATA
    assert reader("POST", "/v2/images", json=FORMATS).status_code == 403
    assert reader("DELETE", image["self"]).status_code == 403


def test_call_when_the_token_is_no_good_then_401(cloud: FakeCloud) -> None:
    for headers in ({}, {"X-Auth-Token": "none"}):
        answer = requests.get(f"{cloud.image_url}/v2/images", headers=headers, timeout=10)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Keystone")


def test_identify_when_the_caller_has_its_own_then_no_keystone_is_needed() -> None:
    glance = FakeGlance({"one": TokenOwner("u", "p", frozenset({"member"}))}.get)
    request = Request.blank("/v2/images", headers={"X-Auth-Token": "one"})
    assert request.get_response(glance).json["images"] == []


def test_add_then_the_image_is_there_from_the_beginning(cloud: FakeCloud, demo: User) -> None:
    image_id = cloud.glance.add([DATA], TokenOwner("u", "p", frozenset({"admin"})), name="one", visibility="public",
                                **FORMATS)
    assert demo.names() == ["one"]
    assert demo("GET", f"/v2/images/{image_id}/file").content == DATA


def test_call_when_a_client_sends_slowly_then_others_are_answered(cloud: FakeCloud, demo: User) -> None:
    host, port = cloud.image_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"POST /v2/images HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {demo.token}\r\nContent-Type: "
                     "application/json\r\nContent-Length: 15\r\n\r\n{".encode())
        for _ in range(5):
            assert demo.names() == []
        sock.sendall(b'"name": "one"}')
        assert sock.recv(100).startswith(b"HTTP/1.1 201")
    assert demo("GET", "/v2/images").headers["X-Openstack-Request-Id"].startswith("req-")


@pytest.mark.parametrize("name", ["image", "images", "member", "members"])
def test_schema_then_it_has_properties(demo: User, name: str) -> None:
    assert demo("GET", f"/v2/schemas/{name}").json()["properties"]
    assert demo("GET", f"/v2/schemas/{name}x").status_code == 404
