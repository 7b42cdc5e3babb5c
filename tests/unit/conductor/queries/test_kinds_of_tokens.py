"""Every operation with every kind of token, over the conductor's own code: the right refusal, and never a 500.

Once with the rules as they come, and once with an operator's file that lets everyone do everything: a rule that passes
does not prove that the token has a project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import webob

from nova.api import app, legacy_networks
from nova.api.request import ComputeSite
from nova.api.routing import Route
from nova.policies import Policy
from nova.policies.registry import list_rules
from nova.rpc.contracts.cert import CertRPC
from nova.web import auth
from tests.fakes.api import configuration
from tests.fakes.consoles import FakeConsoles
from tests.fakes.contract import ContractFake
from tests.fakes.rows import add_servers, server_row
from tests.fakes.small_cloud import NEUTRON, NOVA_NETWORK, SmallCloud
from tests.fakes.smallest_requests import body_of, made_up, versions_of

ADMIN, MEMBER = "admin,manager,member,reader", "member,reader"
SECRET = "a-secret-of-demo"  # noqa: S105
KINDS: dict[str, dict[str, str]] = {
    "unscoped": {"X-User-Id": "stranger"},
    "system admin": {"X-User-Id": "root", "X-Roles": ADMIN, "Openstack-System-Scope": "all"},
    "system reader": {"X-User-Id": "watch", "X-Roles": "reader", "Openstack-System-Scope": "all"},
    "domain admin": {"X-User-Id": "root", "X-Roles": ADMIN, "X-Domain-Id": "default"},
    "of another project": {"X-User-Id": "stranger", "X-Project-Id": "other", "X-Roles": MEMBER}}
NOBODYS: dict[str, dict[str, str]] = {"none": {"X-Identity-Status": "Invalid"},
                                      "expired": {**KINDS["of another project"], "X-Identity-Status": "Invalid"}}
#: What a user may do who has no project: what is the user's own, or everyone's.
OF_NO_PROJECT = {"GET /os-keypairs", "POST /os-keypairs", "GET /extensions", "GET /os-availability-zone",
                 "GET /os-quota-sets/{tenant_id}/defaults", "GET /os-floating-ip-pools"}


class Gate(NamedTuple):
    """The API behind Keystone's middleware, over a small cloud with a server of the project demo."""

    cloud: SmallCloud
    usual: Any
    open: Any
    server: str
    routes: tuple[Route, ...]

    def send(self, application: Any, route: Route, version: str, headers: dict[str, str]) -> webob.Response:
        values = {"server_id": self.server, "tenant_id": "demo", "key": "a"}
        path = re.sub(r"{(\w+)}", lambda name: values.get(name[1], made_up(name[1])), route.path)
        request = webob.Request.blank(f"/v2.1{path}", method=route.method)
        request.headers.update({"OpenStack-API-Version": f"compute {version}", "X-Identity-Status": "Confirmed",
                                **headers})
        if route.method in ("POST", "PUT"):
            request.body, request.content_type = msgspec.json.encode(body_of(route, version)), "application/json"
        return request.get_response(application)


@pytest.fixture(scope="module", params=[NOVA_NETWORK, NEUTRON], ids=lambda networks: networks.kind)
def gate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[Gate]:
    networks = request.param
    cloud = SmallCloud(tmp_path_factory.mktemp("tokens"), templates, networks=networks)
    [server] = add_servers(cloud.cell, server_row(name=SECRET, hostname=SECRET))
    ignores_errors = tmp_path_factory.mktemp("policy") / "policy.yaml"
    ignores_errors.write_text("".join(f'"{rule.name}": "@"\n' for rule in list_rules() if rule.name.count(":")))
    name = "neutron" if networks is NEUTRON else legacy_networks.BACK_END
    applications = [application(cloud, name, rules) for rules in (None, ignores_errors)]
    yield Gate(cloud, *applications, server, tuple(
        route for route in app.table(name) if not route.legacy and route.handler.__module__ != "nova.api.absent"))
    cloud.close()


def application(cloud: SmallCloud, networks: str, rules: Path | None) -> Any:
    """The API with the rules as they come, or with those of a file and tokens of every scope."""
    conf = configuration(use_neutron=networks == "neutron")
    policy = Policy(conf)
    if rules is not None:
        conf.set_override("policy_file", str(rules), group="oslo_policy")
        conf.set_override("enforce_scope", False, group="oslo_policy")
        policy = Policy(conf)
    site = ComputeSite(cloud.control, policy, FakeConsoles().client(), ContractFake(CertRPC).client(),
                       networks=networks)
    return app.build(site, lambda inner: auth.KeystoneContext(inner, policy))


@pytest.mark.parametrize("kind", sorted(NOBODYS))
def test_operation_when_the_token_is_none_then_401(gate: Gate, kind: str) -> None:
    wrong = [route.id for route in gate.routes
             if gate.send(gate.open, route, route.since, NOBODYS[kind]).status_int != 401]
    assert wrong == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_operation_when_the_token_has_no_project_or_another_then_refused_or_the_callers_own(gate: Gate, kind: str
                                                                                          ) -> None:
    wrong = []
    for route in gate.routes:
        for version in versions_of(route):
            answer = gate.send(gate.usual, route, version, KINDS[kind])
            refused = 400 <= answer.status_int < 500
            served = answer.status_int < 300 and (kind == "of another project" or (
                route.policy is None or (kind == "unscoped" and route.id in OF_NO_PROJECT)))
            if not (refused or served) or SECRET in answer.text:
                wrong.append(f"{route.id} at {version}: {answer.status_int} {answer.text[:200]}")
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_operation_when_every_rule_lets_everyone_in_then_no_500_and_no_project_is_not_every_project(
        gate: Gate, kind: str) -> None:
    wrong, may_see = [], kind.endswith("admin")
    for route in gate.routes if not may_see else [one for one in gate.routes if one.method == "GET"]:
        for version in versions_of(route):
            answer = gate.send(gate.open, route, version, KINDS[kind])
            shown = SECRET in answer.text and not may_see and not is_shown_to_others(gate, route, version)
            if answer.status_int >= 500 and answer.status_int not in (501, 503) or shown:
                wrong.append(f"{route.id} at {version}: {answer.status_int} {answer.text[:200]}")
    assert wrong == [], "\n".join(wrong)


def is_shown_to_others(gate: Gate, route: Route, version: str) -> bool:
    """Whether the rules, such as they are, show it to members of another project."""
    return SECRET in gate.send(gate.open, route, version, KINDS["of another project"]).text
