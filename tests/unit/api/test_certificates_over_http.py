"""os-certificates: below /v2 as it once was, and gone at /v2.1."""

from __future__ import annotations

import logging

import pytest

from nova import errors
from nova.api import legacy_v2
from nova.context import RequestContext
from nova.model.security.certificates import SignedCertificate
from nova.policies import Policy
from tests.fakes.api import ADMIN, READER, ApiClient, configuration

SECRET = "-----BEGIN RSA PRIVATE KEY-----\nMIIsecret\n-----END RSA PRIVATE KEY-----\n"
MADE = SignedCertificate(certificate="Certificate:\n-----BEGIN CERTIFICATE-----\n", private_key=SECRET)


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient()
    made.prefix = "/v2"
    made.certs.given(generate_x509_cert=MADE, fetch_ca="ROOT PEM")
    return made


@pytest.mark.parametrize("options", [{"body": None}, {"body": {}}, {"body": None, "raw": b""}])
def test_create_when_a_user_asks_then_certificate_and_key_come_and_are_kept_by_none(client, options, caplog):
    caplog.set_level(logging.DEBUG)
    answer = client.post("/demo/os-certificates", **options)
    assert answer.status_code == 200
    assert answer.json == {"certificate": {"data": MADE.certificate, "private_key": SECRET}}
    assert answer.headers["Cache-Control"] == "no-store"
    assert client.certs.asked("generate_x509_cert") == [("demo", "demo")]
    assert "MIIsecret" not in caplog.text


def test_show_when_it_is_the_root_then_it_has_no_key(client):
    answer = client.get("/demo/os-certificates/root", token=READER)
    assert answer.json == {"certificate": {"data": "ROOT PEM", "private_key": None}}
    assert client.certs.asked("fetch_ca") == ["demo"]


@pytest.mark.parametrize("id", ["1", "Root", "rootx"])
def test_show_when_it_is_another_then_501_says_which_one_can_be(client, id):
    answer = client.get(f"/demo/os-certificates/{id}")
    assert answer.status_code == 501
    assert answer.json["notImplemented"]["message"] == "Only root certificate can be retrieved."
    assert client.certs.calls == []


@pytest.mark.parametrize("version", [None, "2.1", "2.104"])
def test_either_when_asked_at_v21_then_it_is_gone(client, version):
    client.prefix = "/v2.1"
    for answer in (client.post("/os-certificates", None, version=version, token=ADMIN),
                   client.get("/os-certificates/root", version=version)):
        assert answer.status_code == 410
    assert client.certs.calls == []


@pytest.mark.parametrize(("roles", "creates", "shows"), [
    (("reader",), False, True), (("member", "reader"), True, True), ((), False, False)])
def test_rules_when_a_role_is_missing_then_they_refuse(roles, creates, shows):
    who = RequestContext(request_id="req-1", user_id="joe", project_id="demo", roles=roles)
    allowed = [Policy(configuration()).allows(who, row.policy, {"project_id": "demo", "user_id": "joe"})
               for row in legacy_v2.ROUTES]
    assert [row.method for row in legacy_v2.ROUTES] == ["POST", "GET"] and allowed == [creates, shows]


def test_create_when_an_operators_rule_refuses_then_the_refusal_names_it(tmp_path):
    (tmp_path / "policy.yaml").write_text('"os_compute_api:os-certificates:create": "role:nobody"\n')
    conf = configuration()
    Policy(conf)  # declares the option
    conf.set_override("policy_file", str(tmp_path / "policy.yaml"), group="oslo_policy")
    made = ApiClient(conf=conf)
    made.prefix = "/v2"
    answer = made.post("/demo/os-certificates", None)
    assert answer.status_code == 403 and "os_compute_api:os-certificates:create" in answer.json["forbidden"]["message"]
    assert made.certs.calls == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_when_asked_then_there_are_none(client, method):
    assert client.request(method, "/demo/os-certificates/root").status_code in (404, 405)


def test_either_when_nova_cert_is_away_then_503_names_it(client):
    client.certs.away = True
    for answer in (client.post("/demo/os-certificates", None), client.get("/demo/os-certificates/root")):
        assert answer.status_code == 503 and "nova-cert" in answer.text


def test_create_when_the_authority_is_damaged_then_503_and_no_path(client):
    client.certs.given(generate_x509_cert=errors.cert.Damaged(file="index.txt", reason="line 3 is damaged"))
    answer = client.post("/demo/os-certificates", None)
    assert answer.status_code == 503 and "index.txt" in answer.text and "Cache-Control" not in answer.headers
