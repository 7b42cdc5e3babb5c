"""What we answer about flavors passes the contract's rows at every version, and has the samples' fields."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from nova.model.flavor import extra_specs
from nova.model.placement import traits
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient

pytestmark = rows.needs_contract

READS = {
    "GET /flavors": "/flavors?limit=1",
    "GET /flavors/detail": "/flavors/detail?limit=1",
    "GET /flavors/{flavor_id}": "/flavors/10",
    "GET /flavors/{flavor_id}/os-extra_specs": "/flavors/10/os-extra_specs",
    "GET /flavors/{flavor_id}/os-extra_specs/{key}": "/flavors/10/os-extra_specs/hw:numa_nodes",
}
ACCESS = "GET /flavors/{flavor_id}/os-flavor-access"


def client(token: str = ADMIN) -> ApiClient:
    made = ApiClient(token=token)
    made.conductor.add_flavor("10", swap_mb=5, extra_specs={"hw:numa_nodes": "1"}, description="text")
    made.conductor.add_flavor("11", is_public=False, projects=("demo", "6f706"))
    return made


@pytest.mark.parametrize("token", [ADMIN, DEMO])
@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, token: str) -> None:
    answers.assert_reads(id, client(token), READS[id])


def test_access_at_every_version_passes_the_contract() -> None:
    answers.assert_reads(ACCESS, client(), "/flavors/11/os-flavor-access")


def writes(made: ApiClient, version: int) -> list[tuple[str, Any]]:
    """(id, answer) of every write, in an order in which they work."""
    at: dict[str, Any] = {"version": f"2.{version}"}
    new = {"name": "new", "ram": "64", "vcpus": 1, "disk": 0, "id": "new", "os-flavor-access:is_public": "False"}
    done = [("POST /flavors", made.post("/flavors", {"flavor": new}, **at))]
    if version >= 55:
        done.append(("PUT /flavors/{flavor_id}",
                     made.put("/flavors/new", {"flavor": {"description": "d"}}, **at)))
    specs = "/flavors/{flavor_id}/os-extra_specs"
    return [
        *done,
        ("POST /flavors/{flavor_id}/action#addTenantAccess",
         made.post("/flavors/new/action", {"addTenantAccess": {"tenant": "p1"}}, **at)),
        ("POST /flavors/{flavor_id}/action#removeTenantAccess",
         made.post("/flavors/new/action", {"removeTenantAccess": {"tenant": "p1"}}, **at)),
        (f"POST {specs}", made.post("/flavors/new/os-extra_specs", {"extra_specs": {"hw:numa_nodes": 2}}, **at)),
        (f"PUT {specs}/{{key}}", made.put("/flavors/new/os-extra_specs/hw:pmu", {"hw:pmu": "true"}, **at)),
        (f"DELETE {specs}/{{key}}", made.delete("/flavors/new/os-extra_specs/hw:pmu", **at)),
        ("DELETE /flavors/{flavor_id}", made.delete("/flavors/new", **at)),
    ]


def test_answers_to_writes_at_every_version_pass_the_contract() -> None:
    made = client()
    for version in rows.VERSIONS:
        for id, answer in writes(made, version):
            answers.assert_answer(id, version, answer)


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples([*READS, ACCESS, "POST /flavors"]))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any) -> None:
    at: dict[str, Any] = {"version": f"2.{version}"}
    if id == "POST /flavors":
        answer = client().post("/flavors", {"flavor": {"name": "n", "ram": 1, "vcpus": 1, "disk": 1}}, **at)
    elif id == ACCESS:
        answer = client().get("/flavors/11/os-flavor-access", **at)
    else:
        answer = client().get(READS[id], **at)
    assert answers.fields(content) <= answers.fields(answer.json)


# extra specs

def known() -> dict[str, Any]:
    return yaml.safe_load((rows.SHARED / "flavor_extra_specs.yaml").read_text())


def test_extra_specs_are_the_contracts() -> None:
    theirs = known()
    assert set(extra_specs.SPECS) == {entry["name"] for entry in theirs["specs"]}
    assert extra_specs.NAMESPACES | {"resources", "trait"} == set(theirs["rules"]["known_namespaces"])
    nested = {f"{name}{{filter}}" for name in extra_specs.NESTED_CAPABILITIES}
    assert extra_specs.CAPABILITIES | nested == set(theirs["capabilities"]["names"])
    assert {*traits.TRAITS, "CUSTOM_{trait}"} == set(theirs["traits"]["names"])
    assert {*traits.RESOURCE_CLASSES, "CUSTOM_{resource}"} == set(theirs["resources"]["names"])


def test_rules_of_extra_specs_are_the_contracts() -> None:
    for entry in known()["specs"]:
        rule = extra_specs.SPECS[entry["name"]][0]
        assert (rule.type, rule.min, rule.max) == (entry["type"], entry.get("min"), entry.get("max")), entry["name"]
        assert rule.allowed == tuple(entry.get("allowed", ()))
        assert (rule.pattern is None) == ("pattern" not in entry), entry["name"]
