"""Allocations, usages, reshaping and candidates over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from nova.placement.handlers.allocations import NOBODY
from tests.fakes.placement_api import SERVICE, PlacementClient, claim, error_of

A, B = "a" * 8 + "-0000-4000-8000-" + "a" * 12, "b" * 8 + "-0000-4000-8000-" + "b" * 12
OWNER = {"project_id": "p1", "user_id": "u1"}


@pytest.fixture
def host(client: PlacementClient) -> str:
    return client.provider("host", VCPU=8, MEMORY_MB=1024)


# -- allocations

def test_allocations_before_1_12_are_a_list_and_from_1_8_have_an_owner(client: PlacementClient, host: str) -> None:
    listed = {"allocations": [{"resource_provider": {"uuid": host}, "resources": {"VCPU": 2}}]}
    assert client.put(f"/allocations/{A}", listed, version="1.7").status_int == 204
    assert client.get(f"/allocations/{A}").json["project_id"] == NOBODY
    assert client.put(f"/allocations/{B}", listed, version="1.8").status_int == 400
    assert client.put(f"/allocations/{B}", {**listed, **OWNER}, version="1.11").status_int == 204
    assert client.put(f"/allocations/{B}", {**listed, **OWNER}, version="1.12").status_int == 400
    twice = {"allocations": [*listed["allocations"], *listed["allocations"]]}
    assert client.put(f"/allocations/{A}", twice, version="1.7").status_int == 400


@pytest.mark.parametrize(("version", "fields"), [
    ("1.0", {"allocations"}), ("1.12", {"allocations", "project_id", "user_id"}),
    ("1.28", {"allocations", "project_id", "user_id", "consumer_generation"}),
    ("1.38", {"allocations", "project_id", "user_id", "consumer_generation", "consumer_type"})])
def test_allocations_when_shown_then_have_the_fields_of_their_version(client: PlacementClient, host: str, version: str,
                                                                      fields: set[str]) -> None:
    assert client.allocate(A, host, VCPU=2).status_int == 204
    shown = client.get(f"/allocations/{A.upper()}", version=version).json
    assert set(shown) == fields and shown["allocations"][host]["resources"] == {"VCPU": 2}
    assert client.get(f"/allocations/{B}", version=version).json == {"allocations": {}}


def test_allocations_when_shown_then_can_be_put_back_as_they_are(client: PlacementClient, host: str) -> None:
    client.allocate(A, host, VCPU=2)
    shown = client.get(f"/allocations/{A}").json
    assert client.put(f"/allocations/{A}", shown).status_int == 204
    assert client.get(f"/allocations/{A}").json["consumer_generation"] == shown["consumer_generation"] + 1


def test_allocations_when_the_consumers_generation_is_old_then_409_with_its_code(client: PlacementClient, host: str,
                                                                                 ) -> None:
    assert client.allocate(A, host, VCPU=2).status_int == 204
    again = client.allocate(A, host, VCPU=3)
    assert (again.status_int, error_of(again)["code"]) == (409, "placement.concurrent_update")
    unchecked = {"allocations": {host: {"resources": {"VCPU": 3}}}, **OWNER}
    assert client.put(f"/allocations/{A}", unchecked, version="1.27").status_int == 204


def test_allocations_when_there_is_no_room_then_409_and_nothing_changes(client: PlacementClient, host: str) -> None:
    assert client.allocate(A, host, VCPU=9).status_int == 409
    assert client.get(f"/resource_providers/{host}/usages").json["usages"]["VCPU"] == 0
    assert client.allocate(A, B, VCPU=1).status_int == 400


def test_allocations_when_emptied_from_1_28_or_deleted_then_are_given_back(client: PlacementClient, host: str) -> None:
    client.allocate(A, host, VCPU=2)
    empty = {"allocations": {}, **OWNER}
    assert client.put(f"/allocations/{A}", empty, version="1.27").status_int == 400
    assert client.put(f"/allocations/{A}", {**empty, "consumer_generation": 1}, version="1.28").status_int == 204
    assert client.get(f"/allocations/{A}").json == {"allocations": {}}
    assert client.delete(f"/allocations/{A}").status_int == 404
    client.allocate(A, host, VCPU=2)
    assert client.delete(f"/allocations/{A}").status_int == 204


@pytest.mark.parametrize("wrong", [
    {"project_id": ""}, {"user_id": "u" * 256}, {"consumer_generation": "1"}, {"consumer_generation": -1},
    {"consumer_type": "instance"}, {"consumer_type": ""}, {"mappings": {"1": []}}, {"mappings": {"a b": [A]}},
    {"mappings": {"1": ["x"]}}, {"colour": 1}, {"allocations": []}, {"allocations": {"x": {"resources": {"VCPU": 1}}}},
    {"allocations": {A: {"resources": {}}}}, {"allocations": {A: {"resources": {"VCPU": 0}}}},
    {"allocations": {A: {"resources": {"VCPU": 1.5}}}}, {"allocations": {A: {"resources": {"vcpu": 1}}}},
    {"allocations": {A: {}}}, {"allocations": {A: {"resources": {"VCPU": 2**31}}}}])
def test_allocations_when_a_field_is_wrong_then_400_names_it(client: PlacementClient, host: str,
                                                             wrong: dict[str, object]) -> None:
    answer = client.put(f"/allocations/{A}", {**claim({host: {"VCPU": 1}}), **wrong})
    assert answer.status_int == 400 and next(iter(wrong)) in error_of(answer)["detail"]


@pytest.mark.parametrize(("name", "since"), [("consumer_generation", 28), ("consumer_type", 38)])
def test_allocations_when_a_field_came_later_then_it_is_unknown_before_and_needed_then(
        client: PlacementClient, host: str, name: str, since: int) -> None:
    body = claim({host: {"VCPU": 1}})
    if since == 28:
        del body["consumer_type"]
    assert client.put(f"/allocations/{A}", body, version=f"1.{since - 1}").status_int == 400
    del body[name]
    assert client.put(f"/allocations/{A}", body, version=f"1.{since}").status_int == 400


def test_allocations_when_the_consumer_is_no_uuid_then_400(client: PlacementClient) -> None:
    assert client.get("/allocations/somebody").status_int == 400


def test_allocations_of_a_provider_are_by_consumer(client: PlacementClient, host: str) -> None:
    client.allocate(A, host, VCPU=2)
    path = f"/resource_providers/{host}/allocations"
    assert client.get(path, version="1.27").json == {
        "resource_provider_generation": client.generation(host), "allocations": {A: {"resources": {"VCPU": 2}}}}
    assert client.get(path).json["allocations"][A]["consumer_generation"] == 1


def test_allocations_of_many_when_one_does_not_fit_then_none_is_made(client: PlacementClient, host: str) -> None:
    both = {A: claim({host: {"VCPU": 5}}), B: claim({host: {"VCPU": 5}})}
    assert client.post("/allocations", both).status_int == 409
    assert client.get(f"/allocations/{A}").json == {"allocations": {}}
    both[B] = claim({host: {"VCPU": 3}}, mappings={"": [host]})
    assert client.post("/allocations", both).status_int == 204
    moved = {A: claim({}, 1), B: claim({host: {"VCPU": 8}}, 1)}
    assert client.post("/allocations", moved).status_int == 204
    assert client.get(f"/resource_providers/{host}/usages").json["usages"]["VCPU"] == 8
    assert client.post("/allocations", {}).status_int == 400
    assert client.post("/allocations", {A: claim({}), A.upper(): claim({})}).status_int == 400
    assert client.post("/allocations", both, version="1.12").status_int == 404


# -- usages of projects

def test_usages_of_a_project_are_sums_and_from_1_38_by_type(client: PlacementClient, host: str) -> None:
    client.allocate(A, host, VCPU=2)
    client.put(f"/allocations/{B}", claim({host: {"VCPU": 1, "MEMORY_MB": 5}}, consumer_type="MIGRATION"))
    assert client.get("/usages?project_id=p1", version="1.37").json == {"usages": {"VCPU": 3, "MEMORY_MB": 5}}
    assert client.get("/usages?project_id=p1").json == {"usages": {
        "INSTANCE": {"consumer_count": 1, "VCPU": 2}, "MIGRATION": {"consumer_count": 1, "VCPU": 1, "MEMORY_MB": 5}}}
    assert client.get("/usages?project_id=p1&consumer_type=all").json["usages"]["all"]["consumer_count"] == 2
    assert list(client.get("/usages?project_id=p1&consumer_type=INSTANCE").json["usages"]) == ["INSTANCE"]
    assert client.get("/usages?project_id=p1&user_id=other").json == {"usages": {}}
    for query in ("", "user_id=u1", "project_id=", "project_id=p1&consumer_type=some", "project_id=p1&project_id=p2"):
        assert client.get(f"/usages?{query}").status_int == 400
    assert client.get("/usages?project_id=p1&consumer_type=all", version="1.37").status_int == 400


# -- reshaping

def test_reshape_when_inventory_moves_to_a_child_then_its_allocations_do(client: PlacementClient, host: str) -> None:
    client.allocate(A, host, VCPU=2, MEMORY_MB=10)
    child = client.provider("child", host)
    body = {"inventories": {host: {"resource_provider_generation": client.generation(host),
                                   "inventories": {"MEMORY_MB": {"total": 1024}}},
                            child: {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}},
            "allocations": {A: claim({host: {"MEMORY_MB": 10}, child: {"VCPU": 2}}, 1)}}
    assert client.post("/reshaper", body, version="1.29", token=SERVICE).status_int == 404
    assert client.post("/reshaper", {"inventories": {}}, token=SERVICE).status_int == 400
    done = client.post("/reshaper", body, token=SERVICE)
    assert done.status_int == 204, done.text
    assert client.get(f"/resource_providers/{host}/usages").json["usages"] == {"MEMORY_MB": 10}
    assert client.get(f"/resource_providers/{child}/usages").json["usages"] == {"VCPU": 2}
    again = client.post("/reshaper", body, token=SERVICE)
    assert (again.status_int, error_of(again)["code"]) == (409, "placement.concurrent_update")


# -- candidates

def test_candidates_have_the_form_of_their_version(client: PlacementClient, host: str) -> None:
    client.give_traits(host, "HW_CPU_X86_AVX")
    path = "/allocation_candidates?resources=VCPU:2"
    old = client.get(path, version="1.10").json
    assert old["allocation_requests"] == [
        {"allocations": [{"resource_provider": {"uuid": host}, "resources": {"VCPU": 2}}]}]
    assert old["provider_summaries"] == {host: {"resources": {"VCPU": {"capacity": 8, "used": 0}}}}
    keyed = client.get(path, version="1.12").json
    assert keyed["allocation_requests"] == [{"allocations": {host: {"resources": {"VCPU": 2}}}}]
    assert client.get(path, version="1.17").json["provider_summaries"][host]["traits"] == ["HW_CPU_X86_AVX"]
    assert set(client.get(path, version="1.27").json["provider_summaries"][host]["resources"]) == {"VCPU", "MEMORY_MB"}
    new = client.get(path).json
    assert new["allocation_requests"] == [{"allocations": {host: {"resources": {"VCPU": 2}}}, "mappings": {"": [host]}}]
    assert new["provider_summaries"][host]["root_provider_uuid"] == host


def test_candidate_when_it_is_sent_back_then_is_an_allocation(client: PlacementClient, host: str) -> None:
    found = client.get("/allocation_candidates?resources=VCPU:2,MEMORY_MB:64").json["allocation_requests"][0]
    body = {**claim({}), **found}
    assert client.put(f"/allocations/{A}", body).status_int == 204


def test_candidates_when_groups_are_asked_for_then_the_conductor_is_asked_for_them(client: PlacementClient) -> None:
    query = ("resources=VCPU:1&resources_NET=SRIOV_NET_VF:1&required_NET=in:CUSTOM_A,CUSTOM_B&required_NET=!CUSTOM_C"
             f"&member_of_NET=in:{A},{B}&member_of_NET=!{A}&in_tree_NET={B}&required_LESS=CUSTOM_D"
             "&same_subtree=_NET,_LESS&group_policy=isolate&root_required=CUSTOM_R,!CUSTOM_S&limit=5")
    for letter in "ABCDRS":
        assert client.put(f"/traits/CUSTOM_{letter}").status_int == 201
    answer = client.get(f"/allocation_candidates?{query}")
    assert answer.status_int == 200, answer.text
    asked = client.conductor.asked[-1][1][0]
    plain, net, less = asked.request.groups
    assert (plain.suffix, dict(plain.resources), asked.limit, asked.nested) == ("", {"VCPU": 1}, 5, True)
    assert (net.suffix, dict(net.resources)) == ("_NET", {"SRIOV_NET_VF": 1})
    assert (net.required, net.forbidden) == ((("CUSTOM_A", "CUSTOM_B"),), ("CUSTOM_C",))
    assert (net.member_of, net.not_member_of, net.in_tree) == (((A, B),), (A,), B)
    assert (less.suffix, dict(less.resources), less.required) == ("_LESS", {}, (("CUSTOM_D",),))
    assert (asked.request.group_policy, asked.request.same_subtree) == ("isolate", (("_NET", "_LESS"),))
    assert (asked.request.root_required, asked.request.root_forbidden) == (("CUSTOM_R",), ("CUSTOM_S",))
    client.get("/allocation_candidates?resources=VCPU:1", version="1.28")
    before = client.conductor.asked[-1][1][0]
    assert not before.nested and before.limit is None


def test_candidates_of_a_tree_when_two_groups_are_isolated_then_each_has_its_own(client: PlacementClient) -> None:
    host = client.provider("host", VCPU=8)
    nics = [client.provider(f"nic{number}", host, SRIOV_NET_VF=4) for number in (1, 2)]
    query = "resources=VCPU:1&resources1=SRIOV_NET_VF:1&resources2=SRIOV_NET_VF:1&group_policy="
    together = client.get(f"/allocation_candidates?{query}none").json
    apart = client.get(f"/allocation_candidates?{query}isolate").json
    assert (len(together["allocation_requests"]), len(apart["allocation_requests"])) == (4, 2)
    assert all({*one["mappings"]["1"], *one["mappings"]["2"]} == set(nics) for one in apart["allocation_requests"])
    assert len(client.get(f"/allocation_candidates?{query}none&limit=1").json["allocation_requests"]) == 1


@pytest.mark.parametrize(("query", "version", "code"), [
    ("", "1.39", "missing_value"), ("limit=1", "1.39", "missing_value"), ("required=CUSTOM_A", "1.39", "missing_value"),
    ("resources=VCPU:1&limit=0", "1.16", ""), ("resources=VCPU:1&limit=x", "1.39", "bad_value"),
    ("resources=VCPU:1&limit=1", "1.15", ""), ("resources=VCPU:1&required=CUSTOM_A", "1.16", ""),
    ("resources=VCPU:1&resources=VCPU:1", "1.39", "duplicate_key"),
    ("resources1=VCPU:1", "1.24", "bad_value"), ("resources0=VCPU:1", "1.32", "bad_value"),
    ("resources_A=VCPU:1", "1.32", "bad_value"), ("resources.A=VCPU:1", "1.39", "bad_value"),
    (f"resources{'A' * 65}=VCPU:1", "1.39", "bad_value"),
    ("resources1=VCPU:1&resources2=VCPU:1", "1.39", "missing_value"),
    ("resources1=VCPU:1&resources2=VCPU:1&group_policy=some", "1.39", "bad_value"),
    ("resources=VCPU:1&required1=CUSTOM_A", "1.39", "bad_value"),
    ("resources=VCPU:1&required1=CUSTOM_A&same_subtree=1", "1.35", "bad_value"),
    ("resources1=VCPU:1&same_subtree=2", "1.36", "bad_value"),
    ("resources1=VCPU:1&same_subtree=", "1.36", "bad_value"),
    ("resources=VCPU:1&root_required=CUSTOM_A", "1.34", "bad_value"),
    ("resources=VCPU:1&root_required=in:CUSTOM_A,CUSTOM_B", "1.39", "bad_value"),
    ("group_policy=none&" + "&".join(f"resources{at}=VCPU:1" for at in range(1, 202)), "1.39", "bad_value"),
    ("resources=VCPU:1&in_tree=x", "1.39", "bad_value"), (f"resources=VCPU:1&in_tree={A}", "1.30", "bad_value"),
    (f"resources=VCPU:1&member_of=!{A}", "1.31", "bad_value"),
    (f"resources=VCPU:1&member_of={A}&member_of={B}", "1.23", "duplicate_key")])
def test_candidates_when_the_query_is_wrong_then_400(still: PlacementClient, query: str, version: str, code: str,
                                                     ) -> None:
    answer = still.get(f"/allocation_candidates?{query}", version=version)
    assert answer.status_int == 400, answer.text
    if code:
        assert error_of(answer).get("code") == f"placement.query.{code}"


@pytest.mark.parametrize("amount", ["1 0", "+1", "1_0", "\u0661"])
def test_amount_in_a_query_when_it_is_more_than_digits_then_400(still: PlacementClient, amount: str) -> None:
    for path in ("resource_providers", "allocation_candidates"):
        answer = still.get(f"/{path}?resources=VCPU:{quote(amount)}")
        assert (answer.status_int, error_of(answer)["code"]) == (400, "placement.query.bad_value")


def test_mappings_when_there_are_none_in_them_then_400(client: PlacementClient, host: str) -> None:
    body = claim({host: {"VCPU": 1}}, mappings={})
    answers = [client.put(f"/allocations/{A}", body), client.post("/allocations", {A: body}),
               client.post("/reshaper", {"inventories": {}, "allocations": {A: body}}, token=SERVICE)]
    for answer in answers:
        assert answer.status_int == 400 and "mappings" in error_of(answer)["detail"]


def test_reshape_when_an_administrator_asks_then_403_for_it_is_services(client: PlacementClient) -> None:
    body: dict[str, object] = {"inventories": {}, "allocations": {}}
    assert client.post("/reshaper", body).status_int == 403
    assert client.post("/reshaper", body, token=SERVICE).status_int == 204


def test_reshape_when_allocations_break_the_new_units_then_409(client: PlacementClient, host: str) -> None:
    client.allocate(A, host, VCPU=3, MEMORY_MB=10)
    body = {"inventories": {host: {"resource_provider_generation": client.generation(host), "inventories": {
                "VCPU": {"total": 8, "step_size": 2}, "MEMORY_MB": {"total": 1024}}}},
            "allocations": {A: claim({host: {"VCPU": 3, "MEMORY_MB": 10}}, 1)}}
    answer = client.post("/reshaper", body, token=SERVICE)
    assert answer.status_int == 409 and "step_size 2" in error_of(answer)["detail"]


def test_candidates_when_a_group_for_traits_alone_is_isolated_then_it_has_a_provider_of_its_own(
        client: PlacementClient) -> None:
    host = client.provider("host", VCPU=8)
    nic = client.provider("nic", host, SRIOV_NET_VF=4)
    client.give_traits(nic, "CUSTOM_NET")
    query = "resources1=SRIOV_NET_VF:1&required2=CUSTOM_NET&same_subtree=1,2&group_policy="
    assert len(client.get(f"/allocation_candidates?{query}none").json["allocation_requests"]) == 1
    assert client.get(f"/allocation_candidates?{query}isolate").json["allocation_requests"] == []
