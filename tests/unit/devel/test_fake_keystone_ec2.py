"""EC2 credentials of the fake Keystone, by its public clients' calls, and what it says of signatures."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from keystoneauth1 import exceptions, session, token_endpoint
from keystoneauth1.identity import v3
from keystoneclient.v3 import client

from nova.devel.identity.ec2_credentials import new_key
from nova.devel.identity.keystone import FakeKeystone
from nova.legacy.signatures.keystone import ec2tokens_body, s3tokens_body
from nova.legacy.signatures.versions import ec2_signature, s3_signature
from tests.fakes import aws_signers
from tests.fakes.aws_signers import ENDPOINT, by_botocore, received
from tests.unit.devel.served import FakeCloud


def demo(cloud: FakeCloud) -> tuple[Any, str, str]:
    """A client of user demo, and the ids of the user and the project."""
    logged_in = cloud.session("demo", "demo")
    return client.Client(session=logged_in), logged_in.get_user_id(), logged_in.get_project_id()


def body_of(monkeypatch: pytest.MonkeyPatch, access: str, secret: str, service: str = "ec2") -> dict[str, Any]:
    """What a service would ask about a request that botocore signed."""
    monkeypatch.setattr(aws_signers, "ACCESS", access)
    monkeypatch.setattr(aws_signers, "SECRET", secret)
    if service == "ec2":
        request = by_botocore("SigV4Auth", received("POST", f"{ENDPOINT}/services/Cloud", {}, b"a=b"), b"a=b")
        return {**ec2tokens_body(request, ec2_signature(request, time.time()))}
    request = by_botocore("S3SigV4Auth", received("GET", f"{ENDPOINT}/bucket/a%20key", {}))
    return {**s3tokens_body(s3_signature(request, time.time()))}


def test_ec2_credentials_when_a_user_makes_some_then_both_doors_show_them_until_they_are_deleted(
        cloud: FakeCloud) -> None:
    own, user, project = demo(cloud)
    made = own.ec2.create(user, project)
    assert [one.access for one in own.ec2.list(user)] == [made.access]
    assert own.ec2.get(user, made.access).secret == made.secret
    typed = own.credentials.list(user_id=user, type="ec2")[0]
    assert typed.id == hashlib.sha256(made.access.encode()).hexdigest()
    assert json.loads(typed.blob)["secret"] == made.secret and typed.project_id == project
    own.ec2.delete(user, made.access)
    assert own.ec2.list(user) == [] and own.credentials.list() == []


def test_ec2_credentials_when_they_are_typed_ones_of_own_words_then_they_are_shown_and_deleted(
        cloud: FakeCloud) -> None:
    own, user, project = demo(cloud)
    made = own.credentials.create(user, "ec2", json.dumps({"access": "mine", "secret": "hush"}), project)
    assert own.ec2.get(user, "mine").secret == "hush"
    with pytest.raises(exceptions.Conflict):
        own.credentials.create(user, "ec2", json.dumps({"access": "mine", "secret": "else"}), project)
    assert own.credentials.get(made.id).type == "ec2"
    own.credentials.delete(made.id)
    with pytest.raises(exceptions.NotFound):
        own.credentials.get(made.id)


def test_ec2_credentials_when_another_user_asks_then_they_are_refused(cloud: FakeCloud) -> None:
    own, user, project = demo(cloud)
    admin = client.Client(session=cloud.session())
    made = admin.ec2.create(cloud.session().get_user_id(), project)
    for refused in (lambda: own.ec2.list(cloud.session().get_user_id()),
                    lambda: own.credentials.get(hashlib.sha256(made.access.encode()).hexdigest()),
                    lambda: own.ec2.create(user, cloud.session().get_project_id())):
        with pytest.raises(exceptions.Forbidden):
            refused()
    assert own.credentials.list() == []
    with pytest.raises(exceptions.NotFound):
        own.ec2.get(user, made.access)


def by_application_credential(cloud: FakeCloud, **members: object) -> client.Client:
    """A client of user demo that has logged in so."""
    made = demo(cloud)[0].application_credentials.create("one", **members)
    return client.Client(session=session.Session(v3.ApplicationCredential(
        f"{cloud.identity_url}/v3", application_credential_id=made.id, application_credential_secret=made.secret)))


def test_ec2_credentials_when_the_token_is_of_a_restricted_credential_then_it_makes_and_reads_none(
        cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would have all roles of the user, and live on (CVE-2020-12689, CVE-2026-33551)."""
    own, user, project = demo(cloud)
    made, typed = own.ec2.create(user, project), own.credentials.list()[0].id
    token = requests.post(f"{cloud.identity_url}/v3/ec2tokens", json=body_of(monkeypatch, made.access, made.secret),
                          headers={"X-Auth-Token": cloud.session("nova", "service").get_token()}, timeout=10)
    by_key = session.Session(token_endpoint.Token(f"{cloud.identity_url}/v3", token.headers["X-Subject-Token"]))
    for by_it in (by_application_credential(cloud, roles=[{"name": "reader"}]), client.Client(session=by_key)):
        for refused in (lambda by=by_it: by.ec2.create(user, project),
                        lambda by=by_it: by.credentials.create(user, "ec2", '{"access": "a", "secret": "b"}', project),
                        lambda by=by_it: by.ec2.list(user), lambda by=by_it: by.ec2.get(user, made.access),
                        lambda by=by_it: by.credentials.list(), lambda by=by_it: by.credentials.get(typed)):
            with pytest.raises(exceptions.Forbidden):
                refused()
    own.application_credentials.delete(own.application_credentials.find(name="one"))
    assert [one.access for one in own.ec2.list(user)] == [made.access]
    assert by_application_credential(cloud, unrestricted=True).ec2.create(user, project).access


@pytest.mark.parametrize("service", ["ec2", "s3"])
def test_signature_when_a_service_asks_then_it_gets_a_token_of_the_keys_project(
        cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch, service: str) -> None:
    own, user, project = demo(cloud)
    made = own.ec2.create(user, project)
    body = body_of(monkeypatch, made.access, made.secret, service)
    url, nova = f"{cloud.identity_url}/v3/{service}tokens", cloud.session("nova", "service").get_token()
    answer = requests.post(url, json=body, headers={"X-Auth-Token": nova}, timeout=10)
    token = answer.json()["token"]
    assert (token["user"]["name"], token["project"]["name"]) == ("demo", "demo")
    assert token["methods"] == ["ec2credential"] and {one["name"] for one in token["roles"]} == {"member", "reader"}
    assert ("X-Subject-Token" in answer.headers) == (service == "ec2")
    for headers, status in (({}, 401), ({"X-Auth-Token": cloud.session("demo", "demo").get_token()}, 403)):
        assert requests.post(url, json=body, headers=headers, timeout=10).status_code == status


@pytest.mark.parametrize("service", ["ec2", "s3"])
def test_signature_when_the_secret_the_key_or_the_role_is_wrong_then_it_is_refused(
        cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch, service: str) -> None:
    own, user, project = demo(cloud)
    made = own.ec2.create(user, project)
    url, admin = f"{cloud.identity_url}/v3/{service}tokens", client.Client(session=cloud.session())
    headers = {"X-Auth-Token": cloud.session("nova", "service").get_token()}

    def status(access: str, secret: str) -> int:
        return requests.post(url, json=body_of(monkeypatch, access, secret, service), headers=headers,
                             timeout=10).status_code

    assert status(made.access, "wrong") == 401 and status("unknown", made.secret) == 404
    assert status(made.access, made.secret) == 200
    assert requests.post(url, json={"credentials": {"access": made.access}}, headers=headers,
                         timeout=10).status_code == 401
    admin.roles.revoke(admin.roles.find(name="member"), user=user, project=project)
    assert status(made.access, made.secret) == 401


def test_token_of_an_ec2_credential_then_it_is_not_exchanged_for_another(cloud: FakeCloud,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    own, user, project = demo(cloud)
    made = own.ec2.create(user, project)
    headers = {"X-Auth-Token": cloud.session("nova", "service").get_token()}
    text = requests.post(f"{cloud.identity_url}/v3/ec2tokens", json=body_of(monkeypatch, made.access, made.secret),
                         headers=headers, timeout=10).headers["X-Subject-Token"]
    assert requests.post(f"{cloud.identity_url}/v3/auth/tokens", timeout=10, json={"auth": {"identity": {
        "methods": ["token"], "token": {"id": text}}}}).status_code == 403


def test_ec2_credentials_when_the_file_is_of_an_older_release_then_there_are_none_and_new_ones_are_kept(
        tmp_path: Path) -> None:
    import msgspec

    first = FakeKeystone({}, "secret")
    old = msgspec.msgpack.decode(first.directory.packed())[:6]
    (tmp_path / "identity").write_bytes(msgspec.msgpack.encode(old))
    second = FakeKeystone({}, "secret")
    assert second.keep_in(tmp_path / "identity") and second.directory.ec2_keys == {}
    user = second.directory.by_name("users", "demo", "default")
    project = second.directory.by_name("projects", "demo", "default")
    access, secret = new_key(second.directory, user["id"], project["id"])
    second.save()
    third = FakeKeystone({}, "secret")
    third.keep_in(tmp_path / "identity")
    assert [(one["access"], one["secret"]) for one in third.directory.ec2_keys.values()] == [(access, secret)]
