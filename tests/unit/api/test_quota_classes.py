"""Quota classes: which resources when, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.api import ADMIN, DEMO, ApiClient

FILES = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
NETWORK = {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}
GROUPS = {"server_groups", "server_group_members"}


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=ADMIN)


@pytest.mark.parametrize(("version", "absent"), [
    ("2.1", GROUPS), ("2.49", GROUPS), ("2.50", NETWORK), ("2.56", NETWORK), ("2.57", NETWORK | FILES),
    ("2.104", NETWORK | FILES)])
def test_resources_of_a_class_by_version(client: ApiClient, version: str, absent: set[str]) -> None:
    shown = client.get("/os-quota-class-sets/default", version=version).json["quota_class_set"]
    assert (NETWORK | FILES | GROUPS) - set(shown) == absent and shown["id"] == "default"
    written = client.put("/os-quota-class-sets/default", {"quota_class_set": {"cores": 7}}, version=version)
    assert (NETWORK | FILES | GROUPS | {"id"}) - set(written.json["quota_class_set"]) == absent | {"id"}
    for name in absent - GROUPS:
        body = {"quota_class_set": {name: 1}}
        assert client.put("/os-quota-class-sets/default", body, version=version).status_int == 400
    for name in GROUPS:  # taken at every version, shown from 2.50
        body = {"quota_class_set": {name: 4}}
        assert client.put("/os-quota-class-sets/default", body, version=version).status_int == 200


def test_update_writes_what_is_given_and_answers_with_all(client: ApiClient) -> None:
    before = client.get("/os-quota-class-sets/gold").json["quota_class_set"]
    answer = client.put("/os-quota-class-sets/gold", {"quota_class_set": {"cores": "99", "ram": -1}})
    assert answer.json["quota_class_set"] == {**{k: v for k, v in before.items() if k != "id"}, "cores": 99, "ram": -1}
    assert client.conductor.classes == {"gold": {"cores": 99, "ram": -1}}


@pytest.mark.parametrize("limits", [{"cores": -2}, {"cores": 2**31}, {"cores": 10**30}, {"cores": "x"}, {"cores": 1.5},
                                    {"cores": True}, {"force": True}, {"networks": 1}, {"id": "x"}, [], None])
def test_update_when_the_body_is_wrong_is_400(client: ApiClient, limits: Any) -> None:
    assert client.put("/os-quota-class-sets/default", {"quota_class_set": limits}).status_int == 400
    assert client.conductor.classes == {}


def test_classes_are_for_admins(client: ApiClient) -> None:
    assert client.get("/os-quota-class-sets/default", token=DEMO).status_int == 403
    body = {"quota_class_set": {"cores": 7}}
    assert client.put("/os-quota-class-sets/default", body, token=DEMO).status_int == 403
    assert client.conductor.classes == {}


def test_unknown_parameters_are_refused_from_the_last_versions_on(client: ApiClient) -> None:
    assert client.get("/os-quota-class-sets/default?a=b", version="2.101").status_int == 200
    assert client.get("/os-quota-class-sets/default?a=b", version="2.102").status_int == 400
