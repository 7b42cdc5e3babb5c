"""What we answer about services, zones and hypervisors passes the contract's rows at every version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient
from tests.fakes.conductor import numbered

pytestmark = rows.needs_contract

SERVICE, HYPERVISOR = 1, 2


def named(kind: int, path: str) -> Any:
    """The path with the first service's (hypervisor's) id of the version."""
    return lambda version: path.format(id=numbered(kind, 1) if version >= 53 else 1)


READS: dict[str, Any] = {
    "GET /os-services": "/os-services?host=host1",
    "GET /os-availability-zone": "/os-availability-zone",
    "GET /os-availability-zone/detail": "/os-availability-zone/detail",
    "GET /os-hypervisors": lambda version: "/os-hypervisors" + ("?limit=1" if version >= 33 else ""),
    "GET /os-hypervisors/detail":
        lambda version: "/os-hypervisors/detail" + ("?limit=1&with_servers=1" if version >= 53 else
                                                    "?limit=1" if version >= 33 else ""),
    "GET /os-hypervisors/{hypervisor_id}": named(HYPERVISOR, "/os-hypervisors/{id}"),
    "GET /os-hypervisors/statistics": "/os-hypervisors/statistics",
    "GET /os-hypervisors/{hypervisor_hostname_pattern}/search": "/os-hypervisors/host/search",
    "GET /os-hypervisors/{hypervisor_hostname_pattern}/servers": "/os-hypervisors/host/servers",
    "GET /os-hypervisors/{hypervisor_id}/uptime": named(HYPERVISOR, "/os-hypervisors/{id}/uptime"),
}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_hypervisor("host1", disk_available_least_gb=3)
    made.conductor.add_hypervisor("host2", cpu_info="", host_ip=None)
    made.conductor.add_service("host3", "nova-scheduler", up=False, last_seen_at=None)
    made.conductor.add_server(host="host1", node="host1")
    return made


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    answers.assert_reads(id, client, READS[id])


def test_zones_for_users_pass_the_contract(client: ApiClient) -> None:
    client.token = DEMO
    answers.assert_reads("GET /os-availability-zone", client, "/os-availability-zone")


def test_services_of_a_silent_cell_pass_the_contract(client: ApiClient) -> None:
    client.conductor.silent_cell = True
    for version in range(69, 105):
        answer = client.get("/os-services", version=f"2.{version}")
        answers.assert_answer("GET /os-services", version, answer)
        assert answer.json["services"][0] == {"binary": "nova-compute", "host": "host1", "status": "UNKNOWN"}


UPDATE = "PUT /os-services/{service_id}"
WORDS = {"enable": {}, "disable": {}, "disable-log-reason": {"disabled_reason": "why"}, "force-down":
         {"forced_down": True}}


@pytest.mark.parametrize("word", WORDS)
def test_answer_to_update_by_word_passes_the_contract(word: str, client: ApiClient) -> None:
    body = {"host": "host1", "binary": "nova-compute", **WORDS[word]}
    for version in range(11 if word == "force-down" else 1, 53):
        answer = client.put(f"/os-services/{word}", body, version=f"2.{version}")
        answers.assert_answer(UPDATE, version, answer)


@pytest.mark.parametrize("body", [{"status": "enabled"}, {"status": "disabled", "disabled_reason": "why"},
                                  {"forced_down": "true"}])
def test_answer_to_update_by_uuid_passes_the_contract(body: dict[str, Any], client: ApiClient) -> None:
    for version in range(53, 105):
        answer = client.put(f"/os-services/{numbered(SERVICE, 1)}", body, version=f"2.{version}")
        answers.assert_answer(UPDATE, version, answer)


def test_answer_to_delete_of_a_service_passes_the_contract(client: ApiClient) -> None:
    for version in (1, 52, 53, 104):
        service = client.conductor.add_service("gone")
        name = service.uuid if version >= 53 else service.id
        answer = client.delete(f"/os-services/{name}", version=f"2.{version}")
        answers.assert_answer("DELETE /os-services/{service_id}", version, answer)


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples(READS))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    client.conductor.silent_cell = "UNKNOWN" in str(content)
    path = READS[id]
    if "servers" in content.get("hypervisor", {}):
        path = f"/os-hypervisors/{numbered(HYPERVISOR, 1)}?with_servers=true"
    answer = client.get(path if isinstance(path, str) else path(version), version=f"2.{version}")
    cpu = {field for field in answers.fields(content) if ".cpu_info." in field}
    assert answers.fields(content) - cpu <= answers.fields(answer.json)
