"""Projects, users, roles and the rest of the fake Keystone, through keystoneclient and plain requests."""

from __future__ import annotations

import threading

import pytest
import requests
from keystoneauth1 import exceptions
from keystoneclient.v3 import client

from tests.unit.devel.served import PASSWORD, FakeCloud

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

#: What a new thing needs, of each kind; ``{service}`` is the id of one that is there.
NEW = {"domains": {"name": "one"}, "projects": {"name": "one"}, "users": {"name": "one"}, "roles": {"name": "one"},
       "groups": {"name": "one"}, "regions": {"id": "one"}, "services": {"type": "one"},
       "endpoints": {"service_id": "{service}", "interface": "public", "url": "http://one"}}


@pytest.fixture
def admin(cloud: FakeCloud) -> client.Client:
    return client.Client(session=cloud.session())


def of(cloud: FakeCloud, method: str, path: str, body: object = None, user: str = "admin") -> requests.Response:
    token = cloud.session(user, "demo").get_token()
    return requests.request(method, f"{cloud.identity_url}/v3/{path}", json=body, timeout=10,
                            headers={"X-Auth-Token": token})


def new(cloud: FakeCloud, plural: str) -> dict[str, str]:
    service = next(iter(cloud.keystone.directory.things["services"]))
    return {name: value.format(service=service) for name, value in NEW[plural].items()}


@pytest.mark.parametrize("plural", NEW)
def test_thing_then_it_is_made_found_changed_and_deleted(cloud: FakeCloud, plural: str) -> None:
    singular = plural.removesuffix("s")
    made = of(cloud, "POST", plural, {singular: new(cloud, plural)})
    assert made.status_code == 201
    thing = made.json()[singular]
    assert thing["links"]["self"] == f"{cloud.identity_url}/v3/{plural}/{thing['id']}"
    assert of(cloud, "GET", f"{plural}/{thing['id']}").json() == {singular: thing}
    assert thing in of(cloud, "GET", plural).json()[plural]
    changed = of(cloud, "PATCH", f"{plural}/{thing['id']}", {singular: {"description": "two", "enabled": False}})
    assert changed.json() == {singular: {**thing, "description": "two", "enabled": False}}
    assert of(cloud, "DELETE", f"{plural}/{thing['id']}").status_code == 204
    for method in ("GET", "DELETE"):
        answer = of(cloud, method, f"{plural}/{thing['id']}")
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["title"]) == (
            404, 404, "Not Found")


@pytest.mark.parametrize("plural", NEW)
@pytest.mark.parametrize(("method", "one"), [("GET", ""), ("POST", ""), ("PATCH", "/one"), ("DELETE", "/one")])
def test_thing_when_no_administrator_asks_then_403_and_nothing_is_changed(
        cloud: FakeCloud, plural: str, method: str, one: str) -> None:
    before = {kind: dict(things) for kind, things in cloud.keystone.directory.things.items()}
    answer = of(cloud, method, plural + one, {plural.removesuffix("s"): new(cloud, plural)}, user="demo")
    assert (answer.status_code, answer.json()["error"]["title"]) == (403, "Forbidden")
    assert cloud.keystone.directory.things == before
    assert requests.request(method, f"{cloud.identity_url}/v3/{plural}{one}", timeout=10).status_code == 401


@pytest.mark.parametrize(("plural", "body", "named"), [
    ("projects", {}, "name"), ("projects", {"name": 7}, "name"), ("projects", {"name": " "}, "name"),
    ("projects", {"name": "x" * 256}, "name"), ("projects", {"name": "x", "enabled": "yes"}, "enabled"),
    ("projects", {"name": "x", "domain_id": "none"}, "domain_id"),
    ("users", {"name": "x", "password": 7}, "password"), ("services", {"name": "x"}, "type"),
    ("endpoints", {"service_id": "none", "interface": "public", "url": "x"}, "service_id"), ("roles", [], "role")])
def test_create_when_a_member_is_wrong_then_400_names_it(cloud: FakeCloud, plural: str, body: object,
                                                         named: str) -> None:
    answer = of(cloud, "POST", plural, {plural.removesuffix("s"): body})
    assert answer.status_code == 400
    assert f"'{named}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("plural", ["domains", "projects", "users", "roles", "groups", "regions"])
def test_create_when_the_name_is_taken_then_409(cloud: FakeCloud, plural: str) -> None:
    singular = plural.removesuffix("s")
    assert of(cloud, "POST", plural, {singular: new(cloud, plural)}).status_code == 201
    answer = of(cloud, "POST", plural, {singular: new(cloud, plural)})
    assert (answer.status_code, answer.json()["error"]["title"]) == (409, "Conflict")


def test_update_when_the_name_is_anothers_then_409_and_nothing_is_changed(admin: client.Client) -> None:
    project = admin.projects.find(name="demo")
    with pytest.raises(exceptions.Conflict):
        admin.projects.update(project, name="admin", description="x")
    assert (admin.projects.get(project.id).name, admin.projects.get(project.id).description) == ("demo", "")
    admin.projects.update(project, name="demo", description="x")
    with pytest.raises(exceptions.BadRequest, match="domain_id"):
        admin.projects.update(project, domain="none")


def test_user_then_nobody_reads_its_password_back(cloud: FakeCloud) -> None:
    made = of(cloud, "POST", "users", {"user": {"name": "eve", "password": "of eve", "email": "eve@example.org"}})
    assert made.json()["user"]["email"] == "eve@example.org"
    user_id = made.json()["user"]["id"]
    for answer in (made, of(cloud, "GET", f"users/{user_id}"), of(cloud, "GET", "users"),
                   of(cloud, "PATCH", f"users/{user_id}", {"user": {"password": "of eve"}})):
        assert "of eve" not in answer.text and '"password"' not in answer.text


def test_password_when_its_owner_changes_it_then_the_old_one_opens_nothing(cloud: FakeCloud) -> None:
    own = client.Client(session=cloud.session("demo", "demo"))
    with pytest.raises(exceptions.Unauthorized):
        own.users.update_password("wrong", "new")
    own.users.update_password(PASSWORD, "new")
    assert cloud.session("demo", "demo", "new").get_token()
    with pytest.raises(exceptions.Unauthorized):
        cloud.session("demo", "demo").get_token()
    other = next(iter(cloud.keystone.directory.things["users"]))
    answer = requests.post(f"{cloud.identity_url}/v3/users/{other}/password", timeout=10, json={
        "user": {"original_password": PASSWORD, "password": "stolen"}},
        headers={"X-Auth-Token": cloud.session("demo", "demo", "new").get_token()})
    assert answer.status_code == 403


def test_own_user_and_project_then_a_member_sees_these_alone(cloud: FakeCloud) -> None:
    own = client.Client(session=cloud.session("demo", "demo"))
    access = own.session.auth.get_access(own.session)
    assert own.projects.get(access.project_id).name == "demo"
    assert own.users.get(access.user_id).name == "demo"
    assert [one.name for one in own.projects.list(user=access.user_id)] == ["demo"]
    for others in cloud.keystone.directory.things["projects"].keys() - {access.project_id}:
        with pytest.raises(exceptions.Forbidden):
            own.projects.get(others)


def test_project_when_asked_for_its_relatives_then_those_above_and_below_are_shown(cloud: FakeCloud,
                                                                                   admin: client.Client) -> None:
    top = admin.projects.create("top", domain="default")
    middle = admin.projects.create("middle", domain="default", parent=top)
    low = admin.projects.create("low", domain="default", parent=middle)
    ids = of(cloud, "GET", f"projects/{middle.id}?parents_as_ids&subtree_as_ids").json()["project"]
    assert (ids["parents"], ids["subtree"]) == ({top.id: None}, {low.id: None})
    lists = of(cloud, "GET", f"projects/{top.id}?parents_as_list&subtree_as_list").json()["project"]
    assert lists["parents"] == [] and [one["project"]["name"] for one in lists["subtree"]] == ["middle", "low"]
    assert not {"parents", "subtree"} & of(cloud, "GET", f"projects/{top.id}").json()["project"].keys()


def test_grant_then_the_user_may_log_in_until_it_is_taken(cloud: FakeCloud, admin: client.Client) -> None:
    project, role = admin.projects.create("new", domain="default"), admin.roles.find(name="member")
    user = admin.users.create("eve", password=PASSWORD)
    with pytest.raises(exceptions.Unauthorized):
        cloud.session("eve", "new").get_token()
    for _again in range(2):
        admin.roles.grant(role, user=user, project=project)
    assert admin.roles.check(role, user=user, project=project)
    assert [one.name for one in admin.roles.list(user=user, project=project)] == ["member"]
    assert cloud.session("eve", "new").get_token()
    admin.roles.revoke(role, user=user, project=project)
    for refused in (admin.roles.revoke, admin.roles.check):
        with pytest.raises(exceptions.NotFound):
            refused(role, user=user, project=project)
    with pytest.raises(exceptions.Unauthorized):
        cloud.session("eve", "new").get_token()


@pytest.mark.parametrize("missing", ["role", "user", "project"])
def test_grant_when_a_part_is_missing_then_404(cloud: FakeCloud, admin: client.Client, missing: str) -> None:
    ids = {"role": admin.roles.find(name="member").id, "user": admin.users.find(name="demo").id,
           "project": admin.projects.find(name="demo").id, missing: "none"}
    path = f"projects/{ids['project']}/users/{ids['user']}/roles/{ids['role']}"
    assert of(cloud, "PUT", path).status_code == 404
    assert of(cloud, "PUT", path, user="demo").status_code == 403


def test_role_assignments_then_they_are_found_by_each_side(admin: client.Client) -> None:
    demo, project = admin.users.find(name="demo"), admin.projects.find(name="demo")
    one, = admin.role_assignments.list(user=demo, include_names=True)
    assert (one.role["name"], one.user["name"], one.scope["project"]["name"], one.user["domain"]["name"]) == (
        "member", "demo", "demo", "Default")
    assert len(admin.role_assignments.list(user=demo, effective=True)) == 2
    assert len(admin.role_assignments.list(project=project)) == 2
    assert len(admin.role_assignments.list(role=admin.roles.find(name="service"))) == 1
    assert len(admin.role_assignments.list(system="all")) == 1
    assert admin.role_assignments.list(group="none") == []


def test_domain_when_it_is_enabled_then_it_is_not_deleted_and_later_with_all_in_it(admin: client.Client) -> None:
    domain = admin.domains.create("new")
    project, user = admin.projects.create("in it", domain), admin.users.create("in it", domain=domain)
    with pytest.raises(exceptions.Forbidden):
        admin.domains.delete(domain)
    admin.domains.update(domain, enabled=False)
    admin.domains.delete(domain)
    for look in (lambda: admin.projects.get(project.id), lambda: admin.users.get(user.id)):
        with pytest.raises(exceptions.NotFound):
            look()


def test_endpoint_when_it_is_made_or_disabled_then_the_next_catalog_says_so(
        cloud: FakeCloud, admin: client.Client) -> None:
    service = admin.services.create("nova-volume", "volume")
    endpoint = admin.endpoints.create(service, "http://volumes", "public", "RegionOne")
    assert cloud.session().get_endpoint(service_type="volume", region_name="RegionOne") == "http://volumes"
    admin.endpoints.update(endpoint, enabled=False)
    with pytest.raises(exceptions.EndpointNotFound):
        cloud.session().get_endpoint(service_type="volume")
    admin.services.delete(service)
    assert admin.endpoints.list(service=service) == []


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "nothing", 404), ("PUT", "projects", 405), ("GET", "projects/%00", 404),
    ("GET", f"projects/{'x' * 300}", 404)])
def test_path_when_it_is_none_then_the_error_has_keystones_form(
        cloud: FakeCloud, method: str, path: str, status: int) -> None:
    answer = of(cloud, method, path)
    assert answer.status_code == answer.json()["error"]["code"] == status


def test_create_when_many_ask_at_once_then_one_of_a_name_is_made(cloud: FakeCloud) -> None:
    token, codes = cloud.session().get_token(), []

    def make() -> None:
        codes.append(requests.post(f"{cloud.identity_url}/v3/projects", json={"project": {"name": "one"}}, timeout=30,
                                   headers={"X-Auth-Token": token}).status_code)

    threads = [threading.Thread(target=make) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(codes) == [201, *[409] * 11]
