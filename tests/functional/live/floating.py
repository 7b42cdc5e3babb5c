"""Floating addresses: the project's, its servers', and their pools."""

from __future__ import annotations

from typing import Any

from tests.functional.live.caller import ADMIN, PROJECT, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

PATH = "/os-floating-ips"
RANGE = "172.24.4.16/28"


def stock(world: World) -> None:
    """Pools to take from; made by what the contract calls gone, since only nova-network has it."""
    def make() -> bool:
        live = world.live
        for pool, ip_range in (("public", RANGE), ("nova", "172.24.5.1")):
            made = live.session.post(
                f"{live.url}/v2.1/os-floating-ips-bulk", headers={"X-Auth-Token": f"{ADMIN}:{PROJECT}"},
                json={"floating_ips_bulk_create": {"ip_range": ip_range, "pool": pool}})
            assert made.status_code == 200, made.text
        return True
    world.once("floating stock", make)


def taken(world: World) -> dict[str, Any]:
    stock(world)
    return dict(world.ask("POST", PATH, {"pool": "public"}, version=1)["floating_ip"])


@scenario
def floating_addresses(world: World) -> None:
    live = world.live
    stock(world)
    live.shows("os-floating-ip-pools", "floatingippools-list-resp", "/os-floating-ip-pools")
    live.shows("os-floating-ips", "floating-ips-list-empty-resp", PATH)

    def give_back(answer: Answer, version: int) -> None:
        world.ask("DELETE", f"{PATH}/{answer.body['floating_ip']['id']}", version=1)
    Exchange(operation="POST /os-floating-ips", path=PATH, folder="os-floating-ips",
             request="floating-ips-create-req", done=give_back).run(live)
    kept = [taken(world) for _ in range(2)]
    each(live, "GET /os-floating-ips", PATH)
    each(live, "GET /os-floating-ips/{floating_ip_id}", f"{PATH}/{kept[0]['id']}")
    for one in kept:
        world.ask("DELETE", f"{PATH}/{one['id']}", version=1)
    each(live, "DELETE /os-floating-ips/{floating_ip_id}", lambda version: f"{PATH}/{taken(world)['id']}")


@scenario
def floating_addresses_of_servers(world: World) -> None:
    live, action = world.live, f"/servers/{world.server}/action"
    one = taken(world)
    fixed = next(entry["addr"] for entries in world.ask("GET", f"/servers/{world.server}/ips")["addresses"].values()
                 for entry in entries if entry["version"] == 4)

    def ours(body: Any, version: int) -> Any:
        return {"addFloatingIp": {"address": one["ip"], "fixed_address": fixed}}

    def off(answer: Answer, version: int) -> None:
        world.ask("POST", action, {"removeFloatingIp": {"address": one["ip"]}}, version=1)

    def on(version: int) -> str:
        world.ask("POST", action, ours(None, version), version=1)
        return action
    Exchange(operation="POST /servers/{server_id}/action#addFloatingIp", path=action, folder="servers",
             request="server-action-addfloatingip-req", fill=ours, done=off).run(live)
    Exchange(operation="POST /servers/{server_id}/action#removeFloatingIp", path=on, folder="servers",
             request="server-action-removefloatingip-req",
             fill=lambda body, version: {"removeFloatingIp": {"address": one["ip"]}}).run(live)
    world.ask("DELETE", f"{PATH}/{one['id']}", version=1)


@scenario
def floating_addresses_refused(world: World) -> None:
    live, action = world.live, f"/servers/{world.server}/action"
    one = taken(world)
    for version in (1, 35):
        live.call("POST", PATH, {"pool": "nothing"}, version, expect=404)
        live.call("POST", PATH, {"pool": 1}, version, expect=400)
        live.call("GET", f"{PATH}/nothing", None, version, expect=400)
        live.call("GET", f"{PATH}/999999", None, version, expect=404)
        live.call("DELETE", f"{PATH}/999999", None, version, expect=404)
    for version in (1, 43):
        live.call("POST", action, {"addFloatingIp": {"address": "203.0.113.1"}}, version, expect=404)
        live.call("POST", action, {"addFloatingIp": {"address": "nothing"}}, version, expect=400)
        live.call("POST", action, {"addFloatingIp": {"address": one["ip"], "fixed_address": "203.0.113.1"}}, version,
                  expect=400)
        live.call("POST", action, {"removeFloatingIp": {"address": one["ip"]}}, version, expect=409)
        live.call("POST", action, {"removeFloatingIp": {"address": "203.0.113.1"}}, version, expect=404)
    world.ask("DELETE", f"{PATH}/{one['id']}", version=1)
