"""Who signed a request: over real HTTP with the fake Keystone, and by an answer made by hand."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3
from keystoneclient.v3 import client
from oslo_config import cfg

from nova import conf, errors
from nova.clients.session import Caller, Credentials
from nova.clients.signed_tokens import SignedToken, SignedTokens
from nova.context import RequestContext, entered
from nova.legacy.signatures import signers
from nova.legacy.signatures.request import SignatureFault, SignatureRefused, SignedRequest
from tests.fakes import aws_signers
from tests.fakes.aws_signers import ENDPOINT, by_botocore, received
from tests.unit.devel.served import PASSWORD, FakeCloud, fake_cloud

POST = received("POST", f"{ENDPOINT}/services/Cloud", {}, b"Action=DescribeRegions")


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as made:
        yield made


@pytest.fixture
def key(cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The key of user demo by which ``aws_signers`` sign."""
    session = cloud.session("demo", "demo")
    made = client.Client(session=session).ec2.create(session.get_user_id(), session.get_project_id())
    monkeypatch.setattr(aws_signers, "ACCESS", made.access)
    monkeypatch.setattr(aws_signers, "SECRET", made.secret)
    return made


def tokens(url: str, user: str = "nova", password: str = PASSWORD, ec2_url: str | None = None) -> SignedTokens:
    auth = v3.Password(f"{url}/v3", username=user, password=password, user_domain_id="default",
                       project_name="service" if user == "nova" else "demo", project_domain_id="default")
    return SignedTokens(Credentials(ksession.Session(), auth), ec2_url)


def signed_ec2(kind: str) -> SignedRequest:
    if kind == "SigV2Auth":
        return by_botocore(kind, received("GET", f"{ENDPOINT}/services/Cloud?Action=DescribeRegions", {}))
    return by_botocore(kind, POST, b"Action=DescribeRegions")


def v2_query() -> SignedRequest:
    import urllib.parse

    import boto.auth

    parameters = {"Action": "DescribeRegions", "AWSAccessKeyId": aws_signers.ACCESS, "SignatureVersion": "2",
                  "SignatureMethod": "HmacSHA256", "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    provider = type(aws_signers.PROVIDER)(**{**vars(aws_signers.PROVIDER), "access_key": aws_signers.ACCESS,
                                             "secret_key": aws_signers.SECRET})
    handler = boto.auth.QuerySignatureV2AuthHandler("127.0.0.1:8773", None, provider)
    _, value = handler._calc_signature(parameters, "GET", "/services/Cloud", "127.0.0.1:8773")
    return received("GET", f"{ENDPOINT}/services/Cloud?" + urllib.parse.urlencode(
        {**parameters, "Signature": value.decode()}), {})


def check_demo(fields: Mapping[str, Any], cloud: FakeCloud) -> None:
    session = cloud.session("demo", "demo")
    assert (fields["user_id"], fields["project_id"]) == (session.get_user_id(), session.get_project_id())
    assert (fields["user_name"], fields["project_name"], fields["user_domain_id"]) == ("demo", "demo", "default")
    assert set(fields["roles"]) == {"member", "reader"}


def test_ec2_when_it_is_signed_by_either_version_then_keystone_says_who_and_the_token_is_the_callers(
        cloud: FakeCloud, key: Any) -> None:
    found = signers.KeystoneSigners(tokens(cloud.identity_url))
    for request in (signed_ec2("SigV4Auth"), v2_query()):
        fields = found.ec2(request, time.time())
        check_demo(fields, cloud)
        assert cloud.keystone.identify(fields["token"]).project_id == fields["project_id"]


def test_signer_when_a_role_is_given_or_taken_then_the_next_request_has_what_there_is_now(cloud: FakeCloud, key: Any
                                                                                         ) -> None:
    """Not what the credential had when it was made (CVE-2020-12691)."""
    found, admin = signers.KeystoneSigners(tokens(cloud.identity_url)), client.Client(session=cloud.session())
    at = {"user": key.user_id, "project": key.tenant_id}
    plain = received("GET", f"{ENDPOINT}/bucket", {})

    def roles() -> list[set[str]]:
        return [set(found.ec2(signed_ec2("SigV4Auth"), time.time())["roles"]),
                set(found.s3(by_botocore("S3SigV4Auth", plain), time.time())["roles"])]
    assert roles() == 2 * [{"member", "reader"}]
    admin.roles.grant(admin.roles.find(name="manager"), **at)
    assert roles() == 2 * [{"manager", "member", "reader"}]
    for name in ("manager", "member"):
        admin.roles.revoke(admin.roles.find(name=name), **at)
    admin.roles.grant(admin.roles.find(name="reader"), **at)
    assert roles() == 2 * [{"reader"}]


def test_signature_when_it_is_checked_then_by_the_services_credential_and_for_its_own_request_alone(
        cloud: FakeCloud, key: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, whole = [], Caller.call

    def call(caller: Caller, method: str, path: str, **how: Any) -> Any:
        answer = whole(caller, method, path, **how)
        if path.endswith("tokens"):
            asked.append(answer.request.headers["X-Auth-Token"])
        return answer
    monkeypatch.setattr(Caller, "call", call)
    found = signers.KeystoneSigners(tokens(cloud.identity_url))
    with entered(RequestContext(request_id="req-1", token=cloud.session("demo", "demo").get_token())):
        request = signed_ec2("SigV4Auth")
        found.ec2(request, time.time())
        found.s3(by_botocore("S3SigV4Auth", received("GET", f"{ENDPOINT}/bucket", {})), time.time())
    nova = cloud.session("nova", "service").get_user_id()
    assert [cloud.keystone.identify(token).user_id for token in asked] == [nova, nova]
    body = b"Action=DescribeInstances"
    with pytest.raises(SignatureRefused):
        found.ec2(dataclasses.replace(request, form=(("Action", "DescribeInstances"),),
                                      body_hash=hashlib.sha256(body).hexdigest()), time.time())


def test_s3_when_it_is_signed_by_either_version_then_keystone_says_who(cloud: FakeCloud, key: Any) -> None:
    found = signers.KeystoneSigners(tokens(cloud.identity_url, ec2_url=f"{cloud.identity_url}/v3/ec2tokens"))
    plain = received("GET", f"{ENDPOINT}/bucket/a%20key", {})
    for kind in ("S3SigV4Auth", "HmacV1Auth"):
        fields = found.s3(by_botocore(kind, plain), time.time())
        check_demo(fields, cloud)
        assert fields["token"] is None


@pytest.mark.parametrize("what", ["ACCESS", "SECRET"])
def test_signature_when_key_or_secret_is_wrong_then_the_refusal_does_not_say_which(
        cloud: FakeCloud, key: Any, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(aws_signers, what, "another")
    found = signers.KeystoneSigners(tokens(cloud.identity_url))
    for ask in (lambda: found.ec2(signed_ec2("SigV4Auth"), time.time()),
                lambda: found.s3(by_botocore("S3SigV4Auth", received("GET", f"{ENDPOINT}/b", {})), time.time())):
        with pytest.raises(SignatureRefused) as caught:
            ask()
        assert caught.value.fault is SignatureFault.MISMATCH


def test_ec2_when_it_is_old_then_it_is_refused_before_keystone_is_asked(key: Any) -> None:
    found = signers.KeystoneSigners(tokens("http://127.0.0.1:9"), signers.Ec2Terms(300))
    for request, late in ((v2_query(), 301), (signed_ec2("SigV4Auth"), 901)):
        with pytest.raises(SignatureRefused) as caught:
            found.ec2(request, time.time() + late)
        assert caught.value.fault is SignatureFault.TOO_OLD


@pytest.mark.parametrize("made", [
    lambda terms: signers.KeystoneSigners(tokens("http://127.0.0.1:9"), terms), signers.NoAuthSigners])
def test_ec2_when_its_signature_is_of_a_version_that_is_not_taken_then_it_is_refused_unasked(
        made: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = made(signers.Ec2Terms(versions=frozenset({"4"})))
    for _ in range(3):
        with pytest.raises(SignatureRefused, match="SignatureVersion 2") as refused:
            found.ec2(dataclasses.replace(v2_query(), peer="192.0.2.7"), time.time())
        assert refused.value.fault is SignatureFault.NOT_TAKEN and "ec2_signature_versions" not in str(refused.value)
    line, = caplog.messages
    assert "ec2_signature_versions" in line and "version 2" in line and "192.0.2.7" in line


def test_ec2_when_the_digest_is_one_that_keystone_does_not_know_then_the_refusal_names_it() -> None:
    found = signers.KeystoneSigners(tokens("http://127.0.0.1:9"))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    request = received("GET", f"{ENDPOINT}/?AWSAccessKeyId=a&Signature=b&SignatureVersion=2&SignatureMethod=HmacSHA1"
                              f"&Timestamp={stamp}", {})
    with pytest.raises(SignatureRefused, match="SignatureMethod"):
        found.ec2(request, time.time())


def test_signers_when_keystone_is_away_or_refuses_us_then_the_caller_is_not_blamed(
        cloud: FakeCloud, key: Any, caplog: pytest.LogCaptureFixture) -> None:
    request = signed_ec2("SigV4Auth")
    with pytest.raises(errors.api.SignaturesAway):
        signers.KeystoneSigners(tokens("http://127.0.0.1:9")).ec2(request, time.time())
    for refusing in (tokens(cloud.identity_url, "demo"), tokens(cloud.identity_url, password="wrong"),
                     tokens(cloud.identity_url, ec2_url=f"{cloud.identity_url}/v4/ec2tokens")):
        with pytest.raises(errors.api.IdentityRefuses):
            signers.KeystoneSigners(refusing).ec2(request, time.time())
    assert key.access not in caplog.text and key.secret not in caplog.text


def test_signers_when_all_is_logged_then_no_signature_and_no_token_is(
        cloud: FakeCloud, key: Any, caplog: pytest.LogCaptureFixture) -> None:
    request = by_botocore("S3SigV4Auth", received("GET", f"{ENDPOINT}/bucket", {}))
    with caplog.at_level(logging.DEBUG):
        fields = signers.KeystoneSigners(tokens(cloud.identity_url)).ec2(signed_ec2("SigV4Auth"), time.time())
        signers.KeystoneSigners(tokens(cloud.identity_url)).s3(request, time.time())
    signature = request.headers["authorization"].rpartition("=")[2]
    assert fields["token"] not in caplog.text and signature not in caplog.text


def test_signers_when_strangers_cause_401_then_we_log_in_anew_once_a_minute(
        cloud: FakeCloud, key: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    session = cloud.session("nova", "service")
    asked = SignedTokens(Credentials(session, session.auth), clock=lambda: now[0])
    found, log_ins = signers.KeystoneSigners(asked), []
    whole = session.auth.get_auth_ref
    monkeypatch.setattr(session.auth, "get_auth_ref", lambda *a, **k: log_ins.append(1) or whole(*a, **k))
    good = signed_ec2("SigV4Auth")
    found.ec2(good, time.time())
    before = len(log_ins)
    monkeypatch.setattr(aws_signers, "SECRET", "wrong")
    for _ in range(4):
        with pytest.raises(SignatureRefused):
            found.ec2(signed_ec2("SigV4Auth"), time.time())
    assert len(log_ins) == 1 + before
    cloud.keystone.directory.tokens.clear()  # Keystone has forgotten ours: until the minute is over nobody can tell
    with pytest.raises(SignatureRefused):
        found.ec2(good, time.time())
    now[0] += 61
    assert found.ec2(good, time.time())["user_name"] == "demo"
    cloud.keystone.directory.tokens.clear()  # and where no stranger has been at work, at once
    assert found.ec2(good, time.time())["user_name"] == "demo"


#: By the shape of the API reference for a token of a project; made by hand.
OF_A_PROJECT = json.loads("""{"token": {"methods": ["ec2credential"], "user": {"domain": {"id": "default",
    "name": "Default"}, "id": "0fa8", "name": "demo", "password_expires_at": null}, "audit_ids": ["S5h"],
    "expires_at": "2026-11-27T03:05:00.000000Z", "issued_at": "2026-11-27T02:05:00.000000Z", "project": {"domain":
    {"id": "corp", "name": "Corp"}, "id": "77e1", "name": "web"}, "is_domain": false, "roles": [{"id": "a1", "name":
    "member"}, {"id": "b2", "name": "reader"}], "catalog": []}}""")


def test_context_fields_when_keystone_answers_then_all_of_them_are_there() -> None:
    assert signers.context_fields(SignedToken("gAAA", OF_A_PROJECT["token"])) == {
        "user_id": "0fa8", "user_name": "demo", "user_domain_id": "default", "project_id": "77e1",
        "project_name": "web", "project_domain_id": "corp", "domain_id": None, "system_scope": None,
        "roles": ("member", "reader"), "token": "gAAA"}
    with pytest.raises(errors.api.IdentityRefuses):
        signers.context_fields(SignedToken(None, {"user": {}}))


@pytest.mark.parametrize("url", ["http://k/v2.0/ec2tokens", "http://k/v3"])
def test_from_conf_when_the_url_is_none_of_ec2tokens_then_it_is_refused(url: str) -> None:
    options = conf.register(cfg.ConfigOpts())
    options([], default_config_files=[])
    options.set_override("keystone_ec2_url", url)
    with pytest.raises(errors.config.Ec2Url, match="ec2tokens"):
        signers.from_conf(options)


@pytest.mark.parametrize(("access", "user", "project", "role"), [
    ("demo:web", "demo", "web", "member"), ("demo", "demo", "demo", "member"), ("admin:web", "admin", "web", "admin")])
def test_noauth_when_a_key_names_user_and_project_then_it_is_believed(
        monkeypatch: pytest.MonkeyPatch, access: str, user: str, project: str, role: str) -> None:
    monkeypatch.setattr(aws_signers, "ACCESS", access)
    options = conf.register(cfg.ConfigOpts())
    options([], default_config_files=[])
    options.set_override("auth_strategy", "noauth2", "api")
    found = signers.from_conf(options)
    plain = received("GET", f"{ENDPOINT}/bucket", {})
    for fields in (found.ec2(signed_ec2("SigV4Auth"), time.time()), found.s3(by_botocore("HmacV1Auth", plain),
                                                                              time.time())):
        assert (fields["user_id"], fields["project_id"]) == (user, project) and role in fields["roles"]
    with pytest.raises(SignatureRefused):
        found.s3(by_botocore("HmacV1Auth", plain), time.time() + 901)
    with pytest.raises(SignatureRefused) as caught:
        signers.believed(":web")
    assert caught.value.fault is SignatureFault.NO_SUCH_KEY


def test_signed_tokens_when_the_answer_is_none_of_keystones_then_it_counts_as_away(
        monkeypatch: pytest.MonkeyPatch, cloud: FakeCloud, key: Any) -> None:
    asked = tokens(cloud.identity_url)
    monkeypatch.setattr(requests.Response, "json", lambda self: [])
    with pytest.raises(errors.NovaError):
        signers.KeystoneSigners(asked).ec2(signed_ec2("SigV4Auth"), time.time())
