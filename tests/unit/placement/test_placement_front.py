"""Versions, headers, errors and what is refused before an operation runs."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from oslo_policy import opts as policy_options

from nova.placement import versions
from nova.placement.routes import ROUTES
from nova.policies.placement import RULES
from tests.fakes.api import configuration
from tests.fakes.placement_api import DEMO, PlacementClient, error_of
from tests.fakes.small_cloud import SmallCloud

MISSING = str(uuid.uuid4())


def test_root_when_asked_without_a_token_then_tells_the_versions(still: PlacementClient) -> None:
    answer = still.get("/", token=None, version=None)
    assert answer.status_int == 200
    (known,) = answer.json["versions"]
    assert (known["id"], known["min_version"], known["max_version"]) == ("v1.0", "1.0", "1.39")
    asked = still.get("/", token=None, version="1.40")
    assert (asked.status_int, error_of(asked)["max_version"]) == (406, "1.39")


def test_root_when_written_to_then_is_405_with_allow(still: PlacementClient) -> None:
    answer = still.post("/", {}, token=None)
    assert (answer.status_int, answer.headers["allow"]) == (405, "GET")


def test_any_other_path_without_a_token_is_401(still: PlacementClient) -> None:
    assert still.get("/resource_providers", token=None).status_int == 401


@pytest.mark.parametrize(("header", "served"), [
    (None, "1.0"), ("placement 1.5", "1.5"), ("placement latest", "1.39"), ("compute 2.90", "1.0"),
    ("compute 2.90, placement 1.17", "1.17"), ("Placement 1.39", "1.39")])
def test_version_when_asked_for_then_is_served_and_told(still: PlacementClient, header: str | None, served: str,
                                                        ) -> None:
    answer = still.get("/resource_providers", version=None, headers={"OpenStack-API-Version": header} if header else {})
    assert answer.status_int == 200
    assert answer.headers["openstack-api-version"] == f"placement {served}"
    assert "openstack-api-version" in answer.headers["vary"].lower()


@pytest.mark.parametrize("asked", ["1.40", "2.1", "0.9", "1.4000000000"])
def test_version_when_there_is_no_such_then_is_406_and_names_the_range(still: PlacementClient, asked: str) -> None:
    answer = still.get("/resource_providers", version=asked)
    fault = error_of(answer)
    assert (answer.status_int, fault["min_version"], fault["max_version"]) == (406, "1.0", "1.39")


@pytest.mark.parametrize("asked", ["1", "one", "1.x", "1.05", "-1.2", "1.2.3", "9" * 5000 + ".1"])
def test_version_when_malformed_then_is_400(still: PlacementClient, asked: str) -> None:
    answer = still.get("/resource_providers", version=asked)
    assert answer.status_int == 400 and len(answer.body) < 1000


def test_error_has_status_title_detail_request_id_and_from_1_23_a_code(still: PlacementClient) -> None:
    path = f"/resource_providers/{MISSING}"
    old, new = still.get(path, version="1.22"), still.get(path, version="1.23")
    fault = error_of(new)
    assert (fault["status"], fault["title"], fault["code"]) == (404, "Not Found",
                                                                "placement.resource_provider.not_found")
    assert MISSING in fault["detail"] and fault["request_id"] == new.headers["x-openstack-request-id"]
    assert "code" not in error_of(old)


def test_error_that_we_did_not_expect_is_500_without_internals(client: PlacementClient) -> None:
    client.conductor.list_classes = lambda: 1 / 0
    answer = client.get("/resource_classes")
    assert answer.status_int == 500 and "division" not in answer.text and "request id" in error_of(answer)["detail"]


@pytest.mark.parametrize(("path", "method", "allowed"), [
    ("/resource_providers", "DELETE", "GET, POST"), (f"/allocations/{MISSING}", "POST", "DELETE, GET, PUT"),
    ("/usages", "PUT", "GET"), ("/traits/CUSTOM_A", "PATCH", "DELETE, GET, PUT"), ("/reshaper", "GET", "POST")])
def test_method_when_the_path_has_no_such_then_is_405_with_allow(still: PlacementClient, path: str, method: str,
                                                                 allowed: str) -> None:
    answer = still.request(method, path)
    assert (answer.status_int, answer.headers["allow"]) == (405, allowed)


def test_method_when_it_came_later_then_is_405_and_not_in_allow(still: PlacementClient) -> None:
    answer = still.delete(f"/resource_providers/{MISSING}/inventories", version="1.4")
    assert (answer.status_int, answer.headers["allow"]) == (405, "GET, POST, PUT")
    assert still.delete(f"/resource_providers/{MISSING}/inventories", version="1.5").status_int == 404


@pytest.mark.parametrize(("path", "method", "allowed"), [
    ("/allocations", "GET", "POST"), ("/traits", "POST", "GET"), ("/reshaper", "PUT", "POST")])
def test_method_when_no_version_has_it_then_is_405_at_versions_before_the_path_too(
        still: PlacementClient, path: str, method: str, allowed: str) -> None:
    answer = still.request(method, path, version="1.0")
    assert (answer.status_int, answer.headers["allow"]) == (405, allowed)
    assert still.request(allowed, path, {}, version="1.0").status_int == 404


@pytest.mark.parametrize(("method", "path", "headers", "status"), [
    ("GET", "/nothing", {}, 404), ("GET", "/allocations", {}, 405), ("GET", "/resource_providers/x", {}, 404),
    ("GET", "/resource_providers", {"Accept": "text/plain"}, 406), ("POST", "/resource_providers", {}, 415),
    ("POST", "/resource_providers", {"Content-Type": "text/plain"}, 415)])
def test_error_has_the_headers_of_its_version_and_is_json(still: PlacementClient, method: str, path: str,
                                                          headers: dict[str, str], status: int) -> None:
    answer = still.request(method, path, headers=headers, raw=b"{}" if headers else None)
    assert (answer.status_int, error_of(answer)["status"]) == (status, status), answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["openstack-api-version"] == "placement 1.39"
    assert answer.headers["vary"] == "openstack-api-version" and "last-modified" not in answer.headers
    assert set(error_of(answer)) == {"status", "title", "detail", "request_id", "code"}


@pytest.mark.parametrize(("path", "since"), [
    ("/traits", 6), ("/resource_classes", 2), ("/allocation_candidates?resources=VCPU:1", 10),
    ("/usages?project_id=p", 9)])
def test_path_before_its_version_is_404(still: PlacementClient, path: str, since: int) -> None:
    assert still.get(path, version=f"1.{since - 1}").status_int == 404
    assert still.get(path, version=f"1.{since}").status_int == 200


@pytest.mark.parametrize("path", ["/nothing", "/resource_providers/x/y/z", "/resource_providers/%00", "/%ff%fe",
                                  f"/traits/{'A' * 300}", "//", "/resource_providers/not-a-uuid"])
def test_path_that_is_none_is_404_in_json(still: PlacementClient, path: str) -> None:
    answer = still.get(path)
    assert answer.status_int == 404 and error_of(answer)["status"] == 404


@pytest.mark.parametrize(("headers", "status"), [
    ({"Content-Type": "text/plain"}, 415), ({"Content-Type": ""}, 400), ({"Content-Type": "application/json"}, 200),
    ({"Content-Type": "application/json; charset=utf-8", "Accept": "application/json"}, 200),
    ({"Accept": "text/html"}, 406), ({"Accept": "*/*"}, 200), ({"Accept": "nonsense"}, 200)])
def test_media_type_when_not_json_then_is_refused(still: PlacementClient, headers: dict[str, str], status: int,
                                                  ) -> None:
    answer = still.post("/resource_providers", {"name": uuid.uuid4().hex}, headers=headers)
    assert answer.status_int == status, answer.text


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff", b'{"name": "a", "name": "b"}', b"[" * 5000])
def test_body_when_it_is_no_object_then_is_400(still: PlacementClient, raw: bytes) -> None:
    assert still.request("POST", "/resource_providers", raw=raw).status_int == 400


def test_answers_have_times_from_1_15(still: PlacementClient) -> None:
    old, new = still.get("/resource_providers", version="1.14"), still.get("/resource_providers", version="1.15")
    assert "last-modified" not in old.headers and "cache-control" not in old.headers
    assert new.headers["last-modified"].endswith("GMT") and new.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_answers_without_a_body_that_are_about_a_trait_have_times_too(client: PlacementClient, method: str) -> None:
    client.put("/traits/CUSTOM_A")
    old, new = (client.request(method, "/traits/CUSTOM_A", version=version) for version in ("1.14", "1.15"))
    assert "last-modified" not in old.headers and old.status_int == new.status_int == 204
    assert new.headers["last-modified"].endswith("GMT") and new.headers["cache-control"] == "no-cache"


def test_query_when_unknown_or_doubled_then_is_400_with_its_code(still: PlacementClient) -> None:
    unknown, doubled = still.get("/resource_providers?colour=red"), still.get("/resource_providers?name=a&name=b")
    assert (unknown.status_int, error_of(unknown)["code"]) == (400, "placement.query.bad_value")
    assert "colour" in error_of(unknown)["detail"]
    assert (doubled.status_int, error_of(doubled)["code"]) == (400, "placement.query.duplicate_key")


# -- who may

def test_every_operation_asks_a_rule_that_there_is_and_every_rule_is_asked() -> None:
    assert {route.policy for route in ROUTES} == {rule.name for rule in RULES}
    asked = {f"{route.method} {route.path}" for route in ROUTES}
    assert asked == {operation for rule in RULES for operation in rule.operations}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_operation_when_a_member_asks_then_is_403(still: PlacementClient, route) -> None:  # type: ignore[no-untyped-def]
    path = route.path.replace("{uuid}", MISSING).replace("{consumer}", MISSING).replace("{name}", "CUSTOM_A")
    answer = still.request(route.method, f"{path}?project_id=another" if route.looks_first else path, token=DEMO)
    assert answer.status_int == 403 and route.policy in error_of(answer)["detail"]


def test_usages_of_the_own_project_when_a_reader_asks_then_are_shown(still: PlacementClient) -> None:
    assert still.get("/usages?project_id=demo", token=DEMO).status_int == 200
    assert still.get("/usages?project_id=other", token=DEMO).status_int == 403
    assert still.get("/usages", token=DEMO).status_int == 400


def test_rule_when_an_operators_file_says_otherwise_then_that_holds(tmp_path: Path, templates: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text('"placement:traits:list": "rule:project_reader_api"\n')
    conf = configuration()
    policy_options.set_defaults(conf)
    conf.set_override("policy_file", str(path), group="oslo_policy")
    cloud = SmallCloud(tmp_path, templates, computes=())
    tenant = PlacementClient(cloud, token=DEMO, conf=conf)
    assert tenant.get("/traits").status_int == 200 and tenant.get("/resource_classes").status_int == 403
    cloud.close()


def test_version_spans_of_routes_are_versions_that_there_are() -> None:
    for route in ROUTES:
        for text in filter(None, (route.since, route.until, route.body_since, route.body_until)):
            assert versions.MIN <= int(text.removeprefix("1.")) <= versions.MAX
