"""A project in the path is the token's own, on every route of both paths (OSSA-2012-001)."""

from __future__ import annotations

from typing import Any

import pytest

from nova.api import app
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
FOREIGN = "0123456789abcdef0123456789abcdef"


class Nobody:
    """A conductor that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the conductor was asked: {name}")


@pytest.mark.parametrize("networks", ["neutron", "nova-network"])
@pytest.mark.parametrize("prefix", ["/v2.1", "/v2"])
@pytest.mark.parametrize("token", [DEMO, ADMIN])
def test_path_when_its_project_is_not_the_tokens_then_it_is_refused_on_every_route(
        token: str, prefix: str, networks: str) -> None:
    client = ApiClient()
    conf = configuration(use_neutron=networks == "neutron")
    client.application = app.from_conf(Nobody(), Nobody(), Nobody(), conf)  # type: ignore[arg-type]
    client.prefix, wrong = prefix, []
    for route in app.table(networks):
        path = "/".join(UUID if part.startswith("{") else part for part in route.path.split("/"))
        body = {route.action: None} if route.action else {} if route.method in ("POST", "PUT") else None
        answer = client.request(route.method, f"/{FOREIGN}{path}", body, token=token,
                                version=route.until or "2.104" if prefix == "/v2.1" else None)
        if answer.status_int != 400 or FOREIGN not in answer.json["badRequest"]["message"]:
            wrong.append(f"{route.id}: {answer.status_int} {answer.text[:100]}")
    assert wrong == []
