"""Versions: asked, refused, echoed; and the documents that list them."""

from __future__ import annotations

import pytest

from nova.api import discovery
from tests.fakes.api import ADMIN, ApiClient, configuration

NEW, OLD = "OpenStack-API-Version", "X-OpenStack-Nova-API-Version"


@pytest.fixture(scope="module")
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_flavor("1")
    return made


@pytest.mark.parametrize(("headers", "served"), [
    ({}, "2.1"),
    ({NEW: "compute 2.60"}, "2.60"),
    ({OLD: "2.3"}, "2.3"),
    ({NEW: "compute 2.60", OLD: "2.3"}, "2.60"),
    ({NEW: "volume 3.1", OLD: "2.3"}, "2.3"),
    ({NEW: "volume 3.1"}, "2.1"),
    ({NEW: "volume 3.1, compute 2.7"}, "2.7"),
    ({NEW: "compute latest"}, "2.104"),
    ({OLD: "LATEST"}, "2.104"),
])
def test_version_when_asked_is_served_and_echoed(client: ApiClient, headers: dict[str, str], served: str) -> None:
    answer = client.get("/flavors", headers=headers)
    assert answer.status_int == 200
    assert answer.headers[NEW] == f"compute {served}"
    assert answer.headers[OLD] == served
    assert answer.headers.getall("Vary") == [NEW, OLD]
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("asked", ["2.105", "2.0", "3.1", "1.1"])
def test_version_out_of_range_is_406_and_echoes_what_was_asked(client: ApiClient, asked: str) -> None:
    answer = client.get("/flavors", version=asked)
    assert answer.status_int == 406
    assert answer.json["computeFault"]["code"] == 406
    assert answer.headers[NEW] == f"compute {asked}"
    assert answer.headers.getall("Vary") == [NEW, OLD]
    assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"


@pytest.mark.parametrize("asked", ["x", "2", "2.1.1", "2.01", "-2.1", "2.1a"])
def test_version_when_malformed_is_400_without_version_headers(client: ApiClient, asked: str) -> None:
    answer = client.get("/flavors", version=asked)
    assert answer.status_int == 400
    assert "badRequest" in answer.json
    assert NEW not in answer.headers and OLD not in answer.headers and "Vary" not in answer.headers


def test_versions_under_v2_are_ignored_and_not_echoed(client: ApiClient) -> None:
    client.prefix = "/v2"
    answer = client.get("/flavors/1", version="2.999")
    client.prefix = "/v2.1"
    assert answer.status_int == 200
    assert "description" not in answer.json["flavor"]
    assert NEW not in answer.headers and "Vary" not in answer.headers
    assert answer.json["flavor"]["links"][0]["href"].startswith("http://localhost/v2/flavors")


@pytest.fixture
def root(client: ApiClient) -> ApiClient:
    made = ApiClient(client.conductor, token=None)
    made.prefix = ""
    return made


def test_root_without_token_lists_both_versions(root: ApiClient) -> None:
    answer = root.get("/")
    assert answer.status_int == 200
    assert [entry["id"] for entry in answer.json["versions"]] == ["v2.0", "v2.1"]
    assert answer.json["versions"][0]["version"] == answer.json["versions"][0]["min_version"] == ""
    assert answer.json["versions"][1]["version"] == "2.104"


def test_root_whatever_version_is_asked_answers(root: ApiClient) -> None:
    assert root.get("/", version="2.999").status_int == 200


@pytest.mark.parametrize("path", ["/v2.1", "/v2.1/"])
def test_version_document_without_token_is_answered(root: ApiClient, path: str) -> None:
    answer = root.get(path)
    assert answer.status_int == 200
    assert answer.json["version"]["id"] == "v2.1"
    assert answer.json["version"]["links"][0]["href"] == "http://localhost/v2.1/"


def test_version_document_is_shown_by_its_id_too(root: ApiClient) -> None:
    assert root.get("/v2.1/versions/v2.1").json == root.get("/v2.1/").json
    assert root.get("/v2.1/versions/v9").status_int == 404


def test_version_document_is_versioned_itself(root: ApiClient) -> None:
    assert root.get("/v2.1/", version="2.999").status_int == 406
    assert root.get("/v2.1/", version="x").status_int == 400


def test_other_unversioned_paths_are_300_with_choices(root: ApiClient) -> None:
    answer = root.get("/servers/detail")
    assert answer.status_int == 300
    hrefs = [choice["links"][0]["href"] for choice in answer.json["choices"]]
    assert hrefs == ["http://localhost/v2/servers/detail", "http://localhost/v2.1/servers/detail"]


def test_healthcheck_without_token_is_ok(root: ApiClient) -> None:
    assert root.get("/healthcheck").status_int == 200


def test_links_with_a_prefix_use_it() -> None:
    client = ApiClient(conf=configuration(compute_link_prefix="https://cloud.example/compute/"), token=ADMIN)
    client.conductor.add_flavor("1")
    links = client.get("/flavors/1").json["flavor"]["links"]
    assert [link["href"] for link in links] == ["https://cloud.example/compute/v2.1/flavors/1",
                                                "https://cloud.example/compute/flavors/1"]


@pytest.mark.parametrize(("accept", "content", "asked"), [
    ("application/xml;version=2", "", "v2"), ("application/json; version=2.1", "", "v2.1"), ("*/*", "", None),
    ("application/xml;version=v2;q=1", "", "v2"), ("", 'application/json;version="1.1"', "v1.1"),
    ("application/xml;version=two", "", None), ("application/xml;conversion=2", "", None)])
def test_version_when_a_parameter_then_is_found(accept: str, content: str, asked: str | None) -> None:
    assert discovery.version_asked({"HTTP_ACCEPT": accept, "CONTENT_TYPE": content}) == asked
