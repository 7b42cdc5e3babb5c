"""Resource providers, inventories, aggregates, traits and classes over HTTP."""

from __future__ import annotations

import uuid

import pytest

from tests.fakes.placement_api import PlacementClient, claim, error_of

A, B = "a" * 8 + "-0000-4000-8000-" + "a" * 12, "b" * 8 + "-0000-4000-8000-" + "b" * 12


# -- providers

def test_provider_when_created_then_answers_as_its_version_says(client: PlacementClient) -> None:
    old = client.post("/resource_providers", {"name": "one", "uuid": A}, version="1.19")
    assert (old.status_int, old.body, old.headers["location"]) == (201, b"", f"http://localhost/resource_providers/{A}")
    new = client.post("/resource_providers", {"name": "two", "parent_provider_uuid": A}, version="1.20")
    assert new.status_int == 200
    assert (new.json["parent_provider_uuid"], new.json["root_provider_uuid"], new.json["generation"]) == (A, A, 0)
    assert uuid.UUID(new.json["uuid"])


@pytest.mark.parametrize(("version", "links", "tree"), [
    ("1.0", {"self", "inventories", "usages"}, False), ("1.1", {"self", "inventories", "usages", "aggregates"}, False),
    ("1.6", {"self", "inventories", "usages", "aggregates", "traits"}, False),
    ("1.14", {"self", "inventories", "usages", "aggregates", "traits", "allocations"}, True)])
def test_provider_when_shown_then_has_the_fields_of_its_version(client: PlacementClient, version: str, links: set[str],
                                                                tree: bool) -> None:
    id = client.provider("one")
    shown = client.get(f"/resource_providers/{id}", version=version).json
    assert {link["rel"] for link in shown["links"]} == links
    assert ("root_provider_uuid" in shown) is tree
    assert client.get("/resource_providers", version=version).json["resource_providers"] == [shown]


def test_links_have_the_path_that_the_api_is_mounted_at(client: PlacementClient) -> None:
    id = client.provider("one")
    import webob  # noqa: PLC0415

    request = webob.Request.blank(f"/resource_providers/{id}", headers={"X-Auth-Token": "admin:admin"})
    request.script_name = "/placement"
    shown = request.get_response(client.application).json
    assert shown["links"][0]["href"] == f"/placement/resource_providers/{id}"


@pytest.mark.parametrize(("body", "version", "named"), [
    ({}, "1.39", "name"), ({"name": ""}, "1.39", "name"), ({"name": "x" * 201}, "1.39", "name"),
    ({"name": 1}, "1.39", "name"), ({"name": "x", "uuid": "y"}, "1.39", "uuid"),
    ({"name": "x", "colour": 1}, "1.39", "colour"), ({"name": "x", "parent_provider_uuid": None}, "1.13", "parent"),
    ({"name": "x", "parent_provider_uuid": 3}, "1.14", "parent_provider_uuid")])
def test_provider_when_the_body_is_wrong_then_400_names_the_field(still: PlacementClient, body: dict[str, object],
                                                                  version: str, named: str) -> None:
    answer = still.post("/resource_providers", body, version=version)
    assert answer.status_int == 400 and named in error_of(answer)["detail"]


def test_provider_when_the_name_is_taken_then_409_with_its_code(client: PlacementClient) -> None:
    client.provider("one")
    answer = client.post("/resource_providers", {"name": "one"})
    assert (answer.status_int, error_of(answer)["code"]) == (409, "placement.duplicate_name")


def test_provider_when_updated_then_may_get_another_parent_from_1_37(client: PlacementClient) -> None:
    top, other, child = client.provider("top"), client.provider("other"), client.provider("child")
    path = f"/resource_providers/{child}"
    first = client.put(path, {"name": "kid", "parent_provider_uuid": top}, version="1.14")
    assert (first.status_int, first.json["name"], first.json["root_provider_uuid"]) == (200, "kid", top)
    moved = {"name": "kid", "parent_provider_uuid": other}
    assert client.put(path, moved, version="1.36").status_int == 400
    assert client.put(path, moved, version="1.37").json["parent_provider_uuid"] == other
    assert client.put(path, {"name": "kid", "parent_provider_uuid": None}).json["root_provider_uuid"] == child
    assert client.put(path, {"name": "kid"}, version="1.0").status_int == 200


def test_provider_when_it_is_needed_then_delete_is_409_with_its_code(client: PlacementClient) -> None:
    top = client.provider("top", VCPU=4)
    child = client.provider("child", top)
    parent = client.delete(f"/resource_providers/{top}")
    assert (parent.status_int, error_of(parent)["code"]) == (
        409, "placement.resource_provider.cannot_delete_parent")
    assert client.delete(f"/resource_providers/{child}").status_int == 204
    assert client.allocate(A, top, VCPU=1).status_int == 204
    used = client.delete(f"/resource_providers/{top}")
    assert (used.status_int, error_of(used)["code"]) == (409, "placement.resource_provider.inuse")
    assert client.delete(f"/resource_providers/{A}").status_int == 404


def test_providers_when_filtered_then_those_that_fit_are_listed(client: PlacementClient) -> None:
    big, small = client.provider("big", VCPU=16), client.provider("small", VCPU=2)
    client.give_traits(big, "HW_CPU_X86_AVX", "CUSTOM_GOLD")
    client.give_traits(small, "HW_CPU_X86_SSE")
    client.put(f"/resource_providers/{small}/aggregates", {"aggregates": [A], "resource_provider_generation":
                                                           client.generation(small)})

    def found(query: str, version: str = "1.39") -> list[str]:
        answer = client.get(f"/resource_providers?{query}", version=version)
        assert answer.status_int == 200, answer.text
        return [one["name"] for one in answer.json["resource_providers"]]

    assert found("name=big", "1.0") == ["big"] and found(f"uuid={small.upper()}") == ["small"]
    assert found("resources=VCPU:8", "1.4") == ["big"] and found("resources=VCPU:2") == ["big", "small"]
    assert found(f"member_of={A}", "1.3") == ["small"] and found(f"member_of=in:{A},{B}", "1.3") == ["small"]
    assert found(f"member_of={A}&member_of={B}", "1.24") == [] and found(f"member_of=!{A}", "1.32") == ["big"]
    assert found(f"in_tree={big}", "1.14") == ["big"]
    assert found("required=HW_CPU_X86_AVX,CUSTOM_GOLD", "1.18") == ["big"]
    assert found("required=!CUSTOM_GOLD", "1.22") == ["small"]
    assert found("required=in:HW_CPU_X86_AVX,HW_CPU_X86_SSE&required=!CUSTOM_GOLD") == ["small"]


@pytest.mark.parametrize(("query", "version", "code"), [
    ("resources=VCPU:1", "1.3", "bad_value"), ("resources=VCPU", "1.4", "bad_value"),
    ("resources=VCPU:0", "1.4", "bad_value"), ("resources=VCPU:1,VCPU:2", "1.4", "bad_value"),
    ("resources=", "1.4", "bad_value"), ("resources=HORSES:1", "1.4", "bad_value"),
    ("required=HW_HORSES", "1.18", "bad_value"), ("resources=vcpu:1", "1.4", "bad_value"),
    ("resources=VCPU:99999999999999999999", "1.4", "bad_value"), ("resources=VCPU:%D9%A1", "1.4", "bad_value"),
    ("member_of=x", "1.3", "bad_value"), (f"member_of={A},{B}", "1.39", "bad_value"),
    ("member_of=in:", "1.39", "bad_value"), (f"member_of=!{A}", "1.31", "bad_value"),
    (f"member_of={A}&member_of={B}", "1.23", "duplicate_key"),
    ("in_tree=x", "1.14", "bad_value"), ("uuid=x", "1.0", "bad_value"),
    ("required=", "1.18", "bad_value"), ("required=!A", "1.21", "bad_value"), ("required=A,!A", "1.22", "bad_value"),
    ("required=in:A,B", "1.38", "bad_value"), ("required=A&required=B", "1.38", "bad_value"),
    ("required=in:A,!B", "1.39", "bad_value"), ("limit=1", "1.39", "bad_value")])
def test_providers_when_a_filter_is_wrong_then_400(still: PlacementClient, query: str, version: str, code: str,
                                                   ) -> None:
    answer = still.get(f"/resource_providers?{query}", version=version)
    assert answer.status_int == 400
    if int(version[2:]) >= 23:
        assert error_of(answer)["code"] == f"placement.query.{code}"


# -- inventories

def test_inventories_when_written_then_are_shown_with_their_defaults(client: PlacementClient) -> None:
    path = f"/resource_providers/{client.provider('one')}/inventories"
    assert client.get(path).json == {"resource_provider_generation": 0, "inventories": {}}
    client.put("/resource_classes/CUSTOM_X")
    full = {"total": 8, "reserved": 1, "min_unit": 1, "max_unit": 4, "step_size": 1, "allocation_ratio": 2.5}
    written = client.put(path, {"resource_provider_generation": 0, "inventories": {
        "VCPU": full, "CUSTOM_X": {"total": 1}}}, version="1.0")
    assert (written.status_int, written.json["resource_provider_generation"]) == (200, 1)
    assert client.get(f"{path}/VCPU").json == {"resource_provider_generation": 1, **full}
    assert client.get(f"{path}/CUSTOM_X").json == {
        "resource_provider_generation": 1, "total": 1, "reserved": 0, "min_unit": 1, "max_unit": 2147483647,
        "step_size": 1, "allocation_ratio": 1.0}
    assert client.get(f"{path}/DISK_GB").status_int == 404


def test_inventory_when_one_is_made_changed_and_deleted_then_the_others_stay(client: PlacementClient) -> None:
    id = client.provider("one", VCPU=4)
    path = f"/resource_providers/{id}/inventories"
    made = client.post(path, {"resource_class": "DISK_GB", "total": 10})
    assert made.status_int == 201 and made.headers["location"].endswith(f"{path}/DISK_GB")
    assert client.post(path, {"resource_class": "DISK_GB", "total": 10}).status_int == 409
    changed = client.put(f"{path}/DISK_GB", {"total": 20, "resource_provider_generation": client.generation(id)})
    assert (changed.status_int, changed.json["total"]) == (200, 20)
    assert client.delete(f"{path}/DISK_GB").status_int == 204
    assert client.delete(f"{path}/DISK_GB").status_int == 404
    assert set(client.get(path).json["inventories"]) == {"VCPU"}
    assert client.delete(path, version="1.5").status_int == 204
    assert client.get(path).json["inventories"] == {}


def test_inventory_when_the_generation_is_old_then_409_with_its_code(client: PlacementClient) -> None:
    path = f"/resource_providers/{client.provider('one', VCPU=4)}/inventories"
    answer = client.put(path, {"resource_provider_generation": 0, "inventories": {}})
    assert (answer.status_int, error_of(answer)["code"]) == (409, "placement.concurrent_update")


def test_inventory_when_it_is_used_then_may_not_go(client: PlacementClient) -> None:
    id = client.provider("one", VCPU=4)
    client.allocate(A, id, VCPU=1)
    answer = client.delete(f"/resource_providers/{id}/inventories/VCPU")
    assert (answer.status_int, error_of(answer)["code"]) == (409, "placement.inventory.inuse")


def test_inventory_when_all_of_it_is_reserved_then_is_taken_from_1_26(client: PlacementClient) -> None:
    path = f"/resource_providers/{client.provider('one')}/inventories"
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4, "reserved": 4}}}
    assert client.put(path, body, version="1.25").status_int == 400
    assert client.put(path, body, version="1.26").status_int == 200
    over = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 4, "reserved": 5}}}
    assert client.put(path, over).status_int == 400


@pytest.mark.parametrize("wrong", [{"total": 0}, {"total": -1}, {"total": 2**31}, {"total": 1.5}, {"total": "8"},
                                   {"reserved": -1}, {"min_unit": 0}, {"max_unit": 0}, {"step_size": 0},
                                   {"allocation_ratio": 0}, {"allocation_ratio": 1e39}, {"allocation_ratio": "1"},
                                   {"allocation_ratio": True}, {"colour": 1}])
def test_inventory_when_a_field_is_wrong_then_400_names_it(client: PlacementClient, wrong: dict[str, object]) -> None:
    path = f"/resource_providers/{client.provider('one')}/inventories"
    answer = client.put(path, {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8, **wrong}}})
    assert answer.status_int == 400 and next(iter(wrong)) in error_of(answer)["detail"]
    unnamed = client.put(path, {"resource_provider_generation": 0, "inventories": {"vcpu": {"total": 1}}})
    assert unnamed.status_int == 400


# -- aggregates

def test_aggregates_are_a_list_and_from_1_19_an_object_with_the_generation(client: PlacementClient) -> None:
    path = f"/resource_providers/{client.provider('one')}/aggregates"
    assert client.put(path, [A, B], version="1.18").json == {"aggregates": [A, B]}
    assert client.get(path, version="1.19").json == {"aggregates": [A, B], "resource_provider_generation": 0}
    assert client.put(path, {"aggregates": [A], "resource_provider_generation": 1}).status_int == 409
    assert client.put(path, {"aggregates": [A], "resource_provider_generation": 0}).json == {
        "aggregates": [A], "resource_provider_generation": 1}
    for wrong, version in ((["x"], "1.1"), ([A, A], "1.1"), ({"aggregates": []}, "1.18"), ([A], "1.19"),
                           ({"aggregates": []}, "1.19")):
        assert client.put(path, wrong, version=version).status_int == 400


def test_aggregates_when_spelled_without_dashes_then_answers_and_filters_spell_them_so(client: PlacementClient) -> None:
    provider, plain = client.provider("one"), B.replace("-", "")
    path = f"/resource_providers/{provider}/aggregates"
    assert client.put(path, [plain], version="1.18").json == {"aggregates": [plain]}
    assert client.get(path, version="1.18").json == {"aggregates": [plain]}
    found = client.get(f"/resource_providers?member_of={plain}").json["resource_providers"]
    assert [one["uuid"] for one in found] == [provider]


# -- traits and classes

def test_traits_are_made_listed_and_deleted(client: PlacementClient) -> None:
    assert client.put("/traits/CUSTOM_A").status_int == 201
    again = client.put("/traits/CUSTOM_A")
    assert again.status_int == 204 and again.headers["location"].endswith("/traits/CUSTOM_A")
    assert client.get("/traits/CUSTOM_A").status_int == 204 and client.get("/traits/CUSTOM_B").status_int == 404
    assert client.put("/traits/HW_MINE").status_int == 400
    assert client.delete("/traits/STORAGE_DISK_SSD").status_int == 400
    assert client.get("/traits?name=startswith:CUSTOM").json["traits"] == ["CUSTOM_A"]
    assert client.get("/traits?name=in:CUSTOM_A,HW_NUMA_ROOT,NOPE").json["traits"] == ["CUSTOM_A", "HW_NUMA_ROOT"]
    id = client.provider("one")
    client.give_traits(id, "CUSTOM_A")
    assert client.get("/traits?associated=True").json["traits"] == ["CUSTOM_A"]
    assert "CUSTOM_A" not in client.get("/traits?associated=false").json["traits"]
    assert client.delete("/traits/CUSTOM_A").status_int == 409
    assert client.delete(f"/resource_providers/{id}/traits").status_int == 204
    assert client.get(f"/resource_providers/{id}/traits").json["traits"] == []
    assert client.delete("/traits/CUSTOM_A").status_int == 204 and client.delete("/traits/CUSTOM_A").status_int == 404


@pytest.mark.parametrize("query", ["name=CUSTOM_A", "name=like:A", "associated=1", "associated=", "name="])
def test_traits_when_the_filter_is_wrong_then_400(still: PlacementClient, query: str) -> None:
    assert still.get(f"/traits?{query}").status_int == 400


def test_traits_of_a_provider_when_unknown_or_old_then_are_refused(client: PlacementClient) -> None:
    path = f"/resource_providers/{client.provider('one')}/traits"
    assert client.put(path, {"traits": ["CUSTOM_NO"], "resource_provider_generation": 0}).status_int == 400
    assert client.put(path, {"traits": ["no"], "resource_provider_generation": 0}).status_int == 400
    assert client.put(path, {"traits": []}).status_int == 400
    assert client.put(path, {"traits": [], "resource_provider_generation": 7}).status_int == 409


def test_classes_are_made_renamed_and_deleted(client: PlacementClient) -> None:
    made = client.post("/resource_classes", {"name": "CUSTOM_A"})
    assert made.status_int == 201 and made.headers["location"].endswith("/resource_classes/CUSTOM_A")
    assert client.post("/resource_classes", {"name": "CUSTOM_A"}).status_int == 409
    assert client.put("/resource_classes/CUSTOM_A", version="1.7").status_int == 204
    assert client.put("/resource_classes/CUSTOM_B", version="1.7").status_int == 201
    renamed = client.put("/resource_classes/CUSTOM_B", {"name": "CUSTOM_C"}, version="1.6")
    assert (renamed.status_int, renamed.json["name"]) == (200, "CUSTOM_C")
    assert client.put("/resource_classes/CUSTOM_C", version="1.6").status_int == 415
    names = [one["name"] for one in client.get("/resource_classes").json["resource_classes"]]
    assert names[-2:] == ["CUSTOM_A", "CUSTOM_C"] and "VCPU" in names
    assert client.get("/resource_classes/VCPU").json["name"] == "VCPU"
    assert client.get("/resource_classes/CUSTOM_B").status_int == 404
    assert client.delete("/resource_classes/VCPU").status_int == 400
    assert client.delete("/resource_classes/CUSTOM_C").status_int == 204
    for wrong in ("VCPU", "CUSTOM_", "custom_a", "CUSTOM_é"):
        assert client.post("/resource_classes", {"name": wrong}).status_int == 400


def test_usages_of_a_provider_are_by_class(client: PlacementClient) -> None:
    id = client.provider("one", VCPU=4, DISK_GB=10)
    client.put(f"/allocations/{A}", claim({id: {"VCPU": 3}}))
    shown = client.get(f"/resource_providers/{id}/usages", version="1.0").json
    assert shown == {"resource_provider_generation": client.generation(id), "usages": {"VCPU": 3, "DISK_GB": 0}}
