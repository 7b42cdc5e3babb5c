"""Application credentials of the fake Keystone."""

from __future__ import annotations

import datetime

import pytest
import requests
from keystoneauth1 import exceptions, session
from keystoneauth1.identity import v3
from keystoneclient.v3 import client

from tests.unit.devel.served import FakeCloud


def made_by(cloud: FakeCloud, user: str = "admin", project: str = "demo", **members: object) -> object:
    return client.Client(session=cloud.session(user, project)).application_credentials.create("one", **members)


def logged_in(cloud: FakeCloud, **said: str) -> session.Session:
    return session.Session(v3.ApplicationCredential(f"{cloud.identity_url}/v3", **said))


def with_it(cloud: FakeCloud, made: object) -> session.Session:
    return logged_in(cloud, application_credential_id=made.id, application_credential_secret=made.secret)


def test_login_by_a_credential_then_the_token_has_its_project_and_roles_alone(cloud: FakeCloud) -> None:
    made = made_by(cloud, roles=[{"name": "member"}])
    session_ = with_it(cloud, made)
    access = session_.auth.get_access(session_)
    assert (access.project_name, sorted(access.role_names)) == ("demo", ["member", "reader"])
    assert access.application_credential_id == made.id
    assert not cloud.keystone.identify(session_.get_token()).is_admin


def test_login_by_name_and_user_then_it_is_the_same(cloud: FakeCloud) -> None:
    made = made_by(cloud, secret="of my own")
    assert made.secret == "of my own"
    assert logged_in(cloud, application_credential_name="one", username="admin", user_domain_id="default",
                     application_credential_secret="of my own").get_token()


def test_credential_then_its_secret_is_shown_once(cloud: FakeCloud) -> None:
    made = made_by(cloud, user="demo")
    own = client.Client(session=cloud.session("demo", "demo")).application_credentials
    assert not hasattr(own.get(made.id), "secret") and not hasattr(own.list()[0], "secret")
    assert own.find(name="one").id == made.id
    own.delete(made.id)
    assert own.list() == []
    with pytest.raises(exceptions.NotFound):
        own.get(made.id)


@pytest.mark.parametrize("change", ["deleted", "role", "user"])
def test_credential_when_what_it_stands_on_goes_then_its_tokens_end(cloud: FakeCloud, change: str) -> None:
    made, admin = made_by(cloud, user="demo"), client.Client(session=cloud.session())
    token = with_it(cloud, made).get_token()
    user = admin.users.find(name="demo")
    {"deleted": lambda: admin.application_credentials.delete(made.id, user=user.id),
     "role": lambda: admin.roles.revoke(admin.roles.find(name="member"), user=user,
                                        project=admin.projects.find(name="demo")),
     "user": lambda: admin.users.update(user, enabled=False)}[change]()
    assert cloud.keystone.identify(token) is None
    with pytest.raises(exceptions.Unauthorized):
        with_it(cloud, made).get_token()


def test_credential_when_it_is_restricted_then_it_makes_no_other_and_its_token_is_not_exchanged(
        cloud: FakeCloud) -> None:
    made = made_by(cloud, user="demo")
    by_it = with_it(cloud, made)
    for refused in (lambda: client.Client(session=by_it).application_credentials.create("two"),
                    lambda: client.Client(session=by_it).application_credentials.delete(made.id)):
        with pytest.raises(exceptions.Forbidden):
            refused()
    answer = requests.post(f"{cloud.identity_url}/v3/auth/tokens", timeout=10, json={"auth": {
        "identity": {"methods": ["token"], "token": {"id": by_it.get_token()}}}})
    assert answer.status_code == 403
    free = made_by(cloud, unrestricted=True)
    assert client.Client(session=with_it(cloud, free)).application_credentials.create("two").secret


def test_credential_when_a_scope_is_asked_for_then_401(cloud: FakeCloud) -> None:
    made = made_by(cloud)
    answer = requests.post(f"{cloud.identity_url}/v3/auth/tokens", timeout=10, json={"auth": {
        "identity": {"methods": ["application_credential"],
                     "application_credential": {"id": made.id, "secret": made.secret}},
        "scope": {"system": {"all": True}}}})
    assert answer.status_code == 401


def test_credential_when_it_ends_soon_then_its_tokens_do_too(cloud: FakeCloud) -> None:
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
    made = made_by(cloud, expires_at=ends)
    assert abs((with_it(cloud, made).auth.get_access(with_it(cloud, made)).expires - ends).total_seconds()) < 1
    cloud.keystone.directory.credentials[made.id]["expires_at"] = "2000-01-01T00:00:00.000000"
    with pytest.raises(exceptions.Unauthorized):
        with_it(cloud, made).get_token()


@pytest.mark.parametrize(("members", "named"), [
    ({"name": ""}, "name"), ({"name": "x", "roles": [{"name": "service"}]}, "roles"),
    ({"name": "x", "roles": ["member"]}, "roles"), ({"name": "x", "expires_at": "soon"}, "expires_at"),
    ({"name": "x", "expires_at": "2000-01-01T00:00:00Z"}, "expires_at"), ({"name": "x", "secret": 7}, "secret"),
    ({"name": "x", "access_rules": [{"path": "/", "method": "GET", "service": "compute"}]}, "access_rules")])
def test_create_when_a_member_is_wrong_then_400_names_it(cloud: FakeCloud, members: object, named: str) -> None:
    answer = sent(cloud, members)
    assert answer.status_code == 400
    assert f"'{named}'" in answer.json()["error"]["message"]
    assert cloud.keystone.directory.credentials == {}


def sent(cloud: FakeCloud, members: object, for_user: str | None = None) -> requests.Response:
    made = cloud.session("demo", "demo")
    user_id = for_user or made.auth.get_access(made).user_id
    return requests.post(f"{cloud.identity_url}/v3/users/{user_id}/application_credentials", timeout=10,
                         json={"application_credential": members}, headers={"X-Auth-Token": made.get_token()})


def test_create_when_the_name_is_taken_or_the_user_is_another_then_it_is_refused(cloud: FakeCloud) -> None:
    assert sent(cloud, {"name": "x"}).status_code == 201
    assert sent(cloud, {"name": "x"}).status_code == 409
    admin = cloud.session()
    assert sent(cloud, {"name": "y"}, admin.auth.get_access(admin).user_id).status_code == 403
    unscoped = cloud.session("demo", None, unscoped=True)
    answer = requests.post(f"{cloud.identity_url}/v3/users/{unscoped.get_user_id()}/application_credentials",
                           json={"application_credential": {"name": "z"}}, timeout=10,
                           headers={"X-Auth-Token": unscoped.get_token()})
    assert answer.status_code == 400
