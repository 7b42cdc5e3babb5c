"""Flavors: lists, create to delete, who may use private ones, and extra specs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.api import ADMIN, DEMO, ApiClient

NEW = {"name": "new", "ram": 64, "vcpus": 1, "disk": 1}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_flavor("1", memory_mb=512, root_gb=1)
    made.conductor.add_flavor("2", memory_mb=1024, root_gb=20, extra_specs={"hw:numa_nodes": "1"})
    made.conductor.add_flavor("3", is_public=False, projects=("demo",))
    made.conductor.add_flavor("4", is_public=False, projects=("other",))
    return made


def ids(answer: Any) -> list[str]:
    return [flavor["id"] for flavor in answer.json["flavors"]]


@pytest.mark.parametrize(("query", "token", "shown"), [
    ("", DEMO, ["1", "2", "3"]), ("is_public=false", DEMO, ["1", "2", "3"]), ("", ADMIN, ["1", "2"]),
    ("is_public=none", ADMIN, ["1", "2", "3", "4"]), ("is_public=False", ADMIN, ["3", "4"]),
    ("minRam=600", ADMIN, ["2"]), ("minDisk=2", ADMIN, ["2"]), ("sort_key=memory_mb&sort_dir=desc", ADMIN, ["2", "1"]),
    ("limit=1&marker=1", ADMIN, ["2"]), ("limit=0", ADMIN, []), ("stranger=1", ADMIN, ["1", "2"])])
def test_list_shows_what_was_asked_and_may_be_seen(client: ApiClient, query: str, token: str, shown: list[str]) -> None:
    assert ids(client.get(f"/flavors?{query}", token=token)) == shown
    assert ids(client.get(f"/flavors/detail?{query}", token=token)) == shown


@pytest.mark.parametrize("query", ["is_public=maybe", "minRam=x", "minDisk=-1", "limit=-1", "limit=x", "marker=none",
                                   "sort_key=price", "sort_dir=up"])
def test_list_when_a_parameter_is_wrong_is_400(client: ApiClient, query: str) -> None:
    assert client.get(f"/flavors?{query}").status_int == 400


def test_list_by_name_from_2_102(client: ApiClient) -> None:
    assert ids(client.get("/flavors?name=m1.2", version="2.102")) == ["2"]
    assert client.get("/flavors?name=m1.2", version="2.101").status_int == 400
    assert ids(client.get("/flavors?name=m1.2", version="2.74")) == ["1", "2"]


def test_private_flavor_of_others_looks_absent(client: ApiClient) -> None:
    assert client.get("/flavors/3", token=DEMO).status_int == 200
    for path in ("/flavors/4", "/flavors/4/os-extra_specs", "/flavors/4/os-extra_specs/x"):
        assert client.get(path, token=DEMO).status_int == 404


def test_create_answers_200_with_the_flavor(client: ApiClient) -> None:
    answer = client.post("/flavors", {"flavor": {**NEW, "id": 42, "ram": "64", "swap": "5", "rxtx_factor": "1.5",
                                                 "OS-FLV-EXT-DATA:ephemeral": 2}})
    assert answer.status_int == 200
    flavor = client.conductor.flavors["42"]
    assert (flavor.memory_mb, flavor.swap_mb, flavor.rxtx_factor, flavor.ephemeral_gb) == (64, 5, 1.5, 2)
    assert answer.json["flavor"]["id"] == "42"


@pytest.mark.parametrize("id", [None, "auto"])
def test_create_without_an_id_makes_a_uuid(client: ApiClient, id: str | None) -> None:
    assert len(client.post("/flavors", {"flavor": {**NEW, "id": id}}).json["flavor"]["id"]) == 36


def test_private_flavor_when_created_then_no_project_has_access_yet(client: ApiClient) -> None:
    client.post("/flavors", {"flavor": {**NEW, "id": "p", "os-flavor-access:is_public": "no"}})
    assert client.conductor.flavors["p"].projects == ()
    assert client.get("/flavors/p/os-flavor-access").json == {"flavor_access": []}


@pytest.mark.parametrize("change", [{"name": "m1.1"}, {"id": "1"}])
def test_create_when_name_or_id_is_taken_is_409(client: ApiClient, change: dict[str, Any]) -> None:
    assert client.post("/flavors", {"flavor": {**NEW, **change}}).status_int == 409


@pytest.mark.parametrize("change", [
    {"name": ""}, {"name": " a"}, {"ram": 0}, {"ram": "1.5"}, {"vcpus": 2**31}, {"disk": -1}, {"id": " a"},
    {"id": "a\n"}, {"id": "a/b"}, {"rxtx_factor": 0}, {"os-flavor-access:is_public": "maybe"},
    {"stranger": 1}, {"description": "x"}])
def test_create_when_the_body_is_wrong_is_400(client: ApiClient, change: dict[str, Any]) -> None:
    assert client.post("/flavors", {"flavor": {**NEW, **change}}).status_int == 400


def test_create_under_v2_is_forgiving(client: ApiClient) -> None:
    client.prefix = "/v2"
    answer = client.post("/flavors", {"flavor": {**NEW, "name": " new ", "stranger": 1}})
    assert answer.status_int == 200
    assert answer.json["flavor"]["name"] == "new"
    assert answer.json["flavor"]["links"][0]["href"].startswith("http://localhost/v2/flavors/")


@pytest.mark.parametrize(("method", "path", "body"), [
    ("POST", "/flavors", {"flavor": NEW}), ("PUT", "/flavors/1", {"flavor": {"description": "x"}}),
    ("DELETE", "/flavors/1", None), ("POST", "/flavors/3/action", {"addTenantAccess": {"tenant": "x"}}),
    ("POST", "/flavors/3/action", {"removeTenantAccess": {"tenant": "demo"}}),
    ("GET", "/flavors/3/os-flavor-access", None),
    ("POST", "/flavors/1/os-extra_specs", {"extra_specs": {"a": "b"}}),
    ("PUT", "/flavors/1/os-extra_specs/a", {"a": "b"}),
    ("DELETE", "/flavors/2/os-extra_specs/hw:numa_nodes", None)])
def test_changes_are_for_admins(client: ApiClient, method: str, path: str, body: Any) -> None:
    before = dict(client.conductor.flavors)
    assert client.request(method, path, body, token=DEMO, version="2.60").status_int == 403
    assert client.conductor.flavors == before


def test_description_can_be_changed_and_taken_away(client: ApiClient) -> None:
    answer = client.put("/flavors/1", {"flavor": {"description": "text"}}, version="2.55")
    assert answer.json["flavor"]["description"] == "text"
    answer = client.put("/flavors/1", {"flavor": {"description": None}}, version="2.55")
    assert answer.json["flavor"]["description"] is None
    assert client.put("/flavors/1", {"flavor": {"description": "x"}}, version="2.54").status_int == 404
    assert client.put("/flavors/9", {"flavor": {"description": "x"}}, version="2.55").status_int == 404


def test_delete_answers_202_and_then_404(client: ApiClient) -> None:
    assert client.delete("/flavors/1").status_int == 202
    assert client.delete("/flavors/1").status_int == 404


@pytest.mark.parametrize(("token", "version", "shown"), [(ADMIN, "2.60", False), (ADMIN, "2.61", True),
                                                         (DEMO, "2.61", True)])
def test_extra_specs_in_a_flavor_from_2_61(client: ApiClient, token: str, version: str, shown: bool) -> None:
    assert ("extra_specs" in client.get("/flavors/2", token=token, version=version).json["flavor"]) is shown


# access

def test_access_of_a_public_flavor_is_404(client: ApiClient) -> None:
    assert client.get("/flavors/1/os-flavor-access").status_int == 404


def test_access_given_and_taken_is_answered_whole(client: ApiClient) -> None:
    given = client.post("/flavors/3/action", {"addTenantAccess": {"tenant": "new"}})
    assert [entry["tenant_id"] for entry in given.json["flavor_access"]] == ["demo", "new"]
    taken = client.post("/flavors/3/action", {"removeTenantAccess": {"tenant": "demo"}})
    assert taken.json == {"flavor_access": [{"flavor_id": "3", "tenant_id": "new"}]}


def test_access_given_twice_is_409_and_taken_twice_404(client: ApiClient) -> None:
    assert client.post("/flavors/3/action", {"addTenantAccess": {"tenant": "demo"}}).status_int == 409
    assert client.post("/flavors/3/action", {"removeTenantAccess": {"tenant": "none"}}).status_int == 404


def test_access_to_a_public_flavor_from_2_7_is_409(client: ApiClient) -> None:
    body = {"addTenantAccess": {"tenant": "demo"}}
    refused = client.post("/flavors/1/action", body, version="2.7")
    assert refused.json["conflictingRequest"] == {"code": 409, "message": "Cannot add access to a public flavor."}
    assert client.post("/flavors/1/action", body, version="2.6").status_int == 200


# extra specs

def test_specs_are_added_to_those_there_and_kept_as_text(client: ApiClient) -> None:
    answer = client.post("/flavors/2/os-extra_specs", {"extra_specs": {"a": 1, "b": "x"}})
    assert answer.json == {"extra_specs": {"a": "1", "b": "x"}}
    assert client.get("/flavors/2/os-extra_specs").json == {"extra_specs": {"a": "1", "b": "x", "hw:numa_nodes": "1"}}


def test_one_spec_is_shown_set_and_taken_away(client: ApiClient) -> None:
    path = "/flavors/2/os-extra_specs/hw:numa_nodes"
    assert client.get(path).json == {"hw:numa_nodes": "1"}
    assert client.put(path, {"hw:numa_nodes": "2"}).json == {"hw:numa_nodes": "2"}
    gone = client.delete(path)
    assert (gone.status_int, gone.body) == (200, b"")
    assert client.get(path).status_int == client.delete(path).status_int == 404


@pytest.mark.parametrize("body", [{"b": "x"}, {"a": "x", "b": "y"}, {}, {"a": None}, {"a": True}, {"a": "x" * 256}])
def test_put_of_another_key_or_several_is_400(client: ApiClient, body: dict[str, Any]) -> None:
    assert client.put("/flavors/2/os-extra_specs/a", body).status_int == 400


@pytest.mark.parametrize("key", ["a/b", "", "x" * 256, "ä", "a\n"])
def test_spec_with_an_odd_key_is_400(client: ApiClient, key: str) -> None:
    assert client.post("/flavors/2/os-extra_specs", {"extra_specs": {key: "x"}}).status_int == 400


@pytest.mark.parametrize(("version", "status"), [("2.85", 200), ("2.86", 400)])
def test_specs_of_known_namespaces_are_checked_from_2_86(client: ApiClient, version: str, status: int) -> None:
    for specs in ({"hw:numa_nodes": "none"}, {"hw:numa_node": 1}, {"mine:x": "y", "trait:HW_NIC": "required"}):
        answer = client.post("/flavors/1/os-extra_specs", {"extra_specs": specs}, version=version)
        assert answer.status_int == status
        key, value = next(iter(specs.items()))
        assert client.put(f"/flavors/1/os-extra_specs/{key}", {key: value}, version=version).status_int == (
            200 if key == "mine:x" else status)
    kept = set(client.conductor.flavors["1"].extra_specs) - {"mine:x"}
    assert bool(kept) == (status == 200)


@pytest.mark.parametrize(("key", "value", "code"), [
    ("hw:numa_nodes", "99999999999999999999", 400), ("hw:cpu_sockets", "2147483648", 400),
    ("hw:numa_mem.0", "9" * 255, 400), ("hw:numa_nodes", "-9999999999", 400),
    ("quota:disk_read_bytes_sec", "9" * 20, 400),
    ("quota:disk_read_bytes_sec", "10737418240", 200), ("hw:numa_nodes", "2", 200), ("hw:numa_nodes", "many", 200),
    ("mine:number", "9" * 40, 200), ("hw:cpu_policy", "9" * 40, 200)])
def test_spec_when_its_number_is_beyond_all_hosts_then_400_at_every_version(client: ApiClient, key: str, value: str,
                                                                            code: int) -> None:
    answer = client.post("/flavors/1/os-extra_specs", {"extra_specs": {key: value}}, token=ADMIN, version="2.1")
    assert answer.status_int == code, answer.text
    if code == 400:
        assert key in answer.json["badRequest"]["message"]
        assert client.put(f"/flavors/1/os-extra_specs/{key}", {key: value}, token=ADMIN,
                          version="2.104").status_int == 400
