"""Log-in to the fake Keystone by real clients, and what tokens are good for."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path

import pytest
import requests
from keystoneauth1 import exceptions, session
from keystoneauth1.identity import v3
from keystoneclient.v3 import client
from keystonemiddleware import auth_token
from oslo_config import cfg
from webob import Request

from nova.devel.identity.keystone import WHOLE_SYSTEM, FakeKeystone, NewUser
from nova.devel.service import FakeService
from tests.unit.devel.served import PASSWORD, FakeCloud, fake_cloud

PLAIN = {"name": "demo", "domain": {"id": "default"}}


def ask(cloud: FakeCloud, identity: object, scope: object = None) -> requests.Response:
    auth = {"identity": identity, **({"scope": scope} if scope is not None else {})}
    return requests.post(f"{cloud.identity_url}/v3/auth/tokens", json={"auth": auth}, timeout=10)


def by_password(password: str = PASSWORD, user: object = None) -> dict[str, object]:
    return {"methods": ["password"], "password": {"user": {**PLAIN, **(user or {}), "password": password}}}


def by_token(token: str) -> dict[str, object]:
    return {"methods": ["token"], "token": {"id": token}}


def look_at(cloud: FakeCloud, subject: str, by: str, query: str = "", method: str = "GET") -> requests.Response:
    return requests.request(method, f"{cloud.identity_url}/v3/auth/tokens{query}", timeout=10,
                            headers={"X-Auth-Token": by, "X-Subject-Token": subject})


def test_versions_then_keystoneauth_finds_v3_behind_the_plain_address(cloud: FakeCloud) -> None:
    plain = session.Session(v3.Password(cloud.identity_url, username="demo", password=PASSWORD,
                                        user_domain_id="default"))
    assert plain.auth.get_access(plain).version == "v3" and not plain.auth.get_access(plain).has_service_catalog()
    assert requests.get(cloud.identity_url, timeout=10).status_code == 300
    assert requests.get(f"{cloud.identity_url}/v3/", timeout=10).json()["version"]["status"] == "stable"


def test_login_for_a_project_then_the_token_has_roles_and_catalog(cloud: FakeCloud) -> None:
    made = cloud.session("demo", "demo")
    access = made.auth.get_access(made)
    assert (access.username, access.project_name, access.user_domain_id) == ("demo", "demo", "default")
    assert sorted(access.role_names) == ["member", "reader"]
    for interface in ("public", "internal", "admin"):
        assert made.get_endpoint(service_type="image", interface=interface, region_name="RegionOne") == cloud.image_url
    assert made.get_endpoint(service_type="compute") == f"http://127.0.0.1:1/v2.1/{access.project_id}"
    assert 3500 < (access.expires - access.issued).total_seconds() <= 3600


@pytest.mark.parametrize(("scope", "shown"), [
    ({"project_name": "admin", "project_domain_name": "Default"}, "project"),
    ({"system_scope": "all"}, "system"), ({"unscoped": True}, None)], ids=["by-names", "system", "unscoped"])
def test_login_of_a_scope_then_the_token_is_for_it(cloud: FakeCloud, scope: dict[str, object],
                                                   shown: str | None) -> None:
    made = session.Session(v3.Password(f"{cloud.identity_url}/v3", username="admin", password=PASSWORD,
                                       user_domain_name="Default", **scope))
    body = made.get(f"{cloud.identity_url}/v3/auth/tokens", headers={
        "X-Subject-Token": made.get_token()}).json()["token"]
    assert {"project", "system", "domain"} & set(body) == ({shown} if shown else set())
    assert ("roles" in body) == ("catalog" in body) == bool(shown)


def test_login_for_a_domain_when_there_is_a_role_then_the_token_is_for_it(cloud: FakeCloud) -> None:
    admin = client.Client(session=cloud.session())
    admin.roles.grant(role=admin.roles.find(name="reader"), user=admin.users.find(name="demo"), domain="default")
    assert "domain" in ask(cloud, by_password(), {"domain": {"name": "Default"}}).json()["token"]


@pytest.mark.parametrize("scope", [
    {"project": {"name": "admin", "domain": {"id": "default"}}}, {"project": {"id": "none"}},
    {"project": {"name": "demo", "domain": {"name": "none"}}}, {"domain": {"id": "default"}},
    {"system": {"all": True}}],
    ids=["no-role", "no-project", "no-domain", "no-domain-role", "no-system-role"])
def test_login_for_what_the_user_has_no_role_of_then_401(cloud: FakeCloud, scope: object) -> None:
    answer = ask(cloud, by_password(), scope)
    assert answer.status_code == 401
    assert "X-Subject-Token" not in answer.headers


@pytest.mark.parametrize("identity", [
    by_password("wrong"), by_password(user={"name": "nobody"}), by_password(user={"domain": {"id": "none"}}),
    by_password(user={"id": "none"}), by_token("none"),
    {"methods": ["application_credential"], "application_credential": {"id": "none", "secret": "x"}}],
    ids=["password", "user", "domain", "id", "token", "credential"])
def test_login_when_anything_is_wrong_then_the_answer_does_not_say_what(cloud: FakeCloud, identity: object) -> None:
    answer = ask(cloud, identity)
    assert answer.status_code == 401
    assert answer.json() == {"error": {"code": 401, "title": "Unauthorized",
                                       "message": "The request you have made requires authentication."}}
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{cloud.identity_url}/v3"'


@pytest.mark.parametrize(("identity", "scope", "named"), [
    ({"methods": ["password"]}, None, "password"), ({"methods": []}, None, "methods"),
    ({"methods": [{}]}, None, "methods"), ({"methods": ["totp"]}, None, "methods"), ([], None, "identity"),
    ({"methods": ["token"], "token": {"id": 7}}, None, "id"),
    ({"methods": ["password"], "password": {"user": {"password": "x"}}}, None, "name"),
    (by_password(), {"project": []}, "project"), (by_password(), [], "scope"), (by_password(), {"trust": {}}, "scope"),
    (by_password(user={"domain": "x"}), None, "domain")])
def test_login_when_the_body_is_no_login_then_400_names_the_member(
        cloud: FakeCloud, identity: object, scope: object, named: str) -> None:
    answer = ask(cloud, identity, scope)
    assert answer.status_code == 400
    assert f"'{named}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("data", "status"), [(b"{", 400), (b"[]", 400), (b"", 400), (b" " * 200000, 413)])
def test_login_when_the_body_is_no_json_then_it_is_refused(cloud: FakeCloud, data: bytes, status: int) -> None:
    assert requests.post(f"{cloud.identity_url}/v3/auth/tokens", data=data, timeout=10).status_code == status


def test_token_when_it_is_exchanged_then_the_new_one_is_for_another_scope_and_lives_no_longer(
        cloud: FakeCloud) -> None:
    first = ask(cloud, by_password(), "unscoped")
    second = ask(cloud, by_token(first.headers["X-Subject-Token"]), {"project": PLAIN})
    assert second.status_code == 201
    assert second.json()["token"]["expires_at"] == first.json()["token"]["expires_at"]
    assert second.json()["token"]["methods"] == ["token", "password"]


def test_token_when_another_looks_at_it_then_only_services_and_administrators_may(cloud: FakeCloud) -> None:
    demo, nova, admin = (cloud.session(*names).get_token()
                         for names in (("demo", "demo"), ("nova", "service"), ("admin", "admin")))
    assert look_at(cloud, demo, nova).json()["token"]["user"]["name"] == "demo"
    assert look_at(cloud, demo, demo).headers["X-Subject-Token"] == demo
    assert look_at(cloud, nova, admin).status_code == 200
    assert look_at(cloud, nova, demo).status_code == 403
    assert look_at(cloud, "none", demo).status_code == 403
    assert look_at(cloud, "none", nova).status_code == 404
    assert look_at(cloud, demo, "none").status_code == 401
    head = look_at(cloud, demo, nova, method="HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert "catalog" not in look_at(cloud, demo, nova, "?nocatalog").json()["token"]


def test_token_when_it_is_revoked_then_it_is_good_for_nothing(cloud: FakeCloud) -> None:
    demo, nova = cloud.session("demo", "demo").get_token(), cloud.session("nova", "service").get_token()
    assert look_at(cloud, nova, demo, method="DELETE").status_code == 403
    assert look_at(cloud, demo, demo, method="DELETE").status_code == 204
    assert look_at(cloud, demo, nova).status_code == 404
    assert look_at(cloud, demo, nova, method="DELETE").status_code == 404
    assert cloud.keystone.identify(demo) is None


@pytest.mark.parametrize("change", ["role", "user", "project", "password", "deleted-user", "deleted-project", "domain"])
def test_token_when_what_it_stands_on_goes_then_it_ends(cloud: FakeCloud, change: str) -> None:
    admin = client.Client(session=cloud.session())
    project = admin.projects.create("other", domain=admin.domains.create("another"))
    user = admin.users.create("eve", password="of eve", domain=project.domain_id)
    admin.roles.grant(admin.roles.find(name="member"), user=user, project=project)
    token = session.Session(v3.Password(f"{cloud.identity_url}/v3", user_id=user.id, password="of eve",
                                        project_id=project.id)).get_token()
    assert cloud.keystone.identify(token).project_id == project.id
    {"role": lambda: admin.roles.revoke(admin.roles.find(name="member"), user=user, project=project),
     "user": lambda: admin.users.update(user, enabled=False),
     "project": lambda: admin.projects.update(project, enabled=False),
     "password": lambda: admin.users.update(user, password="new"),
     "deleted-user": lambda: admin.users.delete(user), "deleted-project": lambda: admin.projects.delete(project),
     "domain": lambda: admin.domains.update(project.domain_id, enabled=False)}[change]()
    assert cloud.keystone.identify(token) is None
    assert look_at(cloud, token, cloud.session("nova", "service").get_token()).status_code == 404


def test_token_when_its_time_is_over_then_only_services_that_ask_for_expired_ones_see_it() -> None:
    keystone = FakeKeystone({}, PASSWORD, token_lifetime_s=0)
    ended = call(keystone, "POST", "/v3/auth/tokens", {"auth": {"identity": by_password()}}).headers["X-Subject-Token"]
    assert keystone.identify(ended) is None
    keystone.directory.token_lifetime = datetime.timedelta(hours=1)
    service = call(keystone, "POST", "/v3/auth/tokens", {"auth": {
        "identity": by_password(user={"name": "nova"}), "scope": {"project": {**PLAIN, "name": "service"}}}})
    demo = call(keystone, "POST", "/v3/auth/tokens", {"auth": {
        "identity": by_password(), "scope": {"project": PLAIN}}})
    token = service.headers["X-Subject-Token"]
    for by, query, status in ((token, "", 404), (token, "?allow_expired=1", 200),
                              (demo.headers["X-Subject-Token"], "?allow_expired=1", 403)):
        assert call(keystone, "GET", f"/v3/auth/tokens{query}", by=by, subject=ended).status_code == status


def test_tokens_when_clients_log_in_again_and_again_then_few_of_those_that_ended_are_kept(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nova.devel.identity.tokens.MOST_EXPIRED", 3)
    keystone = FakeKeystone({}, PASSWORD, token_lifetime_s=0)
    body = {"auth": {"identity": by_password()}}
    for _ in range(20):
        call(keystone, "POST", "/v3/auth/tokens", body)
    assert len(keystone.directory.tokens) <= 6
    keystone.directory.token_lifetime = datetime.timedelta(hours=1)
    good = [call(keystone, "POST", "/v3/auth/tokens", body).headers["X-Subject-Token"] for _ in range(20)]
    assert all(keystone.identify(token) for token in good) and len(keystone.directory.tokens) <= 23


def call(service: FakeService[object], method: str, path: str, body: object = None, by: str = "",
         subject: str = "") -> object:
    request = Request.blank(path, method=method, headers={"X-Auth-Token": by, "X-Subject-Token": subject})
    if body is not None:
        request.json = body
    return request.get_response(service)


def test_middleware_when_a_service_user_checks_tokens_then_the_application_learns_who_asks(
        cloud: FakeCloud, tmp_path: Path) -> None:
    """As ``[api]auth_strategy = keystone`` sets it up."""
    (tmp_path / "nova.conf").write_text(f"""[keystone_authtoken]
auth_type = password
auth_url = {cloud.identity_url}
username = nova
password = {PASSWORD}
user_domain_name = Default
project_name = service
project_domain_name = Default
""")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(tmp_path / "nova.conf")], project="nova")
    seen = []

    def application(environ: dict[str, str], start_response: object) -> list[bytes]:
        seen.append(environ)
        start_response("204 No Content", [])
        return [b""]

    checker = auth_token.AuthProtocol(application, {"oslo_config_config": conf, "oslo_config_project": "nova"})
    token = cloud.session("demo", "demo").get_token()
    assert Request.blank("/", headers={"X-Auth-Token": token}).get_response(checker).status_code == 204
    assert (seen[0]["HTTP_X_USER_NAME"], seen[0]["HTTP_X_PROJECT_NAME"]) == ("demo", "demo")
    assert sorted(seen[0]["HTTP_X_ROLES"].split(",")) == ["member", "reader"]
    assert Request.blank("/", headers={"X-Auth-Token": "none"}).get_response(checker).status_code == 401


def test_scopes_then_horizon_learns_where_its_user_may_go(cloud: FakeCloud) -> None:
    made = client.Client(session=cloud.session("admin", None, unscoped=True))
    assert [one.name for one in made.auth.projects()] == sorted(
        ["admin", "demo"], key=lambda name: made_id(cloud, name))
    assert made.auth.domains() == [] and made.auth.systems() != []
    answer = requests.get(f"{cloud.identity_url}/v3/auth/catalog", timeout=10,
                          headers={"X-Auth-Token": made.session.get_token()})
    assert answer.status_code == 403


def made_id(cloud: FakeCloud, name: str) -> str:
    found = cloud.keystone.directory.by_name("projects", name, "default")
    return found["id"]


def test_catalog_then_it_is_the_one_of_the_token(cloud: FakeCloud) -> None:
    made = cloud.session()
    body = made.get(f"{cloud.identity_url}/v3/auth/catalog").json()
    assert {one["type"]: len(one["endpoints"]) for one in body["catalog"]} == {
        "identity": 3, "image": 3, "compute": 3}


def test_password_when_none_is_said_then_each_keystone_has_another() -> None:
    one, two = FakeKeystone({}), FakeKeystone({})
    assert len(one.password) >= 24 and one.password != two.password


@pytest.mark.parametrize("roles", [{"nowhere": ("admin",)}, {"admin": ("king",)}, {WHOLE_SYSTEM: ("king",)}])
def test_users_when_a_name_is_unknown_then_the_caller_learns_it(roles: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="unknown (project nowhere|role king)"):
        FakeKeystone({}, users=[NewUser("one", roles)])


def test_logs_then_there_is_no_secret_in_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "nova")
    with fake_cloud() as cloud:
        made = cloud.session("demo", "demo")
        token = made.get_token()
        made.get(f"{cloud.image_url}/v2/images")
        look_at(cloud, token, token)
        secret = client.Client(session=made).application_credentials.create("one").secret
        with pytest.raises(exceptions.Unauthorized):
            cloud.session("demo", "demo", "a wrong password").get_token()
    logged = "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("nova"))
    assert "POST /v3/auth/tokens: 201" in logged
    assert not [one for one in (PASSWORD, token, secret, "a wrong password") if one in logged]
    assert PASSWORD not in repr(cloud.keystone.directory.passwords)
