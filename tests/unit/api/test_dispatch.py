"""The order of checks, the three shapes of 404, request ids, and what unexpected failures show."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from oslo_middleware import cors, http_proxy_to_wsgi

from nova import context, errors
from nova.api import app
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO)
    made.conductor.add_flavor("1")
    return made


@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("PATCH", "/flavors"), ("DELETE", "/servers"),
                                              ("GET", "/servers/x/action"), ("GET", "/servers//metadata")])
def test_unknown_path_or_method_is_plain_404(client: ApiClient, method: str, path: str) -> None:
    answer = client.request(method, path, version="2.999")
    assert answer.status_int == 404
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "OpenStack-API-Version" not in answer.headers


def test_operation_outside_its_versions_is_json_404(client: ApiClient) -> None:
    answer = client.get("/os-volumes_boot", version="2.103")
    assert answer.status_int == 404
    assert answer.json["itemNotFound"]["code"] == 404
    assert answer.headers["OpenStack-API-Version"] == "compute 2.103"


def test_gone_operation_is_410_at_every_version(client: ApiClient) -> None:
    for version in ("2.1", "2.50", "2.104"):
        answer = client.get("/os-cells", version=version)
        assert answer.status_int == 410
        assert "computeFault" in answer.json


def test_operation_of_a_later_release_is_501_naming_it(client: ApiClient) -> None:
    answer = client.post("/servers/6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11/shares", {"share": {}}, version="2.97")
    assert answer.status_int == 501
    assert "shares" in answer.json["notImplemented"]["message"]


@pytest.mark.parametrize("body", [{"dance": None}, {"os-start": None, "os-stop": None}, {}, [], "os-start"])
def test_unknown_action_is_400(client: ApiClient, body: Any) -> None:
    assert client.post(f"/servers/{UUID}/action", body).status_int == 400


def test_action_outside_its_versions_is_404(client: ApiClient) -> None:
    answer = client.post(f"/servers/{UUID}/action", {"addFixedIp": {"networkId": "1"}}, version="2.44")
    assert answer.status_int == 404


def test_body_that_is_no_json_is_400(client: ApiClient) -> None:
    assert client.request("POST", "/servers", raw=b"{nope").status_int == 400


def test_body_with_another_media_type_is_415(client: ApiClient) -> None:
    answer = client.request("POST", "/servers", raw=b"<server/>", headers={"Content-Type": "application/xml"})
    assert answer.status_int == 415
    assert "badMediaType" in answer.json


def test_missing_body_is_400(client: ApiClient) -> None:
    assert client.request("POST", "/servers").status_int == 400


def test_version_is_checked_before_the_media_type(client: ApiClient) -> None:
    answer = client.request("POST", "/servers", raw=b"<a/>", headers={"Content-Type": "a/b"}, version="2.999")
    assert answer.status_int == 406


def test_project_in_the_path_must_be_the_tokens(client: ApiClient) -> None:
    client.token = "u:abc"
    assert client.get("/abc/flavors/1").status_int == 200
    answer = client.get("/abd/flavors/1")
    assert answer.status_int == 400
    assert "abd" in answer.json["badRequest"]["message"]


def test_links_carry_the_project_only_when_the_path_did(client: ApiClient) -> None:
    client.token = "u:abc"
    links = client.get("/abc/flavors/1").json["flavor"]["links"]
    assert [link["href"] for link in links] == ["http://localhost/v2.1/abc/flavors/1", "http://localhost/abc/flavors/1"]


def test_bad_body_is_400_even_without_the_right(client: ApiClient) -> None:
    answer = client.post("/servers", {"server": {}}, token="x:demo")
    assert answer.status_int == 400
    assert "name" in answer.json["badRequest"]["message"]


def test_unknown_key_is_refused_and_under_v2_taken_out(client: ApiClient) -> None:
    body = {"server": {"name": "vm", "flavorRef": "1", "imageRef": UUID, "colour": "red"}}
    answer = client.post("/servers", body)
    assert answer.status_int == 400
    assert "colour" in answer.json["badRequest"]["message"]
    client.prefix, body["server"]["name"] = "/v2", " vm "
    assert client.post("/servers", body).status_int == 202
    assert client.conductor.asked("create_servers")[-1].name == "vm"


def test_trailing_slash_is_the_same_path_or_an_empty_name_that_nothing_has(client: ApiClient) -> None:
    assert client.get("/flavors/detail/").status_int == client.get("/limits/").status_int == 200
    assert client.get("/flavors/").status_int == client.get("/os-simple-tenant-usage/").status_int == 404


def test_request_ids_are_on_every_answer(client: ApiClient) -> None:
    for answer in (client.get("/flavors"), client.get("/nothing"), client.get("/flavors", token=None)):
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        assert answer.headers["x-compute-request-id"] == answer.headers["x-openstack-request-id"]


def test_global_request_id_reaches_the_context(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(type(client.conductor), "get_flavor",
                        lambda self, flavorid, scope: seen.append(context.current()) or self.flavors[flavorid])
    theirs = f"req-{UUID}"
    answer = client.get("/flavors/1", headers={"X-OpenStack-Request-ID": theirs})
    assert seen[0].global_request_id == theirs
    assert seen[0].request_id == answer.headers["x-openstack-request-id"] != theirs
    client.get("/flavors/1", headers={"X-OpenStack-Request-ID": "evil\tline"})
    assert seen[1].global_request_id is None


class Broken:
    """A conductor whose every call fails with ``error``."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any) -> Any:
            raise self.error
        return fail


def failing(error: Exception) -> ApiClient:
    client = ApiClient(token=ADMIN)
    client.application = app.from_conf(Broken(error), Broken(error), Broken(error), configuration())
    return client


@pytest.mark.parametrize(("error", "status", "name"), [
    (errors.NotFound(), 404, "itemNotFound"), (errors.Invalid(), 400, "badRequest"),
    (errors.Conflict(), 409, "conflictingRequest"), (errors.WrongState(), 409, "conflictingRequest"),
    (errors.Forbidden(), 403, "forbidden"), (errors.OverQuota(), 403, "forbidden"),
    (errors.Unavailable(), 503, "serviceUnavailable"), (errors.NotSupported(), 501, "notImplemented"),
    (errors.PeerTooOld(), 503, "serviceUnavailable"), (errors.Overtaken(), 409, "conflictingRequest"),
    (errors.Gone(), 410, "computeFault"),
])
def test_error_of_a_kind_has_its_status_and_name(error: Exception, status: int, name: str) -> None:
    answer = failing(error).get("/flavors")
    assert answer.status_int == status
    assert answer.json == {name: {"code": status, "message": str(error)}}


def test_unexpected_error_shows_the_request_id_and_no_internals(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = failing(ZeroDivisionError("secret detail")).get("/flavors")
    assert answer.status_int == 500
    assert answer.json["computeFault"]["code"] == 500
    assert answer.headers["x-openstack-request-id"] in answer.json["computeFault"]["message"]
    assert "secret" not in answer.text and "ZeroDivision" not in answer.text
    assert sum("ZeroDivisionError" in (record.exc_text or "") for record in caplog.records) == 1


def test_body_above_the_limit_is_413(client: ApiClient) -> None:
    answer = client.request("POST", "/servers", raw=b"x" * 200_000)
    assert answer.status_int == 413
    assert "at most 114688 bytes" in answer.text


def test_body_with_a_length_of_many_digits_is_413(client: ApiClient) -> None:
    answer = client.request("POST", "/servers", raw=b"{}", headers={"Content-Length": "9" * 5000})
    assert answer.status_int == 413


def test_cross_origin_request_of_a_known_origin_is_answered() -> None:
    conf = configuration()
    conf.register_opts(cors.OPTS, "cors")
    conf.set_override("allowed_origin", ["https://dash.example"], group="cors")
    client = ApiClient(conf=conf, token=ADMIN)
    answer = client.get("/flavors", headers={"Origin": "https://dash.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "https://dash.example"
    other = client.get("/flavors", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in other.headers


def test_links_behind_a_proxy_are_the_proxys_when_it_is_trusted() -> None:
    conf = configuration()
    conf.register_opts(http_proxy_to_wsgi.OPTS, "oslo_middleware")
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "cloud.example"}
    for trusted, base in ((False, "http://localhost"), (True, "https://cloud.example")):
        conf.set_override("enable_proxy_headers_parsing", trusted, group="oslo_middleware")
        client = ApiClient(conf=conf, token=ADMIN)
        client.conductor.add_flavor("1")
        href = client.get("/flavors/1", headers=headers).json["flavor"]["links"][1]["href"]
        assert href == f"{base}/flavors/1"
