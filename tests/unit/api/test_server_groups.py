"""Server groups over the API: what is asked of the conductor, and what is refused before."""

from __future__ import annotations

import pytest

from nova import errors
from nova.model.server.server_groups import ServerGroup
from tests.fakes.api import ADMIN, DEMO, ApiClient


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO, version="2.64")
    for number, project in enumerate(("demo", "other", "demo"), 1):
        uuid = f"{number:08}-0000-4000-8000-000000000000"
        made.conductor.groups[uuid] = ServerGroup(uuid=uuid, project_id=project, user_id="u", name=f"g{number}",
                                                  policy="affinity")
    return made


def names(client: ApiClient, path: str, **at: str) -> list[str]:
    return [group["name"] for group in client.get(path, **at).json["server_groups"]]


def test_list_is_of_the_own_project_and_all_projects_is_ignored_without_the_right(client):
    assert names(client, "/os-server-groups") == ["g1", "g3"]
    assert names(client, "/os-server-groups?all_projects=True") == ["g1", "g3"]
    assert names(client, "/os-server-groups", token=ADMIN) == []
    assert names(client, "/os-server-groups?all_projects", token=ADMIN) == ["g1", "g2", "g3"]


@pytest.mark.parametrize(("query", "shown"), [
    ("limit=1", ["g1"]), ("limit=1&offset=1", ["g2"]), ("offset=2", ["g3"]), ("limit=0", ["g1", "g2", "g3"])])
def test_list_has_limit_and_offset_and_a_limit_of_0_is_none(client, query, shown):
    assert names(client, f"/os-server-groups?all_projects=1&{query}", token=ADMIN) == shown


@pytest.mark.parametrize("query", ["limit=-1", "offset=x", "limit=", "colour=blue"])
def test_list_when_the_query_is_wrong_then_400(client, query):
    assert client.get(f"/os-server-groups?{query}", version="2.75").status_int == 400


def test_another_projects_group_is_not_found_but_by_admins(client):
    path = "/os-server-groups/00000002-0000-4000-8000-000000000000"
    assert client.get(path).status_int == 404 and client.delete(path).status_int == 404
    assert client.get(path, token=ADMIN).status_int == 200
    assert client.delete(path, token=ADMIN).status_int == 204
    assert client.get(path, token=ADMIN).status_int == 404


@pytest.mark.parametrize(("version", "group", "says"), [
    ("2.64", {"policy": "affinity", "rules": {"max_server_per_host": 2}}, "anti-affinity"),
    ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": 0}}, "max_server_per_host"),
    ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": 2**31}}, "at most 2147483647"),
    ("2.64", {"policy": "anti-affinity", "rules": {"colour": 2}}, "colour"),
    ("2.64", {"policy": "nearby"}, "soft-affinity"),
    ("2.64", {"policies": ["affinity"]}, "polic"),
    ("2.63", {"policy": "affinity"}, "polic"),
    ("2.63", {"policies": ["affinity", "anti-affinity"]}, "policies"),
    ("2.63", {"policies": []}, "policies"),
    ("2.14", {"policies": ["soft-affinity"]}, "anti-affinity")])
def test_create_when_policy_or_rules_are_wrong_then_400_says_what(client, version, group, says):
    answer = client.post("/os-server-groups", {"server_group": {"name": "g", **group}}, version=version)
    assert answer.status_int == 400 and says in answer.json["badRequest"]["message"]
    assert len(client.conductor.groups) == 3


def test_soft_policies_are_hidden_from_versions_that_do_not_know_them(client):
    made = client.post("/os-server-groups", {"server_group": {"name": "g", "policies": ["soft-affinity"]}},
                       version="2.15").json["server_group"]
    assert made["policies"] == ["soft-affinity"] and made["metadata"] == {} and made["project_id"] == "demo"
    path = f"/os-server-groups/{made['id']}"
    assert client.get(path, version="2.14").json["server_group"]["policies"] == []
    new = client.get(path).json["server_group"]
    assert new["policy"] == "soft-affinity" and new["rules"] == {} and "policies" not in new and "metadata" not in new


def test_create_over_quota_is_403(client):
    client.conductor.given(create_server_group=errors.OverQuota("Quota exceeded, too many server groups."))
    answer = client.post("/os-server-groups", {"server_group": {"name": "g", "policy": "affinity"}})
    assert answer.status_int == 403 and "server groups" in answer.json["forbidden"]["message"]
