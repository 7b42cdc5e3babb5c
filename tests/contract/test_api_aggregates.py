"""What we answer about aggregates and hosts passes the contract's rows at every version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract import answers, rows
from tests.fakes.api import ADMIN, ApiClient

pytestmark = rows.needs_contract

READS = {
    "GET /os-aggregates": "/os-aggregates",
    "GET /os-aggregates/{aggregate_id}": "/os-aggregates/1",
    "GET /os-hosts": "/os-hosts?zone=nova",
    "GET /os-hosts/{host_name}": "/os-hosts/host1",
    "GET /os-hosts/{host_name}/startup": "/os-hosts/host1/startup",
    "GET /os-hosts/{host_name}/shutdown": "/os-hosts/host1/shutdown",
    "GET /os-hosts/{host_name}/reboot": "/os-hosts/host1/reboot",
}

ACTION = "POST /os-aggregates/{aggregate_id}/action"
WRITES: dict[str, tuple[str, str, Any]] = {
    "PUT /os-aggregates/{aggregate_id}": (
        "PUT", "/os-aggregates/1", {"aggregate": {"name": "other", "availability_zone": "paris"}}),
    f"{ACTION}#add_host": ("POST", "/os-aggregates/1/action", {"add_host": {"host": "host2"}}),
    f"{ACTION}#remove_host": ("POST", "/os-aggregates/1/action", {"remove_host": {"host": "host1"}}),
    f"{ACTION}#set_metadata": (
        "POST", "/os-aggregates/2/action", {"set_metadata": {"metadata": {"a": "b", "c": None}}}),
    "POST /os-aggregates/{aggregate_id}/images": (
        "POST", "/os-aggregates/1/images", {"cache": [{"id": "70a599e0-31e7-49b7-b260-868f441e862b"}]}),
    "PUT /os-hosts/{host_name}": ("PUT", "/os-hosts/host1", {"status": "Disable", "maintenance_mode": "enable"}),
}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.add_hypervisor("host1")
    made.conductor.add_aggregate("one", ("host1",), availability_zone="london", ssd="true")
    made.conductor.add_aggregate("two")
    return made


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    answers.assert_reads(id, client, READS[id])


@pytest.mark.parametrize("id", WRITES)
def test_answer_to_a_change_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    method, path, body = WRITES[id]
    for version in answers.span(id):
        answers.assert_answer(id, version, client.request(method, path, body, version=f"2.{version}"))


def test_answer_to_create_and_delete_passes_the_contract(client: ApiClient) -> None:
    for version in answers.span("POST /os-aggregates"):
        made = client.post("/os-aggregates", {"aggregate": {"name": f"new{version}", "availability_zone": "x"}},
                           version=f"2.{version}")
        answers.assert_answer("POST /os-aggregates", version, made)
        gone = client.delete(f"/os-aggregates/{made.json['aggregate']['id']}", version=f"2.{version}")
        answers.assert_answer("DELETE /os-aggregates/{aggregate_id}", version, gone)
        client.conductor.add_aggregate(f"keeps the number {version}")


@pytest.mark.parametrize(("id", "version", "content"),
                         answers.response_samples([*READS, *WRITES, "POST /os-aggregates"]))
def test_answer_has_the_fields_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    if id in READS:
        answer = client.get(READS[id], version=f"2.{version}")
    else:
        create = ("POST", "/os-aggregates", {"aggregate": {"name": "name", "availability_zone": "london"}})
        method, path, body = WRITES.get(id, create)
        answer = client.request(method, path, body, version=f"2.{version}")
    assert answers.fields(content) == answers.fields(answer.json)
