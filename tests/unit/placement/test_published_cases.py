"""What the published test cases of Placement expect, where it is not what the reference alone would suggest."""

from __future__ import annotations

import uuid

import pytest

from nova.placement.routes import ROUTES
from nova.placement.routing import PlacementRoute
from nova.placement.versions import SERIES
from nova.web.ranges import within
from tests.fakes.api import configuration
from tests.fakes.placement_api import PlacementClient, error_of
from tests.fakes.small_cloud import SmallCloud

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

MISSING = str(uuid.uuid4())
LONG = "CUSTOM_" + "A" * 249
NAMES = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2")


def asked(client: PlacementClient) -> list[object]:
    return [arguments[0] for name, arguments in client.conductor.asked if name in ("list_candidates", "list_providers")]


@pytest.mark.parametrize(("query", "version"), [
    ("resources=VCPU:1&limit=7&limit=9", "1.39"), ("resources=VCPU:1&limit=7&limit=9", "1.16"),
    ("resources=VCPU:1&required={0}&required={1}", "1.17"), ("resources=VCPU:1&required={0}&required={1}", "1.38"),
    ("resources1=VCPU:1&required1={0}&required1={1}", "1.25"),
    ("resources_a=VCPU:1&required_a={0}&required_a={1}", "1.38"),
    ("resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate&group_policy=none", "1.25"),
    ("resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate&group_policy=none", "1.39")])
def test_parameter_when_it_comes_twice_then_the_last_one_holds(client: PlacementClient, query: str,
                                                               version: str) -> None:
    parts = query.format(*NAMES).split("&")
    doubled = {part.partition("=")[0] for part in parts
               if sum(other.startswith(f"{part.partition('=')[0]}=") for other in parts) > 1}
    last = [part for index, part in enumerate(parts)
            if part.partition("=")[0] not in doubled or index == len(parts) - 1]
    for chosen in (parts, last):
        assert client.get(f"/allocation_candidates?{'&'.join(chosen)}", version=version).status_int == 200
    both = asked(client)
    assert len(both) == 2 and both[0] == both[1]


@pytest.mark.parametrize("version", ["1.18", "1.38", "1.39"])
def test_required_of_a_list_of_providers_when_it_comes_twice_then_both_hold_from_1_39(client: PlacementClient,
                                                                                     version: str) -> None:
    first, second = client.provider("first", VCPU=1), client.provider("second", VCPU=1)
    client.give_traits(first, *NAMES)
    client.give_traits(second, NAMES[1])
    found = client.get("/resource_providers?required={}&required={}".format(*NAMES), version=version)
    assert {one["uuid"] for one in found.json["resource_providers"]} == \
        ({first} if version == "1.39" else {first, second})


@pytest.mark.parametrize("name", ["resources", "in_tree", "root_required"])
def test_parameter_when_which_one_counts_would_be_a_guess_then_twice_is_400(still: PlacementClient, name: str) -> None:
    value = {"resources": "VCPU:1", "in_tree": MISSING, "root_required": NAMES[0]}[name]
    answer = still.get(f"/allocation_candidates?resources=VCPU:1&{name}={value}&{name}={value}")
    assert (answer.status_int, error_of(answer)["code"]) == (400, "placement.query.duplicate_key")


@pytest.mark.parametrize("path", ["/resource_providers", "/allocation_candidates"])
@pytest.mark.parametrize(("amount", "status"), [("10%20", 200), ("%2010", 200), ("1%200", 400), ("%20", 400)])
def test_amount_when_blanks_stand_around_it_then_they_do_not_count(still: PlacementClient, path: str, amount: str,
                                                                  status: int) -> None:
    assert still.get(f"{path}?resources=DISK_GB:{amount}").status_int == status


def test_same_subtree_when_a_suffix_stands_there_twice_then_it_counts_once(client: PlacementClient) -> None:
    query = "/allocation_candidates?resources_a=VCPU:1&resources_b=VCPU:1&group_policy=none&same_subtree="
    assert [client.get(query + value).status_int for value in ("_a,_b,_a", "_a,_b")] == [200, 200]
    both = asked(client)
    assert both[0] == both[1]


@pytest.mark.parametrize("query", [
    "", "limit=1&limit=2", "group_policy=none", "group_policy=none&group_policy=none",
    "required={0}&required={1}", "required1={0}&required1={1}", "member_of=" + MISSING])
@pytest.mark.parametrize("version", ["1.33", "1.39"])
def test_candidates_when_no_resources_are_asked_for_then_the_code_is_missing_value(still: PlacementClient, query: str,
                                                                                  version: str) -> None:
    answer = still.get(f"/allocation_candidates?{query.format(*NAMES)}", version=version)
    assert (answer.status_int, error_of(answer)["code"]) == (400, "placement.query.missing_value")


@pytest.mark.parametrize("path", ["/traits/", "/resource_classes/", f"/resource_providers/{MISSING}/inventories/"])
@pytest.mark.parametrize(("method", "status"), [("PUT", 400), ("GET", 404), ("DELETE", 404)])
def test_name_when_it_is_longer_than_any_then_to_make_it_is_400(still: PlacementClient, path: str, method: str,
                                                               status: int) -> None:
    answer = still.request(method, path + LONG)
    assert answer.status_int == status and len(answer.body) < 1000
    assert still.request(method, path + "A" * 5000).status_int == 404


def test_inventory_when_the_provider_has_none_of_the_class_then_to_write_it_is_400(client: PlacementClient) -> None:
    uuid = client.provider("p", VCPU=1)
    path = f"/resource_providers/{uuid}/inventories/DISK_GB"
    body = {"resource_provider_generation": client.generation(uuid), "total": 4}
    answer = client.put(path, body)
    assert answer.status_int == 400 and "DISK_GB" in error_of(answer)["detail"]
    assert client.get(path).status_int == client.delete(path).status_int == 404


@pytest.mark.parametrize("route", [route for route in ROUTES if route.body and "{uuid}" in route.path],
                         ids=lambda route: route.id)
@pytest.mark.parametrize("raw", [b"7", b"{", b"[1]", b'{"colour": 1}'])
def test_body_when_the_provider_is_unknown_then_that_is_said_first(client: PlacementClient, route: PlacementRoute,
                                                                  raw: bytes) -> None:
    known = client.provider("known")
    statuses = [client.request(route.method, route.path.format(uuid=uuid, name="VCPU"), raw=raw).status_int
                for uuid in (MISSING, known)]
    assert statuses == [404, 400]


@pytest.mark.parametrize("version", range(SERIES.first, SERIES.last + 1))
def test_accept_when_it_has_no_json_then_only_operations_that_answer_with_a_body_are_406(still: PlacementClient,
                                                                                       version: int) -> None:
    silent = {"POST /resource_classes": 2, "PUT /resource_classes/{name}": 7, "GET /traits/{name}": 6,
              "PUT /traits/{name}": 6, "POST /allocations": 13, "PUT /allocations/{consumer}": 0, "POST /reshaper": 30}
    for route in ROUTES:
        if not within(version, route.since, route.until):
            continue
        path = route.path.format(uuid=MISSING, consumer=MISSING, name="CUSTOM_NOBODYS")
        query = "?project_id=p" if route.looks_first else ""
        answer = still.request(route.method, path + query, version=f"1.{version}", headers={"Accept": "text/plain"})
        has_none = route.method == "DELETE" or version >= silent.get(route.id, 99)
        assert (answer.status_int == 406) is not has_none, route.id


@pytest.mark.parametrize("version", range(SERIES.first, SERIES.last + 1))
def test_root_when_a_version_is_asked_for_then_it_has_that_versions_headers(still: PlacementClient,
                                                                           version: int) -> None:
    shown, refused = still.get("/", version=f"1.{version}"), still.delete("/", version=f"1.{version}")
    assert (shown.status_int, refused.status_int) == (200, 405)
    for answer in (shown, refused):
        assert answer.headers["openstack-api-version"] == f"placement 1.{version}"
    assert ("last-modified" in shown.headers, "cache-control" in shown.headers) == (version >= 15,) * 2


@pytest.mark.parametrize("path", ["/", "/resource_providers"])
def test_options_when_no_origin_is_allowed_then_is_405(still: PlacementClient, path: str) -> None:
    headers = {"Origin": "http://elsewhere", "Access-Control-Request-Method": "GET"}
    answer = still.request("OPTIONS", path, headers=headers)
    assert answer.status_int == 405 and "access-control-allow-origin" not in answer.headers


def test_options_when_an_origin_is_allowed_then_is_answered(tmp_path, templates) -> None:  # type: ignore[no-untyped-def]
    conf = configuration()
    PlacementClient(cloud := SmallCloud(tmp_path, templates, computes=()), conf=conf)
    conf.set_override("allowed_origin", ["http://ours"], group="cors")
    answer = PlacementClient(cloud, conf=conf).request(
        "OPTIONS", "/resource_providers", headers={"Origin": "http://ours", "Access-Control-Request-Method": "GET"})
    assert (answer.status_int, answer.headers["access-control-allow-origin"]) == (200, "http://ours")
    cloud.close()
