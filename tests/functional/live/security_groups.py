"""Security groups, their rules, and the servers in them."""

from __future__ import annotations

import itertools
from typing import Any

from tests.functional.live.caller import Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

GROUPS, RULES = "/os-security-groups", "/os-security-group-rules"
NUMBERS = itertools.count(1)


def made(world: World) -> str:
    """The id of a group of its own."""
    body = {"security_group": {"name": f"group-{next(NUMBERS)}", "description": "of a test"}}
    return str(world.ask("POST", GROUPS, body, version=1)["security_group"]["id"])


def rule(world: World, group: str) -> str:
    port = next(NUMBERS)
    body = {"security_group_rule": {"parent_group_id": group, "ip_protocol": "udp", "from_port": port,
                                    "to_port": port, "cidr": "10.0.0.0/24"}}
    return str(world.ask("POST", RULES, body, version=1)["security_group_rule"]["id"])


def drop(world: World, group: str) -> None:
    world.ask("DELETE", f"{GROUPS}/{group}", version=1)


@scenario
def security_groups(world: World) -> None:
    live = world.live
    live.shows("os-security-groups", "security-groups-list-get-resp", GROUPS)
    kept = made(world)
    live.shows("os-security-groups", "security-groups-get-resp", f"{GROUPS}/{kept}")
    each(live, "GET /os-security-groups", lambda version: GROUPS)
    each(live, "GET /os-security-groups/{security_group_id}", lambda version: f"{GROUPS}/{kept}")

    def gone(answer: Answer, version: int) -> None:
        drop(world, answer.body["security_group"]["id"])
    Exchange(operation="POST /os-security-groups", path=GROUPS, folder="os-security-groups",
             request="security-group-post-req", done=gone).run(live)
    Exchange(operation="PUT /os-security-groups/{security_group_id}", path=f"{GROUPS}/{kept}",
             folder="os-security-groups", request="security-group-post-req").run(live)
    each(live, "DELETE /os-security-groups/{security_group_id}", lambda version: f"{GROUPS}/{made(world)}")
    drop(world, kept)


@scenario
def security_group_rules(world: World) -> None:
    live, kept = world.live, made(world)

    def ours(body: Any, version: int) -> Any:
        return {"security_group_rule": {**body["security_group_rule"], "parent_group_id": kept}}

    def gone(answer: Answer, version: int) -> None:
        world.ask("DELETE", f"{RULES}/{answer.body['security_group_rule']['id']}", version=1)
    Exchange(operation="POST /os-security-group-rules", path=RULES, folder="os-security-groups", fill=ours,
             request="security-group-rules-post-req", answer="security-group-rules-post-resp", done=gone).run(live)
    each(live, "DELETE /os-security-group-rules/{rule_id}", lambda version: f"{RULES}/{rule(world, kept)}")
    drop(world, kept)


@scenario
def security_groups_of_servers(world: World) -> None:
    live, action, kept = world.live, f"/servers/{world.server}/action", made(world)

    def ours(name: str) -> Any:
        return lambda body, version: {name: {"name": kept}}

    def off(answer: Answer, version: int) -> None:
        world.ask("POST", action, {"removeSecurityGroup": {"name": kept}}, version=1)

    def on(version: int) -> str:
        world.ask("POST", action, {"addSecurityGroup": {"name": kept}}, version=1)
        return action
    Exchange(operation="POST /servers/{server_id}/action#addSecurityGroup", path=action, folder="os-security-groups",
             request="security-group-add-post-req", fill=ours("addSecurityGroup"), done=off).run(live)
    Exchange(operation="POST /servers/{server_id}/action#removeSecurityGroup", path=on, folder="os-security-groups",
             request="security-group-remove-post-req", fill=ours("removeSecurityGroup")).run(live)
    each(live, "GET /servers/{server_id}/os-security-groups",
         lambda version: f"/servers/{world.server}/os-security-groups")
    drop(world, kept)


@scenario
def security_groups_refused(world: World) -> None:
    live, action, kept = world.live, f"/servers/{world.server}/action", made(world)
    nobody = "6c2b1d4e-52f1-4c6e-9d0b-7a3f8e1c9b55"
    words = {"description": "x"}
    for version in (1, 35):
        live.call("GET", f"{GROUPS}/nothing", None, version, expect=404)
        live.call("DELETE", f"{GROUPS}/nothing", None, version, expect=400)
        live.call("PUT", f"{GROUPS}/nothing", {"security_group": {"name": "x", **words}}, version, expect=400)
        for method, body in (("GET", None), ("DELETE", None), ("PUT", {"security_group": {"name": "x", **words}})):
            live.call(method, f"{GROUPS}/00000000-0000-4000-8000-00000000ffff", body, version, expect=404)
        live.call("POST", GROUPS, {"security_group": {"name": "default", **words}}, version, expect=400)
        live.call("POST", RULES, {"security_group_rule": {"parent_group_id": kept, "ip_protocol": "gre"}}, version,
                  expect=400)
        live.call("POST", RULES, {"security_group_rule": {
            "parent_group_id": "00000000-0000-4000-8000-00000000ffff", "ip_protocol": "icmp"}}, version, expect=404)
        live.call("DELETE", f"{RULES}/nothing", None, version, expect=400)
        live.call("DELETE", f"{RULES}/00000000-0000-4000-8000-00000000ffff", None, version, expect=404)
    for version in (1, 104):
        live.call("POST", action, {"addSecurityGroup": {"name": "default"}}, version, expect=400)
        live.call("POST", action, {"addSecurityGroup": {"name": "nothing"}}, version, expect=404)
        live.call("POST", action, {"removeSecurityGroup": {"name": kept}}, version, expect=404)
        live.call("GET", f"/servers/{nobody}/os-security-groups", None, version, expect=404)
    drop(world, kept)
