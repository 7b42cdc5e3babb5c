"""What we answer about usage, its audits, quota classes and extensions passes the contract's rows at every version."""

from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

import pytest

from nova.model.quota.usage import DONE, HostAudit, UsageAudits
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, ApiClient
from tests.fakes.conductor import LAUNCHED, server_usage

pytestmark = rows.needs_contract

IDS = [str(uuid.UUID(int=number)) for number in (1, 2, 3)]
TIME = "start=2026-01-01T00:00:00&end=2026-02-01T00:00:00"
READS = {
    "GET /os-simple-tenant-usage": f"/os-simple-tenant-usage?{TIME}&detailed=1&limit=2",
    "GET /os-simple-tenant-usage/{tenant_id}": f"/os-simple-tenant-usage/demo?{TIME}&limit=1",
    "GET /os-instance_usage_audit_log": "/os-instance_usage_audit_log",
    "GET /os-instance_usage_audit_log/{before_timestamp}": "/os-instance_usage_audit_log/2026-02-03%2000:00:00",
    "GET /os-quota-class-sets/{quota_class}": "/os-quota-class-sets/default",
    "GET /extensions": "/extensions",
    "GET /extensions/{alias}": "/extensions/os-agents",
}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=ADMIN)
    made.conductor.usages = [server_usage(IDS[0]), server_usage(IDS[1], ended_at=LAUNCHED, state="terminated"),
                             server_usage(IDS[2], "other", state="shelved_offloaded")]
    made.conductor.given(get_usage_audits=UsageAudits(
        period_beginning=datetime.datetime(2026, 1, 1), period_ending=datetime.datetime(2026, 2, 1),
        hosts=(IDS[0], IDS[1]), audits={IDS[0]: HostAudit(host=IDS[0], state=DONE, servers=1, message="done")}))
    return made


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    answers.assert_reads(id, client, READS[id])


@pytest.mark.parametrize("path", ["", "/nobody"])
def test_answer_without_servers_passes_the_contract(client: ApiClient, path: str) -> None:
    id = "GET /os-simple-tenant-usage" + ("/{tenant_id}" if path else "")
    client.conductor.usages = []
    answers.assert_reads(id, client, f"/os-simple-tenant-usage{path}")


def test_answers_to_class_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        body = {"quota_class_set": {"cores": "45"}}
        answer = client.put("/os-quota-class-sets/default", body, version=f"2.{version}")
        answers.assert_answer("PUT /os-quota-class-sets/{quota_class}", version, answer)


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples(READS))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    answer = client.get(READS[id], version=f"2.{version}")
    free = {path for path in answers.fields(content) if ".log." in path}  # hosts are the sample's own
    assert answers.fields(content) - free <= answers.fields(answer.json)


def test_extensions_are_the_published_ones(client: ApiClient) -> None:
    path = rows.SHARED / "samples" / "extension-info" / "extensions-list-resp-v21-compatible.json"
    assert client.get("/extensions").json == json.loads(path.read_text())
    path = path.with_name("extensions-get-resp.json")
    assert client.get("/extensions/os-agents").json == json.loads(path.read_text())
