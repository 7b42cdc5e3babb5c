"""Servers' interfaces that come and go, and single addresses of theirs (multinic)."""

from __future__ import annotations

import ipaddress
from typing import Any

from tests.functional.live.caller import MEMBER, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

CREATE = "POST /servers/{server_id}/os-interface"
DELETE = "DELETE /servers/{server_id}/os-interface/{port_id}"
NOWHERE = "00000000-0000-4000-8000-000000000000"


def plugged(world: World) -> str:
    """A server whose interface has a tag."""
    return world.once("plugged", lambda: world.settle(world.boot(
        "plugged", {"networks": [{"uuid": world.network, "tag": "public"}]})))


def free_address(world: World, number: int) -> str:
    """Towards the end of the network's range."""
    network = world.ask("GET", f"/os-networks/{world.network}", version=1)["network"]
    return str(ipaddress.ip_network(network["cidr"])[-2 - number])


@scenario
def interfaces(world: World) -> None:
    live, path = world.live, f"/servers/{plugged(world)}/os-interface"
    [first] = world.ask("GET", path)["interfaceAttachments"]
    live.shows("os-attach-interfaces", "attach-interfaces-list-resp", path)
    live.shows("os-attach-interfaces", "attach-interfaces-show-resp", f"{path}/{first['port_id']}")
    each(live, "GET /servers/{server_id}/os-interface", path)
    each(live, "GET /servers/{server_id}/os-interface/{port_id}", f"{path}/{first['port_id']}")

    def filled(body: Any, version: int) -> Any:
        asked = {"net_id": world.network, "fixed_ips": [{"ip_address": free_address(world, version)}]}
        return {"interfaceAttachment": {**asked, **({"tag": "extra"} if version >= 49 else {})}}

    def take_out(answer: Answer, version: int) -> None:
        world.ask("DELETE", f"{path}/{answer.body['interfaceAttachment']['port_id']}")

    Exchange(operation=CREATE, path=path, folder="os-attach-interfaces", request="attach-interfaces-create-net_id-req",
             answer="attach-interfaces-create-resp", fill=filled, done=take_out).run(live)

    def doomed(version: int) -> str:
        made = world.ask("POST", path, {"interfaceAttachment": {"net_id": world.network}})
        return f"{path}/{made['interfaceAttachment']['port_id']}"
    each(live, DELETE, doomed)


@scenario
def interfaces_refused(world: World) -> None:
    live, path = world.live, f"/servers/{plugged(world)}/os-interface"
    for version in (1, 49, 104):
        live.call("POST", path, {"interfaceAttachment": {"net_id": world.network, "port_id": NOWHERE}}, version,
                  expect=400)
        live.call("POST", path, {"interfaceAttachment": {"fixed_ips": [{"ip_address": "10.0.0.9"}]}}, version,
                  expect=400)
        live.call("POST", path, {"interfaceAttachment": {"net_id": NOWHERE}}, version, expect=(400, 404))
        live.call("GET", f"{path}/{NOWHERE}", None, version, expect=404)
        live.call("DELETE", f"{path}/{NOWHERE}", None, version, expect=404)
        live.call("POST", f"/servers/{world.locked}/os-interface", {}, version, MEMBER, expect=409)
    live.call("GET", f"/servers/{NOWHERE}/os-interface", expect=404)


@scenario
def multinic(world: World) -> None:
    live, uuid = world.live, plugged(world)
    path = f"/servers/{uuid}/action"

    def extra() -> str:
        shown = world.ask("GET", f"/servers/{uuid}/os-interface")["interfaceAttachments"]
        return str(shown[0]["fixed_ips"][-1]["ip_address"])

    def take_away(answer: Answer, version: int) -> None:
        world.ask("POST", path, {"removeFixedIp": {"address": extra()}}, 43)

    Exchange(operation="POST /servers/{server_id}/action#addFixedIp", path=path, folder="os-multinic",
             request="multinic-add-fixed-ip-req", fill=lambda body, version: {"addFixedIp": {
                 "networkId": world.network}}, done=take_away).run(live)

    def one_more(version: int) -> Any:
        world.ask("POST", path, {"addFixedIp": {"networkId": world.network}}, 43)
        return {"removeFixedIp": {"address": extra()}}
    each(live, "POST /servers/{server_id}/action#removeFixedIp", path, one_more)
    live.call("POST", path, {"removeFixedIp": {"address": "192.0.2.1"}}, 43, expect=400)
    live.call("POST", path, {"addFixedIp": {"networkId": NOWHERE}}, 43, expect=400)
