"""Ids in paths of nova-network's operations: one that is of nothing is 404, one that is no id is 400, never about
another kind of thing."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from nova.api import app, legacy_networks
from nova.api.routing import Route
from tests.fakes.api import ADMIN, ApiClient, configuration
from tests.fakes.small_cloud import SmallCloud
from tests.fakes.smallest_requests import body_of, made_up

#: (what stands in the path, whether it may be an id)
IDS = [("6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", True), ("6C1F0F4E-5A0E-4F0D-9D9A-0D7A2E7C9F11", True),
       ("00000000-0000-4000-8000-00000000ffff", True), ("77777", True), ("no-id", False), ("-1", False),
       ("9" * 30, False), ("1e3", False)]
#: All but the actions of VlanManager's networks alone.
ROUTES = [route for route in app.table(legacy_networks.BACK_END) if route.action is None
          and re.match(r"/os-(security-group|networks|tenant-networks|floating-ips)[^/]*/\{", route.path)]


@pytest.fixture
def client(cloud: SmallCloud) -> ApiClient:
    return ApiClient(SimpleNamespace(client=lambda: cloud.control), configuration(use_neutron=False), token=ADMIN)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.id)
def test_operation_when_an_id_is_of_nothing_then_404_and_a_word_that_is_none_is_400_or_404(
        client: ApiClient, route: Route) -> None:
    wrong = []
    for id, may_be in IDS:
        path = re.sub(r"{(\w+)}", lambda name, id=id: id if name[0] in route.path.split("/")[2:3] else made_up(name[1]),
                      route.path)
        body = body_of(route, "2.35") if route.method in ("POST", "PUT") else None
        answer = client.request(route.method, path, body, version="2.35")
        if answer.status_int not in ((404,) if may_be else (400, 404)):
            wrong.append(f"{id}: {answer.status_int} {answer.text}")
        if "rule" in route.path and "group id" in answer.text:
            wrong.append(f"{id}: {answer.text} is of another thing")
    assert wrong == []
