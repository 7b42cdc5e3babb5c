"""Quota sets and limits: whose, what is dropped when, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.api import ADMIN, DEMO, ApiClient

FILES = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
NETWORK = {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.used = {"instances": 3, "cores": 4, "ram": 512, "server_groups": 1}
    made.conductor.limits[("demo", None)] = {"cores": 40}
    made.conductor.limits[("demo", "joe")] = {"cores": 8}
    return made


@pytest.mark.parametrize(("version", "absent"), [("2.1", set()), ("2.35", set()), ("2.36", NETWORK), ("2.56", NETWORK),
                                                 ("2.57", NETWORK | FILES), ("2.104", NETWORK | FILES)])
def test_resources_of_a_quota_set_by_version(client: ApiClient, version: str, absent: set[str]) -> None:
    for path in ("/os-quota-sets/demo", "/os-quota-sets/demo/detail", "/os-quota-sets/demo/defaults"):
        shown = set(client.get(path, version=version).json["quota_set"])
        assert (NETWORK | FILES) - shown == absent
        assert {"id", "cores", "server_group_members"} <= shown
    for name in absent:
        body = {"quota_set": {name: 1}}
        assert client.put("/os-quota-sets/demo", body, version=version).status_int == 400


@pytest.mark.parametrize(("path", "cores"), [
    ("/os-quota-sets/demo", 40), ("/os-quota-sets/demo?user_id=joe", 8), ("/os-quota-sets/demo?user_id=eve", 40),
    ("/os-quota-sets/other", 11), ("/os-quota-sets/demo/defaults", 11), ("/os-quota-sets/demo?user_id=", 40)])
def test_limits_are_the_users_else_the_projects_else_the_defaults(client: ApiClient, path: str, cores: int) -> None:
    assert client.get(path).json["quota_set"]["cores"] == cores


def test_detail_tells_limit_and_use(client: ApiClient) -> None:
    shown = client.get("/os-quota-sets/demo/detail").json["quota_set"]
    assert shown["cores"] == {"limit": 40, "in_use": 4, "reserved": 0}
    assert shown["key_pairs"]["in_use"] == 0


@pytest.mark.parametrize("path", ["/os-quota-sets/demo", "/os-quota-sets/demo/detail"])
def test_quotas_of_another_project_are_for_admins(client: ApiClient, path: str) -> None:
    assert client.get(path, token=DEMO).status_int == 200
    assert client.get(path, token="eve:other").status_int == 403
    assert client.get("/os-quota-sets/demo/defaults", token="eve:other").status_int == 200


def test_update_and_delete_are_for_admins(client: ApiClient) -> None:
    assert client.put("/os-quota-sets/demo", {"quota_set": {"cores": 99}}, token=DEMO).status_int == 403
    assert client.delete("/os-quota-sets/demo", token=DEMO).status_int == 403
    assert client.conductor.limits[("demo", None)] == {"cores": 40}


def test_update_of_a_user_leaves_the_project_alone(client: ApiClient) -> None:
    answer = client.put("/os-quota-sets/demo?user_id=joe", {"quota_set": {"instances": "9"}})
    assert answer.json["quota_set"]["instances"] == 9 and answer.json["quota_set"]["cores"] == 8
    assert "id" not in answer.json["quota_set"]
    assert client.conductor.limits == {("demo", None): {"cores": 40}, ("demo", "joe"): {"cores": 8, "instances": 9}}


def test_update_below_what_is_used_needs_force(client: ApiClient) -> None:
    low: dict[str, Any] = {"instances": 2}
    answer = client.put("/os-quota-sets/demo", {"quota_set": low})
    assert answer.status_int == 400
    assert "instances" in answer.json["badRequest"]["message"]
    assert client.put("/os-quota-sets/demo", {"quota_set": {**low, "force": "false"}}).status_int == 400
    assert client.put("/os-quota-sets/demo", {"quota_set": {**low, "force": "True"}}).status_int == 200
    assert client.put("/os-quota-sets/demo", {"quota_set": {"instances": -1}}).status_int == 200


@pytest.mark.parametrize("quota_set", [{"cores": -2}, {"cores": "many"}, {"cores": 2**31}, {"cores": 1.5}, {"cpus": 1},
                                       {"networks": 1}, {"force": "maybe"}, None])
def test_update_when_the_body_is_wrong_is_400(client: ApiClient, quota_set: Any) -> None:
    assert client.put("/os-quota-sets/demo", {"quota_set": quota_set}).status_int == 400


def test_delete_answers_202_and_gives_the_defaults_back(client: ApiClient) -> None:
    assert client.delete("/os-quota-sets/demo?user_id=joe").status_int == 202
    assert list(client.conductor.limits) == [("demo", None)]
    assert client.delete("/os-quota-sets/demo").status_int == 202
    assert client.conductor.limits == {}


@pytest.mark.parametrize(("path", "version", "status"), [
    ("/os-quota-sets/demo?stranger=1", "2.74", 200), ("/os-quota-sets/demo?stranger=1", "2.75", 400),
    ("/os-quota-sets/demo/defaults?stranger=1", "2.104", 200), ("/limits?reserved=1", "2.74", 200),
    ("/limits?reserved=1", "2.75", 400), ("/limits?tenant_id=demo", "2.104", 200)])
def test_unknown_parameters_by_version(client: ApiClient, path: str, version: str, status: int) -> None:
    assert client.get(path, version=version).status_int == status


# limits

def test_limits_are_the_callers_projects(client: ApiClient) -> None:
    limits = client.get("/limits", token=DEMO).json["limits"]
    assert limits["rate"] == []
    assert limits["absolute"]["maxTotalCores"] == 40
    assert limits["absolute"]["totalCoresUsed"] == 4
    assert limits["absolute"]["totalServerGroupsUsed"] == 1
    assert limits["absolute"]["maxSecurityGroups"] == -1


def test_limits_of_a_named_project_are_for_admins_even_the_own(client: ApiClient) -> None:
    assert client.get("/limits?tenant_id=demo", token=DEMO).status_int == 403
    assert client.get("/limits?tenant_id=demo").json["limits"]["absolute"]["maxTotalCores"] == 40


@pytest.mark.parametrize(("name", "last"), [("maxImageMeta", 38), ("maxPersonality", 56), ("maxPersonalitySize", 56),
                                            ("maxTotalFloatingIps", 35), ("totalSecurityGroupsUsed", 35)])
def test_limit_is_dropped_at_its_version(client: ApiClient, name: str, last: int) -> None:
    assert name in client.get("/limits", version=f"2.{last}").json["limits"]["absolute"]
    assert name not in client.get("/limits", version=f"2.{last + 1}").json["limits"]["absolute"]
