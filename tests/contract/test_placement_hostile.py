"""Whatever comes in, Placement's API answers with a 4xx (or does as asked), in its own form; never with a 500."""

from __future__ import annotations

import json
import random
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
import webob

from nova.placement.routes import ROUTES, PlacementRoute
from tests.fakes.placement_api import PlacementClient
from tests.fakes.small_cloud import SmallCloud, make_templates

ID = "c" * 8 + "-0000-4000-8000-" + "c" * 12
HUGE = 10**40
SCALARS: list[Any] = [None, True, -1, 0, 2**31, 2**63, HUGE, 1.5, 1e308, "", " ", "x" * 5000, "é", "\u202e", "'; --",
                      "\x00", "VCPU", "CUSTOM_A", ID, ID.upper(), [], {}, [[]], [None], {"": 1}, {ID: None},
                      {"a": {"b": {}}}]
QUERY_VALUES = ["", ",", ":", "!", "in:", "!in:", "in:,", "VCPU:", "VCPU:1", "VCPU:-1", "VCPU:1:1", "VCPU:٣",
                "A" * 3000, f"in:{ID}", f"!{ID}", f"!in:{ID},", "CUSTOM_A,!CUSTOM_A", "%", "\x00", "\ud7ff", "1",
                "-1", "9" * 30, "isolate", "none", "_A", "a,b", "true", "startswith:", "in:A"]
VERSIONS = [None, "1.0", "1.4", "1.7", "1.11", "1.12", "1.18", "1.22", "1.25", "1.28", "1.30", "1.33", "1.36", "1.39"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlacementClient]:
    cloud = SmallCloud(tmp_path_factory.mktemp("cloud"), make_templates(tmp_path_factory.mktemp("schemas")),
                       computes=("a",))
    made = PlacementClient(cloud)
    made.put("/traits/CUSTOM_A")
    made.post("/resource_providers", {"name": "one", "uuid": ID})
    yield made
    cloud.close()


def judge(answer: webob.Response, what: object) -> None:
    assert answer.status_int < 500, f"{what!r:.400}: {answer.text}"
    if answer.status_int >= 400:
        (fault,) = answer.json["errors"]
        assert fault["status"] == answer.status_int and fault["detail"] and fault["request_id"], what
        assert len(answer.body) < 4000, what


def paths(route: PlacementRoute) -> Iterator[str]:
    for name in ("CUSTOM_A", "VCPU", "é", "a b", "A" * 255, "A" * 256, "\x00", "'", "..", "CUSTOM_" + "A" * 249):
        text = urllib.parse.quote(name, safe="")
        yield route.path.replace("{uuid}", ID).replace("{consumer}", ID).replace("{name}", text)
        yield route.path.replace("{uuid}", text).replace("{consumer}", text).replace("{name}", text)


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method} {one.path}")
def test_any_name_in_a_path_is_no_500(client: PlacementClient, route: PlacementRoute) -> None:
    if route.method == "DELETE" and route.path == "/resource_providers/{uuid}":
        pytest.skip("the others need the provider")
    for path in set(paths(route)):
        judge(client.request(route.method, path, {} if route.body else None), path)


WITH_BODY = [route for route in ROUTES if route.body]


def samples(route: PlacementRoute) -> dict[str, Any]:
    """A body of the newest version that is nearly right, for values to be put into."""
    consumer = {"allocations": {ID: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u",
                "consumer_generation": None, "consumer_type": "JOB", "mappings": {"": [ID]}}
    inventory = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": inventory}}
    return {
        "POST /resource_providers": {"name": "n", "uuid": ID, "parent_provider_uuid": None},
        "PUT /resource_providers/{uuid}": {"name": "one", "parent_provider_uuid": None},
        "POST /resource_providers/{uuid}/inventories": {"resource_class": "VCPU", **inventory},
        "PUT /resource_providers/{uuid}/inventories": inventories,
        "PUT /resource_providers/{uuid}/inventories/{name}": {"resource_provider_generation": 0, **inventory},
        "PUT /resource_providers/{uuid}/aggregates": {"aggregates": [ID], "resource_provider_generation": 0},
        "PUT /resource_providers/{uuid}/traits": {"traits": ["CUSTOM_A"], "resource_provider_generation": 0},
        "POST /resource_classes": {"name": "CUSTOM_B"}, "PUT /resource_classes/{name}": {"name": "CUSTOM_B"},
        "POST /allocations": {ID: consumer}, "PUT /allocations/{consumer}": consumer,
        "POST /reshaper": {"inventories": {ID: inventories}, "allocations": {ID: consumer}},
    }[f"{route.method} {route.path}"]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, key))


def put_at(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    copied = json.loads(json.dumps(body))
    inner = copied
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return copied


@pytest.mark.parametrize("route", WITH_BODY, ids=lambda one: f"{one.method} {one.path}")
def test_any_value_at_any_place_of_a_body_is_no_500(client: PlacementClient, route: PlacementRoute) -> None:
    body, choose = samples(route), random.Random(f"{route.method} {route.path}")
    path = route.path.replace("{uuid}", ID).replace("{consumer}", ID).replace("{name}", "CUSTOM_A")
    for place in places(body):
        for value in choose.sample(SCALARS, 12):
            wrong = put_at(body, place, value)
            version = choose.choice(VERSIONS)
            judge(client.request(route.method, path, raw=json.dumps(wrong).encode(), version=version),
                  (version, wrong))
        if place:
            judge(client.request(route.method, path, raw=json.dumps(put_at(body, (*place[:-1], "other"), 1)).encode())
                  if not isinstance(place[-1], int) else client.get("/"), place)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.query.params], ids=lambda one: one.path)
def test_any_value_of_any_parameter_is_no_500(client: PlacementClient, route: PlacementRoute) -> None:
    names = ["name", "uuid", "member_of", "resources", "in_tree", "required", "limit", "group_policy", "resources1",
             "required_A", "member_of1", "in_tree_A", "same_subtree", "root_required", "project_id", "user_id",
             "consumer_type", "associated", "", "x" * 300, "\x00"]
    choose = random.Random(route.path)
    for _ in range(250):
        pairs = [(choose.choice(names), choose.choice(QUERY_VALUES)) for _ in range(choose.randint(1, 4))]
        if choose.random() < 0.5:
            pairs.append(("resources", "VCPU:1"))
        query = urllib.parse.urlencode(pairs, encoding="utf-8", errors="replace")
        judge(client.get(f"{route.path}?{query}", version=choose.choice(VERSIONS)), pairs)


@pytest.mark.parametrize("query", ["%ff=%fe", "a" * 20000, "&" * 5000, "resources=%00", "name=%ed%a0%80", "=&=", "%"])
def test_query_that_is_none_is_no_500(client: PlacementClient, query: str) -> None:
    for path in ("/resource_providers", "/allocation_candidates", "/usages", "/traits"):
        judge(client.get(f"{path}?{query}"), query)


@pytest.mark.parametrize("headers", [
    {"OpenStack-API-Version": "placement"}, {"OpenStack-API-Version": "placement 1.é"}, {"Accept": "\x01"},
    {"Content-Length": "-1"}, {"Content-Length": "x"}, {"Content-Type": "é"}, {"Accept": "a/b;q=x"},
    {"OpenStack-API-Version": "placement 1." + "9" * 400}, {"X-OpenStack-Request-Id": "\x02"}])
def test_header_that_is_odd_is_no_500(client: PlacementClient, headers: dict[str, str]) -> None:
    answer = client.request("POST", "/resource_classes", {"name": "CUSTOM_ODD"}, headers=headers, version=None)
    assert answer.status_int < 500, headers
