"""Projects that a request names: whoever keeps something for one asks first whether there is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.db.quota import quotas
from nova.model.base import Scope
from tests.fakes.api import ADMIN, ApiClient, configuration
from tests.fakes.small_cloud import SmallCloud


class Known:
    """Projects that there are, and which were asked for."""

    def __init__(self, *ids: str) -> None:
        self.ids, self.asked = ids, []

    def check(self, project_id: str) -> None:
        self.asked.append(project_id)
        if project_id not in self.ids:
            raise errors.service.NotAProject(project_id=project_id)


NETWORK = {"label": "n", "cidr": "10.9.0.0/24", "bridge": "br9"}
#: Every operation that keeps or shows something of a project that its request names, and the code where there is one.
NAMING: dict[str, tuple[str, str, Any, int]] = {
    "show": ("GET", "/os-quota-sets/{0}", None, 200),
    "defaults": ("GET", "/os-quota-sets/{0}/defaults", None, 200),
    "detail": ("GET", "/os-quota-sets/{0}/detail", None, 200),
    "user's": ("GET", "/os-quota-sets/{0}?user_id=joe", None, 200),
    "update": ("PUT", "/os-quota-sets/{0}", {"quota_set": {"instances": 200}}, 200),
    "user's update": ("PUT", "/os-quota-sets/{0}?user_id=joe", {"quota_set": {"instances": 1}}, 200),
    "limits": ("GET", "/limits?tenant_id={0}", None, 200),
    "access": ("POST", "/flavors/private/action", {"addTenantAccess": {"tenant": "{0}"}}, 200),
    "network": ("POST", "/os-networks", {"network": {**NETWORK, "project_id": "{0}"}}, 200)}
#: What a project that is gone left can be taken away.
TAKING: dict[str, tuple[str, str, Any, int]] = {
    "delete": ("DELETE", "/os-quota-sets/{0}", None, 202),
    "access": ("POST", "/flavors/private/action", {"removeTenantAccess": {"tenant": "{0}"}}, 404)}


@pytest.fixture
def client(cloud: SmallCloud) -> ApiClient:
    cloud.deps.projects = Known("other")
    made = ApiClient(SimpleNamespace(client=lambda: cloud.control), configuration(use_neutron=False), token=ADMIN)
    body = {"flavor": {"name": "private", "id": "private", "ram": 1, "vcpus": 1, "disk": 1,
                       "os-flavor-access:is_public": False}}
    assert made.post("/flavors", body).status_int == 200
    return made


def ask(client: ApiClient, operation: tuple[str, str, Any, int], project: str) -> Any:
    method, path, body, _code = operation
    return client.request(method, path.format(project), _filled(body, project), version="2.35")


def _filled(body: Any, project: str) -> Any:
    if isinstance(body, dict):
        return {name: _filled(value, project) for name, value in body.items()}
    return body.format(project) if isinstance(body, str) else body


def kept(cloud: SmallCloud, project: str) -> Any:
    """What the databases have of a project."""
    with cloud.api.reading() as tx:
        own = quotas.of_projects(tx).get(project)
    return own, cloud.control.get_flavor("private", Scope()).projects, [
        one.label for one in cloud.control.list_networks(Scope()) if one.project_id == project]


@pytest.mark.parametrize("name", sorted(NAMING))
def test_operation_when_it_names_no_project_then_it_is_refused_and_nothing_is_kept(cloud, client, name):
    before = kept(cloud, "nope")
    answer = ask(client, NAMING[name], "nope")
    assert answer.status_int == 400, answer.text
    assert answer.json["badRequest"]["message"] == "Project ID nope is not a valid project."
    assert kept(cloud, "nope") == before and cloud.deps.projects.asked == ["nope"]


@pytest.mark.parametrize("name", sorted(NAMING))
def test_operation_when_it_names_a_project_then_it_is_asked_for_once_and_the_own_one_not_at_all(cloud, client, name):
    assert ask(client, NAMING[name], "other").status_int == NAMING[name][3]
    assert cloud.deps.projects.asked == ["other"]
    if name != "network":  # the second of that range
        assert ask(client, NAMING[name], "admin").status_int == NAMING[name][3]
    assert cloud.deps.projects.asked == ["other"]


@pytest.mark.parametrize("name", sorted(TAKING))
def test_operation_when_it_takes_away_from_a_project_then_nobody_asks_whether_there_is_one(cloud, client, name):
    assert ask(client, TAKING[name], "nope").status_int == TAKING[name][3]
    assert cloud.deps.projects.asked == []
