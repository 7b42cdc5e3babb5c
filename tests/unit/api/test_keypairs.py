"""Keypairs: whose, made or imported, paged, and who may touch those of others."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.web import keys
from tests.fakes.api import ADMIN, DEMO, ApiClient

SSH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6zQ0n0PZqwJ0Mm0yqYkqgHqNnQ3bq0m8JrXbXy4nXq joe"


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(token=DEMO)


def imported(client: ApiClient, name: str = "key", **fields: Any) -> Any:
    return client.post("/os-keypairs", {"keypair": {"name": name, "public_key": SSH, **fields}})


def test_import_keeps_the_key_and_answers_no_private_one(client: ApiClient) -> None:
    answer = imported(client)
    assert answer.status_int == 200
    assert answer.json["keypair"] == {"name": "key", "public_key": SSH, "user_id": "demo",
                                      "fingerprint": keys.fingerprint("ssh", SSH)}
    assert client.conductor.keypairs[("demo", "key")].public_key == SSH


def test_create_without_a_key_makes_one_and_the_conductor_never_sees_the_private_part(client: ApiClient) -> None:
    answer = client.post("/os-keypairs", {"keypair": {"name": "key"}}, version="2.2")
    assert answer.status_int == 201
    assert "PRIVATE KEY" in answer.json["keypair"]["private_key"]
    assert "PRIVATE" not in str(client.conductor.keypairs)


def test_create_of_a_certificate_makes_one_of_the_caller(client: ApiClient) -> None:
    answer = client.post("/os-keypairs", {"keypair": {"name": "key", "type": "x509"}}, version="2.2")
    assert answer.json["keypair"]["type"] == "x509"
    assert answer.json["keypair"]["public_key"].startswith("-----BEGIN CERTIFICATE-----")


def test_create_without_a_key_from_2_92_is_refused(client: ApiClient) -> None:
    assert client.post("/os-keypairs", {"keypair": {"name": "key"}}, version="2.92").status_int == 400
    assert client.conductor.keypairs == {}


@pytest.mark.parametrize("public_key", ["", "ssh-rsa JUNK nova@ubuntu"])
def test_import_of_no_key_is_400_and_keeps_nothing(client: ApiClient, public_key: str) -> None:
    answer = imported(client, public_key=public_key)
    assert answer.status_int == 400
    assert "Keypair data is invalid" in answer.json["badRequest"]["message"]
    assert client.conductor.keypairs == {}


@pytest.mark.parametrize(("name", "version", "status"), [
    ("a.b@c", "2.91", 400), ("a.b@c", "2.92", 201), ("", "2.1", 400), (" a", "2.1", 400), ("a\n", "2.1", 400),
    ("a/b", "2.92", 400), ("x" * 256, "2.1", 400), ("key", "2.1", 409)])
def test_name_when_it_is_odd_or_taken_is_refused(client: ApiClient, name: str, version: str, status: int) -> None:
    imported(client)
    answer = client.post("/os-keypairs", {"keypair": {"name": name, "public_key": SSH}}, version=version)
    assert answer.status_int == status


def test_name_under_v2_loses_the_blanks_at_its_ends(client: ApiClient) -> None:
    client.prefix = "/v2"
    answer = imported(client, name=" a key ", type="ssh")  # type is no field of this version: left out
    assert answer.status_int == 200
    assert answer.json["keypair"]["name"] == "a key"
    assert client.get("/os-keypairs/a%20key").status_int == 200


def test_create_over_quota_is_403(client: ApiClient) -> None:
    client.conductor.given(create_keypair=errors.OverQuota("Quota exceeded, too many key pairs."))
    answer = imported(client)
    assert answer.status_int == 403
    assert "Quota exceeded" in answer.json["forbidden"]["message"]


def test_show_and_delete_of_none_are_404(client: ApiClient) -> None:
    assert client.get("/os-keypairs/none").status_int == 404
    assert client.delete("/os-keypairs/none").status_int == 404


def test_delete_takes_it_away(client: ApiClient) -> None:
    imported(client)
    assert client.delete("/os-keypairs/key", version="2.2").status_int == 204
    assert client.conductor.keypairs == {}


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("DELETE", 204)])
def test_keypair_of_another_user_is_for_admins_from_2_10(method: str, status: int) -> None:
    client = ApiClient(token="joe:demo")
    imported(client)
    path = "/os-keypairs/key?user_id=joe"
    assert client.request(method, path, token="eve:demo", version="2.10").status_int == 403
    assert client.request(method, path, token=ADMIN, version="2.9").status_int == 404  # ignored: the admin's own
    assert client.request(method, path, token=ADMIN, version="2.10").status_int == status


def test_list_of_another_users_keypairs_is_for_admins_from_2_10() -> None:
    client = ApiClient(token="joe:demo")
    imported(client)
    path = "/os-keypairs?user_id=joe"
    assert client.get(path, token="eve:demo", version="2.10").status_int == 403
    assert client.get(path, token=ADMIN, version="2.9").json == {"keypairs": []}
    assert len(client.get(path, token=ADMIN, version="2.10").json["keypairs"]) == 1


def test_create_for_another_user_is_for_admins(client: ApiClient) -> None:
    body = {"keypair": {"name": "key", "public_key": SSH, "user_id": "joe"}}
    assert client.post("/os-keypairs", body, version="2.10").status_int == 403
    assert client.post("/os-keypairs", body, version="2.10", token=ADMIN).status_int == 201
    assert list(client.conductor.keypairs) == [("joe", "key")]


def test_list_from_2_35_comes_in_pages(client: ApiClient) -> None:
    for name in ("b", "a", "c"):
        imported(client, name)
    first = client.get("/os-keypairs?limit=2", version="2.35").json
    assert [entry["keypair"]["name"] for entry in first["keypairs"]] == ["a", "b"]
    link = first["keypairs_links"][0]["href"]
    assert link.endswith("/v2.1/os-keypairs?limit=2&marker=b")
    rest = client.get(link.partition("/v2.1")[2], version="2.35").json
    assert [entry["keypair"]["name"] for entry in rest["keypairs"]] == ["c"]
    assert "keypairs_links" not in rest
    assert len(client.get("/os-keypairs?limit=2", version="2.34").json["keypairs"]) == 3
    assert client.get("/os-keypairs?marker=z", version="2.35").status_int == 400
    assert client.get("/os-keypairs?limit=-1", version="2.35").status_int == 400
