"""What the fakes write to a file and find there again; and what older clients of the image API say."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from webob import Request

from nova.devel.identity.keystone import FakeKeystone, NewUser
from nova.devel.image.glance import OLD_PATCH_TYPE, FakeGlance
from nova.devel.service import TokenOwner

OWNER = TokenOwner("user", "project", frozenset({"member"}))


def glance(folder: Path) -> FakeGlance:
    return FakeGlance(lambda token: OWNER, folder)


def ask(service: object, method: str, path: str, body: object = None, kind: str = "application/json") -> object:
    request = Request.blank(path, method=method, headers={"X-Auth-Token": "any"})
    if body is not None:
        request.json_body = body
        request.content_type = kind
    return request.get_response(service)


def test_identity_when_it_is_kept_then_what_was_made_is_there_and_the_catalog_is_the_new_one(tmp_path: Path) -> None:
    first = FakeKeystone({"compute": "http://old"}, "secret")
    assert first.keep_in(tmp_path / "identity") is False
    first.add_user(NewUser("eve", {"garden": ("member",)}), "hers")
    second = FakeKeystone({"compute": "http://new"}, "another")
    assert second.keep_in(tmp_path / "identity") is True
    eve, admin = (second.directory.by_name("users", name, "default") for name in ("eve", "admin"))
    assert second.directory.passwords[eve["id"]].is_of("hers")
    assert second.directory.passwords[admin["id"]].is_of("another")
    assert {one["url"] for one in second.directory.things["endpoints"].values()} == {"http://new"}
    assert second.directory.by_name("projects", "garden", "default")
    assert second.directory.grants == first.directory.grants


def test_identity_when_it_is_written_then_no_password_stands_in_the_file_and_it_is_private(tmp_path: Path) -> None:
    keystone = FakeKeystone({}, "a-password-of-mine")
    keystone.keep_in(tmp_path / "identity")
    keystone.save()
    assert b"a-password-of-mine" not in (tmp_path / "identity").read_bytes()
    assert (tmp_path / "identity").stat().st_mode & 0o777 == 0o600


def test_images_when_they_are_kept_then_records_and_data_are_there_again(tmp_path: Path) -> None:
    first = glance(tmp_path)
    first.keep_in(tmp_path / "index")
    image = first.add([b"data"], OWNER, name="one", disk_format="raw", container_format="bare")
    second = glance(tmp_path)
    assert second.keep_in(tmp_path / "index")
    assert ask(second, "GET", f"/v2/images/{image}").json["name"] == "one"
    assert ask(second, "GET", f"/v2/images/{image}/file").body == b"data"


def test_images_when_an_upload_was_under_way_then_the_image_waits_for_another(tmp_path: Path) -> None:
    first = glance(tmp_path)
    first.keep_in(tmp_path / "index")
    image = ask(first, "POST", "/v2/images", {"name": "half"}).json["id"]
    first.state.images[image]["status"] = "saving"
    first.save()
    second = glance(tmp_path)
    second.keep_in(tmp_path / "index")
    assert ask(second, "GET", f"/v2/images/{image}").json["status"] == "queued"


def test_state_when_only_read_then_nothing_is_written(tmp_path: Path) -> None:
    service = glance(tmp_path)
    service.keep_in(tmp_path / "index")
    ask(service, "GET", "/v2/images")
    assert not (tmp_path / "index").exists()
    ask(service, "POST", "/v2/images", {"name": "one"})
    assert (tmp_path / "index").exists()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x93\x01\x02\x03"], ids=str)
def test_state_when_the_file_is_another_then_it_says_so_and_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "index").write_bytes(content)
    with pytest.raises(ValueError, match="index cannot be read"):
        glance(tmp_path).keep_in(tmp_path / "index")
    assert (tmp_path / "index").read_bytes() == content


# --- older clients of the image API


@pytest.mark.parametrize(("operation", "status"), [
    ({"add": "/colour", "value": "red"}, 200), ({"replace": "/name", "value": "two"}, 200),
    ({"remove": "/shape"}, 200), ({"remove": "/none"}, 409), ({"paint": "/name"}, 400), ("add", 400)], ids=str)
def test_patch_when_it_is_of_the_older_form_then_it_is_done_as_the_newer_one(tmp_path: Path, operation: object,
                                                                             status: int) -> None:
    service = glance(tmp_path)
    image = ask(service, "POST", "/v2/images", {"name": "one", "shape": "round"}).json["id"]
    answer = ask(service, "PATCH", f"/v2/images/{image}", [operation], OLD_PATCH_TYPE)
    assert answer.status_code == status
    if operation == {"add": "/colour", "value": "red"}:
        assert answer.json["colour"] == "red"


def test_patch_when_it_is_of_the_older_form_and_no_list_then_400(tmp_path: Path) -> None:
    service = glance(tmp_path)
    image = ask(service, "POST", "/v2/images", {"name": "one"}).json["id"]
    assert ask(service, "PATCH", f"/v2/images/{image}", {"add": "/a"}, OLD_PATCH_TYPE).status_code == 400


def test_list_when_filtered_by_time_then_those_of_that_time_are_in_it(tmp_path: Path) -> None:
    service = glance(tmp_path)
    for number in (1, 2, 3):
        made = ask(service, "POST", "/v2/images", {"name": str(number)}).json["id"]
        service.state.images[made]["updated_at"] = f"2026-01-0{number}T00:00:00Z"

    def names(query: str) -> list[str]:
        return sorted(one["name"] for one in ask(service, "GET", f"/v2/images?{query}").json["images"])
    assert names("updated_at=gte:2026-01-02T00:00:00Z") == ["2", "3"]
    assert names("updated_at=gt:2026-01-02T00:00:00") == ["3"]
    assert names("updated_at=lt:2026-01-02T00:00:00%2B00:00") == ["1"]
    assert names("updated_at=2026-01-02T00:00:00Z") == ["2"]
    now = datetime.datetime.now(datetime.UTC).isoformat()
    assert len(names("created_at=lte:" + now.replace("+", "%2B"))) == 3
    assert ask(service, "GET", "/v2/images?updated_at=gte:yesterday").status_code == 400


def test_tasks_when_asked_for_then_an_image_has_none(tmp_path: Path) -> None:
    service = glance(tmp_path)
    image = ask(service, "POST", "/v2/images", {"name": "one"}).json["id"]
    assert ask(service, "GET", f"/v2/images/{image}/tasks").json == {"tasks": []}
    assert ask(service, "GET", "/v2/images/none/tasks").status_code == 404
