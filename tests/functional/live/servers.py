"""Servers: create with all that the samples ask for, show, lists, update, delete; and the same under
/os-volumes_boot."""

from __future__ import annotations

import itertools
from typing import Any

from tests.functional.client import IMAGE
from tests.functional.live.caller import ADMIN, LEGACY, MEMBER, Answer, content, published
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

NUMBERS = itertools.count(1)
BOOT = "/os-volumes_boot"


def filling(world: World) -> Any:
    """Put what exists here in the place of a create sample's examples."""
    def filled(body: Any, version: int) -> Any:
        server = body["server"] | {"imageRef": IMAGE, "flavorRef": "1"}
        if version >= 37:
            server["networks"] = "auto"
        else:
            server.pop("networks", None)
        server.pop("block_device_mapping_v2", None)  # of a kind that comes with volumes
        if version >= 57:
            server.pop("personality", None)
        server.pop("trusted_image_certificates", None)  # refused: nobody verifies signatures
        if version < 19:
            server.pop("description", None)
        if "availability_zone" in server:
            server["availability_zone"] = "nova"
        if "host" in server:
            server["host"] = "host1"
        if "hypervisor_hostname" in server:
            server["hypervisor_hostname"] = world.node("host1")
        hints = body.get("OS-SCH-HNT:scheduler_hints", {})
        if "same_host" in hints:
            hints["same_host"] = world.server
        if "group" in hints:
            hints["group"] = world.soft_group
        return {**body, "server": server}
    return filled


def create(world: World, operation: str, path: str) -> None:
    """Create at each turning point, answered as the samples have it; the servers go again."""
    live = world.live

    def made(answer: Answer, version: int) -> None:
        if "server" in answer.body:
            world.doomed.append(answer.body["server"]["id"])
        if not answer.headers.get("Location", "").endswith(str(answer.body.get("server", {}).get("id", ""))):
            live.problem(f"{operation} at 2.{version}", f"header Location: got {answer.headers.get('Location')}")

    Exchange(operation=operation, path=path, folder="servers", request="server-create-req", answer="server-create-resp",
             fill=filling(world), done=made, user=MEMBER,
             body=None).run(live)
    if path == BOOT:
        return
    for stem in ("server-create-req-with-host-and-node", "server-create-req-with-only-host",
                 "server-create-req-with-only-node"):
        one_version(world, stem, 74, made)
    one_version(world, "server-create-req-v237", 37, made)
    one_version(world, "server-create-req-v257", 57, made)


def one_version(world: World, stem: str, version: int, made: Any) -> None:
    """A create sample that is for one version only, whatever its folder says."""
    sample = next(iter(published()["servers"][stem].values()))
    answer = world.live.call("POST", "/servers", filling(world)(content(sample), version), version, ADMIN)
    world.live.sent(sample, answer)
    if answer.ok:
        made(answer, version)


@scenario
def server_create(world: World) -> None:
    create(world, "POST /servers", "/servers")
    world.sweep()


@scenario
def server_create_at_its_old_place(world: World) -> None:
    create(world, "POST /os-volumes_boot", BOOT)
    world.sweep()


@scenario
def several_servers(world: World) -> None:
    live = world.live

    def reserved(answer: Answer, version: int) -> None:
        world.doomed_names.add("new-server-test")

    def alone(body: Any, version: int) -> Any:
        body = filling(world)(body, version)
        body["server"].pop("return_reservation_id", None)
        return body
    for answer, fill in (("multiple-create-post-resp", filling(world)), ("multiple-create-no-resv-post-resp", alone)):
        Exchange(operation="POST /servers", path="/servers", folder="os-multiple-create", user=MEMBER,
                 request="multiple-create-post-req", answer=answer, fill=fill, done=reserved,
                 versions=range(1, 2)).run(live)
    live.call("POST", "/servers", {"server": {"name": "x", "flavorRef": "1", "imageRef": IMAGE, "networks": "auto",
                                              "min_count": 3, "max_count": 2}}, expect=400)
    world.sweep()


@scenario
def server_refusals(world: World) -> None:
    """What a create names and is not there is a 400, not a 404."""
    live = world.live
    plain = {"name": "x", "flavorRef": "1", "imageRef": IMAGE, "networks": "auto"}
    for wrong in ({"flavorRef": "nothing"}, {"imageRef": "6c2b1d4e-0000-4c6e-9d0b-000000000000"},
                  {"key_name": "nothing"}, {"availability_zone": "nowhere"}, {"networks": [{"uuid": UNKNOWN}]},
                  {"min_count": 0}, {"name": ""}, {"stranger": 1}, {"user_data": "not base64!"},
                  {"metadata": {"k": "x" * 256}}, {"host": "nowhere"}, {"tags": ["a,b"]}, {"hostname": "bad!"},
                  {"trusted_image_certificates": []}, {"trusted_image_certificates": ["a"]}):
        live.call("POST", "/servers", {"server": plain | wrong}, 104, ADMIN, expect=400)
    live.call("POST", "/servers", {"server": plain | {"host": "host1"}}, 104, MEMBER, expect=403)
    live.call("POST", "/servers", {"server": {k: v for k, v in plain.items() if k != "networks"}}, 37, expect=400)


UNKNOWN = "00000000-0000-4000-8000-000000000000"


@scenario
def server_reads(world: World) -> None:
    live, uuid = world.live, world.server
    world.ask("POST", f"/servers/{uuid}/action", {"lock": {"locked_reason": "I don't want to work"}}, user=MEMBER)
    live.shows("servers", "server-get-resp", f"/servers/{uuid}")
    live.shows("os-server-tags", "server-tags-show-details-resp", f"/servers/{uuid}")
    ours = "name=standing"
    for folder, stem in (("servers", "servers-details-resp"), ("os-server-tags", "servers-tags-details-resp")):
        for versions in (range(1, 69), range(70, 105)):  # 2.69's is of a cell that is down
            bare = range(73, 74) if folder == "servers" else range(105)  # answered whole, without a next link
            live.shows(folder, stem, lambda version, bare=bare: (
                f"/servers/detail?{ours}" + ("" if version in bare else "&limit=1")), versions=versions)
    live.shows("servers", "servers-list-resp", f"/servers?{ours}&limit=1")
    live.shows("servers", "servers-list-status-resp", f"/servers?{ours}&limit=1&status=active")
    before = "2037-01-01T00:00:00Z"
    live.shows("servers", "servers-details-with-changes-before",
               f"/servers/detail?changes-before={before}&{ours}")
    live.shows("servers", "servers-list-with-changes-before", f"/servers?changes-before={before}&{ours}")
    world.ask("POST", f"/servers/{uuid}/action", {"unlock": None})


@scenario
def server_list_refusals(world: World) -> None:
    live = world.live
    live.call("GET", "/servers?all_tenants=1", None, 104, MEMBER, expect=403)
    live.call("GET", "/servers?limit=-1", expect=400)
    live.call("GET", "/servers?marker=nothing", expect=400)
    live.call("GET", "/servers?status=nothing", None, 38, expect=400)
    live.call("GET", "/servers?stranger=1", None, 75, expect=400)
    live.call("GET", "/servers?changes-since=sometime", None, 104, expect=400)
    if live.get("/servers?status=nothing", 37) != {"servers": []}:
        live.problem("GET /servers?status=nothing at 2.37", "expected an empty list")


@scenario
def server_update(world: World) -> None:
    """The samples' users differ: the whole answer from 2.75 on is an admin's up to 2.89, then a member's."""
    live, uuid = world.live, world.settle(world.hinted)

    def known(body: Any, version: int) -> Any:
        for name, since in (("description", 19), ("hostname", 90), ("pinned_availability_zone", 104)):
            if version < since:
                body["server"].pop(name, None)
        if version == 90:
            body["server"]["hostname"] = "new-server-hostname"
        return body

    for user in (ADMIN, MEMBER):
        versions = {ADMIN: range(90), MEMBER: range(90, 105)}[user]
        Exchange(operation="PUT /servers/{server_id}", path=f"/servers/{uuid}", folder="servers", user=user,
                 request="server-update-req", answer="server-update-resp", fill=known, versions=versions).run(live)
    Exchange(operation="PUT /servers/{server_id}", path=f"/servers/{uuid}", folder="servers", request="server-put-req",
             answer="server-put-resp", versions=range(19, 20)).run(live)
    each(live, "PUT /os-volumes_boot/{server_id}", f"{BOOT}/{uuid}", lambda version: {"server": {"name": "renamed"}})


@scenario
def server_delete(world: World) -> None:
    live = world.live
    doomed = {at: [world.boot(f"doomed{at}") for _ in range(2)] for at in (LEGACY, 1, 102, 104)}
    for version, (first, second) in doomed.items():
        live.call("DELETE", f"/servers/{first}", None, version, MEMBER)
        live.call("DELETE", f"{BOOT}/{second}" if version <= 102 else f"/servers/{second}", None, version, MEMBER)
    for first, _ in doomed.values():
        world.gone(first)
        live.call("DELETE", f"/servers/{first}", None, 104, expect=404)
    locked = world.settle(world.boot("locked"))
    world.ask("POST", f"/servers/{locked}/action", {"lock": None}, user=MEMBER)
    for body in ({"os-stop": None}, {"reboot": {"type": "SOFT"}}):
        live.call("POST", f"/servers/{locked}/action", body, 104, MEMBER, expect=409)
    live.call("DELETE", f"/servers/{locked}", None, 104, MEMBER, expect=409)
    world.remove(locked)
