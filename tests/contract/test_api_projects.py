"""What we answer about keypairs, quotas and limits passes the contract's rows at every version."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from nova.web import keys
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient

pytestmark = rows.needs_contract

SSH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6zQ0n0PZqwJ0Mm0yqYkqgHqNnQ3bq0m8JrXbXy4nXq joe"

READS = {
    "GET /os-keypairs": "/os-keypairs?limit=1",
    "GET /os-keypairs/{keypair_name}": "/os-keypairs/key",
    "GET /limits": "/limits",
    "GET /os-quota-sets/{tenant_id}": "/os-quota-sets/demo",
    "GET /os-quota-sets/{tenant_id}/detail": "/os-quota-sets/demo/detail?user_id=joe",
    "GET /os-quota-sets/{tenant_id}/defaults": "/os-quota-sets/demo/defaults",
}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO)
    made.conductor.used = {"instances": 1, "cores": 2}
    answer = made.post("/os-keypairs", {"keypair": {"name": "key", "public_key": SSH}})
    assert answer.status_int == 200
    return made


@pytest.mark.parametrize("id", READS)
def test_answer_at_every_version_passes_the_contract(id: str, client: ApiClient) -> None:
    answers.assert_reads(id, client, READS[id])


def test_answers_to_keypair_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        body = {"keypair": {"name": "a b_-1", "public_key": SSH}}
        answer = client.post("/os-keypairs", body, version=f"2.{version}")
        answers.assert_answer("POST /os-keypairs", version, answer)
        answer = client.delete("/os-keypairs/a%20b_-1", version=f"2.{version}")
        answers.assert_answer("DELETE /os-keypairs/{keypair_name}", version, answer)


def test_answer_with_a_made_key_passes_the_contract(client: ApiClient) -> None:
    for version in (1, 2, 91):
        answer = client.post("/os-keypairs", {"keypair": {"name": f"made{version}"}}, version=f"2.{version}")
        answers.assert_answer("POST /os-keypairs", version, answer)


def test_answers_to_quota_writes_at_every_version_pass_the_contract(client: ApiClient) -> None:
    for version in rows.VERSIONS:
        at: dict[str, Any] = {"version": f"2.{version}", "token": ADMIN}
        answer = client.put("/os-quota-sets/demo", {"quota_set": {"cores": "45", "force": "True"}}, **at)
        answers.assert_answer("PUT /os-quota-sets/{tenant_id}", version, answer)
        assert answer.json["quota_set"]["cores"] == 45
        answer = client.delete("/os-quota-sets/demo", **at)
        answers.assert_answer("DELETE /os-quota-sets/{tenant_id}", version, answer)


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples(READS))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any, client: ApiClient) -> None:
    answer = client.get(READS[id], version=f"2.{version}")
    assert answers.fields(content) <= answers.fields(answer.json)


def published_keys() -> list[Any]:
    """(fingerprint, public key) of the samples."""
    folder = pathlib.Path(rows.SHARED) / "samples" / "os-keypairs"
    found = []
    for path in sorted(folder.glob("**/*resp.json")):
        content = json.loads(path.read_text())
        for entry in content.get("keypairs", [content]):
            found.append(pytest.param(entry["keypair"]["fingerprint"], entry["keypair"]["public_key"],
                                      id=str(path.relative_to(folder))))
    return found


@pytest.mark.parametrize(("fingerprint", "public_key"), published_keys())
def test_fingerprint_of_a_published_key_is_the_published_one(fingerprint: str, public_key: str) -> None:
    assert keys.fingerprint("ssh", public_key) == fingerprint
