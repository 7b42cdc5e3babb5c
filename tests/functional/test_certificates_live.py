"""Certificates from a user's request to the list of what was revoked: real daemons, and the program openssl."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from nova import context, errors
from nova.rpc.contracts.cert import CertRPC
from tests.functional.cloud import Cloud, Plan
from tests.functional.test_control_driver import make_bus

pytestmark = pytest.mark.in_turn(2, 10)
USER, PROJECT = "joe", "demo"


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(certs=True, network=False, computes=0, options={"DEFAULT": {"debug": True}})).start()


@pytest.fixture(scope="module")
def certs(cloud: Cloud) -> Iterator[Any]:
    bus = make_bus(cloud.broker_url, "asks")
    with context.entered(context.internal()):
        yield bus.client(CertRPC)
    bus.close()


def openssl(*words: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *map(str, words)], input=given, capture_output=True, timeout=30)


def ask(cloud: Cloud, method: str, path: str, user: str = USER) -> requests.Response:
    """As ``nova x509-create-cert`` and ``x509-get-root-cert`` do: below /v2, without a body."""
    return requests.request(method, f"{cloud.url.removesuffix('.1')}/{PROJECT}/os-certificates{path}",
                            headers={"X-Auth-Token": f"{user}:{PROJECT}"}, timeout=60)


def test_certificate_when_made_by_rest_then_it_verifies_decrypts_and_is_refused_once_revoked(
        cloud: Cloud, certs: Any, tmp_path: Path) -> None:
    made = [ask(cloud, "POST", "", user) for user in (USER, "ann")]
    assert [one.status_code for one in made] == [200, 200], made[0].text
    assert made[0].headers["Cache-Control"] == "no-store"
    mine, hers = (one.json()["certificate"] for one in made)
    root = ask(cloud, "GET", "/root").json()["certificate"]
    assert root["private_key"] is None
    for name, text in (("cacert.pem", root["data"]), ("cert.pem", mine["data"]), ("pk.pem", mine["private_key"]),
                       ("ann.pem", hers["data"])):
        (tmp_path / name).write_text(text)
    verify = ("verify", "-CAfile", tmp_path / "cacert.pem")
    assert openssl(*verify, tmp_path / "cert.pem", tmp_path / "ann.pem").returncode == 0
    assert openssl("pkey", "-in", tmp_path / "pk.pem", "-pubout").stdout == \
        openssl("x509", "-in", tmp_path / "cert.pem", "-pubkey", "-noout").stdout

    secret = openssl("pkeyutl", "-encrypt", "-certin", "-inkey", tmp_path / "cacert.pem", given=b"0123456789abcdef")
    assert certs.decrypt_text(PROJECT, base64.b64encode(secret.stdout).decode()) == "0123456789abcdef"
    with pytest.raises(errors.Invalid, match="Unable to decrypt the text"):
        certs.decrypt_text(PROJECT, "AAAA")

    assert "revoked: 1" in cloud.manage("x509", "revoke", "--user", USER)
    assert "No certificates to revoke" in cloud.manage("x509", "revoke", "--user", USER, code=3)
    (tmp_path / "both.pem").write_text(root["data"] + certs.fetch_crl(PROJECT))
    judged = [openssl("verify", "-crl_check", "-CAfile", tmp_path / "both.pem", tmp_path / name)
              for name in ("cert.pem", "ann.pem")]
    assert [one.returncode for one in judged] == [2, 0] and b"certificate revoked" in judged[0].stderr
    assert certs.revoke_certs_by_project(PROJECT) == 1
    body = mine["private_key"].splitlines()[5]
    assert not [path for path in cloud.root.rglob("*") if path.is_file() and body.encode() in path.read_bytes()]


def test_certificate_when_nova_cert_is_killed_and_started_again_then_nothing_is_lost(
        cloud: Cloud, certs: Any) -> None:
    root = certs.fetch_ca(PROJECT)
    first = ask(cloud, "POST", "").json()["certificate"]["data"]
    cloud.daemons["cert"].kill()
    cloud.daemons["cert"].start()
    cloud.daemons["cert"].ready()
    second = ask(cloud, "POST", "").json()["certificate"]["data"]
    assert certs.fetch_ca(PROJECT) == root and first.splitlines()[3] != second.splitlines()[3]
    assert certs.revoke_certs_by_user_and_project(USER, PROJECT) == 2


def test_certificate_when_nova_cert_is_down_then_503_names_it(cloud: Cloud) -> None:
    cloud.daemons["cert"].kill()
    answer = ask(cloud, "POST", "")
    assert answer.status_code == 503 and "nova-cert" in answer.text
    assert "nova-cert" in cloud.manage("x509", "revoke", "--user", USER, code=1)
    cloud.daemons["cert"].start()
    cloud.daemons["cert"].ready()
    assert ask(cloud, "POST", "").status_code == 200
