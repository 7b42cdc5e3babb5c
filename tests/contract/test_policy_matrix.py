"""Who may do what: each operation as each kind of caller, through the real application over a fake conductor.

What must come out is worked out from the contract's own checks (``policies.yaml``), not from our tables of rules. What
is refused must have touched the conductor by nothing but the one look-up that tells whose the thing is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import webob

from nova.api import app
from nova.api.request import ComputeSite
from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.policies import Policy
from nova.rpc.contracts.cert import CertRPC
from nova.web import auth
from tests.contract import rows
from tests.fakes.api import configuration
from tests.fakes.conductor import FakeConductor
from tests.fakes.consoles import FakeConsoles
from tests.fakes.contract import ContractFake
from tests.fakes.smallest_requests import body_of, made_up, versions_of

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)
OWNER, PROJECT, ELSEWHERE = "owner", "demo", "other"


@dataclass(frozen=True)
class Caller:
    """What a token says of somebody. The identity service adds the roles that others imply."""

    roles: tuple[str, ...]
    project: str | None = PROJECT
    user: str = OWNER
    system: bool = False
    domain: bool = False

    @property
    def scoped(self) -> bool:
        """In a project: others are refused by every rule."""
        return self.project is not None

    def headers(self) -> dict[str, str]:
        found = {"X-Identity-Status": "Confirmed", "X-User-Id": self.user, "X-Roles": ",".join(self.roles)}
        if self.project:
            found["X-Project-Id"] = self.project
        if self.system:
            found["Openstack-System-Scope"] = "all"
        if self.domain:
            found["X-Domain-Id"] = "default"
        return found


READER = ("reader",)
MEMBER = ("member", *READER)
MANAGER = ("manager", *MEMBER)
ADMIN = ("admin", *MANAGER)

CALLERS = {
    "system admin": Caller(ADMIN, None, "root", system=True),
    "domain admin": Caller(ADMIN, None, "root", domain=True),
    "cloud admin": Caller(ADMIN, "operators", "root"),
    "project admin": Caller(ADMIN, PROJECT, "chief"),
    "project manager": Caller(MANAGER),
    "project member": Caller(MEMBER),
    "project reader": Caller(READER),
    "another project's manager": Caller(MANAGER, ELSEWHERE, "stranger"),
    "another project's member": Caller(MEMBER, ELSEWHERE, "stranger"),
    "service": Caller(("service",), "service", "neutron"),
    "nobody": Caller((), PROJECT, "guest"),
}


# -- what the contract says


@functools.cache
def checks() -> dict[str, str]:
    found = rows.load("policies.yaml")
    return {entry["rule"]: entry["check"] for entry in [*found["base_rules"], *found["rules"]]}


_WORD = re.compile(r"\(|\)|\band\b|\bor\b|@|!|[\w.]+:(?:%\(\w+\)s|[^\s()]+)")


def passes(check: str, caller: Caller, target: dict[str, str | None]) -> bool:
    """A check of the contract for a caller and whose thing it is: words to Python's own and/or."""
    def judged(word: str) -> str:
        if word in ("(", ")", "and", "or"):
            return word
        return str(word == "@" or (word != "!" and _atom(word, caller, target)))
    words = _WORD.findall(check)
    assert "".join(words) == re.sub(r"\s", "", check), check
    return bool(eval(" ".join(map(judged, words)), {}))  # noqa: S307


def _atom(word: str, caller: Caller, target: dict[str, str | None]) -> bool:
    kind, _, value = word.partition(":")
    if kind == "rule":
        return passes(checks()[value], caller, target)
    if kind == "role":
        return value in caller.roles
    if kind == "is_admin":
        return "admin" in caller.roles
    return {"project_id": caller.project, "user_id": caller.user}[kind] == target[value[2:-2]]


def needed(route: Route) -> list[str]:
    """The rules that a plain request is asked: the first, and those asked unless the request says something."""
    policies = rows.operations()[route.id]["policies"]
    always = [entry["rule"] for entry in policies if "when" not in entry][:1]
    unless = [entry["rule"] for entry in policies if entry.get("when", "").startswith("unless")]
    return [*(always or [entry["rule"] for entry in policies if entry["rule"] == route.policy]), *unless]


def is_under_a_server(route: Route) -> bool:
    return "server_id" in route.names


def expected(route: Route, caller: Caller) -> set[int] | None:
    """The codes of a refusal; None when the caller is let through."""
    rules = needed(route)
    if not rules:
        return None
    foreign = is_under_a_server(route) or "tenant_id" in route.names
    target = {"project_id": PROJECT if foreign else caller.project, "user_id": OWNER if foreign else caller.user}
    if caller.scoped and all(passes(checks()[rule], caller, target) for rule in rules):
        return None
    if is_under_a_server(route) and caller.project != PROJECT and (not caller.scoped or "admin" not in caller.roles):
        return {404} if caller.scoped else {403, 404}  # somebody else's server is not there
    # one look-up finds the server and what of it is meant, which here is not there
    return {403, 404} if is_under_a_server(route) and len(route.names) > 1 and route.method == "GET" else {403}


# -- the request


class Cloud:
    """The application over fakes, with a server of OWNER in PROJECT; one for all tests, since it costs time to make."""

    def __init__(self) -> None:
        conf = configuration()
        self.conductor, self.consoles, policy = FakeConductor(), FakeConsoles(), Policy(conf)
        self.application = app.build(ComputeSite(self.conductor.client(), policy, self.consoles.client(),
                                                ContractFake(CertRPC).client()),
                                     lambda application: auth.KeystoneContext(application, policy))

    def fresh(self) -> None:
        """All anew in the same object: to make a client costs ten times as much as a request."""
        self.conductor.__init__()  # type: ignore[misc]
        self.server = self.conductor.add_server(project_id=PROJECT, user_id=OWNER).uuid

    def send(self, route: Route, version: str, caller: Caller | None, query: str = "") -> webob.Response:
        self.fresh()
        self.consoles.calls.clear()
        request = webob.Request.blank(f"/v2.1{self._path(route)}{query}", method=route.method)
        request.headers["OpenStack-API-Version"] = f"compute {version}"
        if route.method in ("POST", "PUT"):
            request.body = msgspec.json.encode(body_of(route, version))
            request.content_type = "application/json"
        if caller is not None:
            request.headers.update(caller.headers())
        return request.get_response(self.application)

    def _path(self, route: Route) -> str:
        values = {"server_id": self.server, "tenant_id": PROJECT, "key": "a"}
        return re.sub(r"{(\w+)}", lambda name: values.get(name[1], made_up(name[1])), route.path)


@functools.cache
def the_cloud() -> Cloud:
    return Cloud()


def cases() -> list[Any]:
    return [pytest.param(route, version, id=f"{route.id} at {version}") for route in ROUTES
            for version in versions_of(route)]


# -- the tests


def wrong(route: Route, version: str, name: str, caller: Caller) -> Iterable[str]:
    """What is wrong with the answer to one caller."""
    cloud = the_cloud()
    answer, refusal = cloud.send(route, version, caller), expected(route, caller)
    said = f"{name}: {answer.status_int} {answer.text[:200]}"
    if refusal is None:
        if answer.status_int in (401, 403, 500):
            yield f"{said}; the contract lets them"
        return
    if answer.status_int not in refusal:
        yield f"{said}; the contract refuses with {refusal}"
    asked = [call.name for call in cloud.conductor.calls]
    if len(asked) > (1 if route.looks_first else 0) or any(not one.startswith(("get_", "list_")) for one in asked):
        yield f"{name}: refused, and yet asked the conductor {asked}"
    if cloud.consoles.asked("open_console"):
        yield f"{name}: refused, and yet a console was opened"


@pytest.mark.parametrize(("route", "version"), cases())
def test_operation_as_each_caller_then_the_contract_decides(route: Route, version: str) -> None:
    problems = [problem for name, caller in CALLERS.items() for problem in wrong(route, version, name, caller)]
    assert problems == [], "\n".join(problems)


@pytest.mark.parametrize("route", [pytest.param(route, id=route.id) for route in ROUTES])
def test_operation_without_a_token_then_401_and_nothing_is_asked(route: Route) -> None:
    cloud = the_cloud()
    assert cloud.send(route, route.since, None).status_int == 401
    assert cloud.conductor.calls == []


def test_every_rule_of_the_contract_is_asked_by_an_operation_of_ours_or_comes_later() -> None:
    """Each rule's operations are served, or known as not yet."""
    from nova.api.absent import NOT_YET

    served = {route.id for route in ROUTES} | {id for _, _, ids in NOT_YET for id in ids}
    for entry in rows.load("policies.yaml")["rules"]:
        assert set(entry["operations"]) & served, entry["rule"]


# -- what narrows or is asked for a part of the request only


def ask(path: str, caller: Caller, version: str = "2.104", method: str = "GET", body: Any = None) -> tuple[int, Any]:
    cloud = the_cloud()
    cloud.fresh()
    request = webob.Request.blank(f"/v2.1{path}", method=method)
    request.headers.update({**caller.headers(), "OpenStack-API-Version": f"compute {version}"})
    if body is not None:
        request.body, request.content_type = msgspec.json.encode(body), "application/json"
    answer = request.get_response(cloud.application)
    return answer.status_int, answer.json if answer.body else None


@pytest.mark.parametrize("path", ["/servers", "/servers/detail"])
@pytest.mark.parametrize(("name", "seen"), [("cloud admin", 0), ("project member", 1), ("project reader", 1),
                                            ("another project's member", 0)])
def test_list_of_servers_then_only_those_of_the_own_project(path: str, name: str, seen: int) -> None:
    code, answer = ask(path, CALLERS[name])
    assert code == 200 and len(answer["servers"]) == seen


@pytest.mark.parametrize("path", ["/servers", "/servers/detail"])
@pytest.mark.parametrize("name", sorted(CALLERS))
def test_list_of_all_projects_servers_then_the_rule_for_it_decides(path: str, name: str) -> None:
    caller = CALLERS[name]
    rule = f"os_compute_api:servers:{'detail' if 'detail' in path else 'index'}:get_all_tenants"
    code, answer = ask(f"{path}?all_tenants=1", caller)
    if caller.scoped and passes(checks()[rule], caller, {"project_id": caller.project, "user_id": caller.user}):
        assert code == 200 and len(answer["servers"]) == 1
    else:
        assert code == 403


@pytest.mark.parametrize("name", sorted(CALLERS))
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_keypairs_of_another_user_then_only_admins(method: str, name: str) -> None:
    caller = CALLERS[name]
    body = None if method == "GET" else {"keypair": {"name": "k", "type": "ssh", "user_id": "somebody",
                                                     "public_key": "ssh-ed25519 AAAA"}}
    path = "/os-keypairs?user_id=somebody" if method == "GET" else "/os-keypairs"
    code, _ = ask(path, caller, method=method, body=body)
    rule = f"os_compute_api:os-keypairs:{'index' if method == 'GET' else 'create'}"
    target = {"project_id": caller.project, "user_id": "somebody"}
    allowed = caller.scoped and passes(checks()[rule], caller, target)
    assert (code != 403) == allowed, code


@pytest.mark.parametrize("name", sorted(CALLERS))
def test_limits_of_a_named_project_then_the_rule_for_it_decides(name: str) -> None:
    caller = CALLERS[name]
    code, _ = ask(f"/limits?tenant_id={PROJECT}", caller)
    rule = checks()["os_compute_api:limits:other_project"]
    allowed = caller.scoped and passes(rule, caller, {"project_id": PROJECT, "user_id": caller.user})
    assert code == (200 if allowed else 403)


def test_evaluator_of_checks_knows_what_each_word_means() -> None:
    member = CALLERS["project member"]
    own, foreign = {"project_id": PROJECT, "user_id": OWNER}, {"project_id": ELSEWHERE, "user_id": "x"}
    assert passes("@", member, own) and not passes("!", member, own)
    assert passes("rule:project_member_or_admin", member, own)
    assert not passes("rule:project_member_or_admin", member, foreign)
    assert passes("(rule:context_is_admin) or user_id:%(user_id)s", member, own)
    assert passes("rule:context_is_admin", CALLERS["cloud admin"], foreign)
