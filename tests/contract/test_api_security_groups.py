"""What we answer about security groups passes the contract's rows at every version that has them."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from tests.contract import answers, rows
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration

pytestmark = rows.needs_contract

UUID = "11111111-2222-4333-8444-555555555555"
GROUPS, RULES = "/os-security-groups", "/os-security-group-rules"
LAST = 35
SSH = {"ip_protocol": "tcp", "from_port": 22, "to_port": "22", "cidr": "10.0.0.0/24"}
DEFAULTS = "/os-security-group-default-rules"
WEB = {"security_group": {"name": "web", "description": "what the web needs"}}


@pytest.fixture
def client() -> ApiClient:
    made = ApiClient(token=DEMO)
    made.conductor.add_server(uuid=UUID, project_id="demo", user_id="demo", security_groups=("default",))
    return made


def make(client: ApiClient, name: str = "web", **at: Any) -> dict[str, Any]:
    return dict(client.post(GROUPS, {"security_group": {"name": name, "description": ""}}, **at).json["security_group"])


def test_answers_at_every_version_pass_the_contract(client: ApiClient) -> None:
    source = make(client, "source")["id"]
    for version in range(1, LAST + 1):
        at: dict[str, Any] = {"version": f"2.{version}"}
        made = client.post(GROUPS, WEB, **at)
        one = made.json["security_group"]["id"]
        rule = {"parent_group_id": one}
        written = [client.post(RULES, {"security_group_rule": {**rule, **more}}, **at)
                   for more in (SSH, {"group_id": source}, {"group_id": source, "ip_protocol": "icmp"})]
        base, of_one = f"GET {GROUPS}", f"{GROUPS}/{{security_group_id}}"
        steps = [(f"POST {GROUPS}", made), *[(f"POST {RULES}", answer) for answer in written],
                 (base, client.get(GROUPS, **at)), (f"GET {of_one}", client.get(f"{GROUPS}/{one}", **at)),
                 (f"PUT {of_one}", client.put(f"{GROUPS}/{one}", {"security_group": {
                     "name": "www", "description": "x"}}, **at)),
                 (f"DELETE {RULES}/{{rule_id}}", client.delete(
                     f"{RULES}/{written[0].json['security_group_rule']['id']}", **at)),
                 (f"DELETE {of_one}", client.delete(f"{GROUPS}/{one}", **at))]
        for id, answer in steps:
            answers.assert_answer(id, version, answer)
        assert [rule["group"] for rule in steps[5][1].json["security_group"]["rules"]] == [
            {}, *[{"name": "source", "tenant_id": "demo"}] * 2]


def test_operations_when_their_version_is_over_then_they_are_not_there(client: ApiClient) -> None:
    for path in (GROUPS, f"{GROUPS}/{UUID}"):
        assert client.get(path, version="2.36").status_int == 404


def test_actions_and_groups_of_a_server_at_every_version_pass_the_contract(client: ApiClient) -> None:
    make(client)
    id = "GET /servers/{server_id}/os-security-groups"
    for version in rows.VERSIONS:
        at: dict[str, Any] = {"version": f"2.{version}"}
        for action in ("addSecurityGroup", "removeSecurityGroup"):
            answer = client.post(f"/servers/{UUID}/action", {action: {"name": "web"}}, **at)
            answers.assert_answer(f"POST /servers/{{server_id}}/action#{action}", version, answer)
            if action == "addSecurityGroup":
                found = client.get(f"/servers/{UUID}/os-security-groups", **at)
                answers.assert_answer(id, version, found)
                assert {one["name"] for one in found.json["security_groups"]} == {"default", "web"}


def test_group_when_its_name_has_space_around_then_servers_join_and_leave_it_by_that(client: ApiClient) -> None:
    asked = {"security_group": {"name": " space ", "description": " d "}}
    made = client.post(GROUPS, asked).json["security_group"]
    assert (made["name"], made["description"]) == (" space ", " d ")
    for action in ("addSecurityGroup", "removeSecurityGroup"):
        answer = client.post(f"/servers/{UUID}/action", {action: {"name": " space "}})
        assert answer.status_int == 202, answer.text


@pytest.mark.parametrize("action, name, code", [
    ("addSecurityGroup", "nowhere", 404), ("removeSecurityGroup", "web", 404), ("addSecurityGroup", "default", 400),
    ("addSecurityGroup", "  ", 400)])
def test_action_when_it_cannot_be_then_its_code_says_so(client: ApiClient, action: str, name: str, code: int) -> None:
    make(client)
    answer = client.post(f"/servers/{UUID}/action", {action: {"name": name}})
    assert answer.status_int == code


@pytest.mark.parametrize("changes", [
    {"ip_protocol": "gre"}, {"ip_protocol": 6}, {"from_port": "x"}, {"from_port": 23}, {"to_port": 70000},
    {"cidr": "10.0.0.0/0"}, {"cidr": ["10.0.0.0/8"]}, {"from_port": True}, {"from_port": None}, {"to_port": 1e30},
    {"parent_group_id": "7"}, {"parent_group_id": None}])
def test_rule_when_it_is_bad_then_it_is_refused(client: ApiClient, changes: dict[str, Any]) -> None:
    group = make(client)["id"]
    answer = client.post(RULES, {"security_group_rule": {"parent_group_id": group, **SSH, **changes}})
    assert answer.status_int == 400


def test_rule_when_it_is_there_or_its_group_is_not_then_its_code_says_so(client: ApiClient) -> None:
    group = make(client)["id"]
    body = {"security_group_rule": {"parent_group_id": group, **SSH}}
    client.post(RULES, body)
    assert client.post(RULES, body).status_int == 400
    other = {"security_group_rule": {**body["security_group_rule"], "parent_group_id": UUID}}
    assert client.post(RULES, other).status_int == 404
    assert client.delete(f"{RULES}/{UUID}").status_int == 404


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "x" * 256])
def test_group_when_its_name_is_bad_then_it_is_refused(client: ApiClient, name: str) -> None:
    body = {"security_group": {"name": name, "description": ""}}
    assert client.post(GROUPS, body).status_int == 400


def test_group_when_the_quota_is_used_up_or_it_is_the_default_one_then_its_code_says_so(client: ApiClient) -> None:
    client.conductor.given(create_security_group=errors.OverQuota("Quota exceeded, too many security groups."))
    default = client.get(GROUPS).json["security_groups"][0]["id"]
    assert client.post(GROUPS, WEB).status_int == 403
    assert client.delete(f"{GROUPS}/{default}").status_int == 400
    assert client.put(f"{GROUPS}/{default}", WEB).status_int == 400


def test_list_when_an_admin_asks_for_all_then_others_groups_are_in_it(client: ApiClient) -> None:
    make(client)
    admin = ApiClient(token=ADMIN, conductor=client.conductor)
    assert "web" not in {one["name"] for one in admin.get(GROUPS).json["security_groups"]}
    assert "web" in {one["name"] for one in admin.get(f"{GROUPS}?all_tenants=1").json["security_groups"]}
    assert len(client.get(f"{GROUPS}?all_tenants=1&limit=1").json["security_groups"]) == 1


def test_server_when_the_network_service_has_no_answer_then_it_is_unavailable(client: ApiClient) -> None:
    def away(*_args: object, **_named: object) -> None:
        raise errors.Unavailable("Neutron does not answer")
    client.conductor.list_server_security_groups = away
    assert client.get(f"/servers/{UUID}/os-security-groups").status_int == 503


def test_default_rules_when_nova_network_is_in_service_then_administrators_have_them_up_to_their_last_version() -> None:
    admin = ApiClient(token=ADMIN, conf=configuration(use_neutron=False))
    wanted = {"security_group_default_rule": {"ip_protocol": "TCP", "from_port": "80", "to_port": "80",
                                              "cidr": "10.10.10.0/24"}}
    shown = {"id": 1, "ip_protocol": "TCP", "from_port": 80, "to_port": 80, "ip_range": {"cidr": "10.10.10.0/24"}}
    made = admin.post(DEFAULTS, wanted)
    assert (made.status_int, made.json) == (200, {"security_group_default_rule": shown})
    assert admin.post(DEFAULTS, wanted).status_int == 409
    assert admin.get(DEFAULTS).json == {"security_group_default_rules": [shown]}
    assert admin.get(f"{DEFAULTS}/1").json == made.json and admin.get(f"{DEFAULTS}/2").status_int == 404
    assert admin.get(DEFAULTS, token=DEMO).status_int == 403
    assert admin.get(DEFAULTS, version="2.36").status_int == 404
    assert admin.delete(f"{DEFAULTS}/1").status_int == 204
    assert ApiClient(token=ADMIN).get(DEFAULTS).status_int == 410
