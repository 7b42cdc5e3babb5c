"""Flavors, their extra specs and who may see them."""

from __future__ import annotations

import itertools
from typing import Any

from tests.functional.live.caller import MEMBER, OTHER, PROJECT, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

NUMBERS = itertools.count(1)


@scenario
def flavor_life(world: World) -> None:
    live = world.live

    def fresh(body: Any, version: int) -> Any:
        if version < 55:
            body["flavor"].pop("description", None)
        number = next(NUMBERS)
        body["flavor"] |= {"name": f"flavor{number}", "id": f"flavor-{number}"}
        return body

    def made(answer: Answer, version: int) -> None:
        flavor = answer.body["flavor"]["id"]
        if version == 61 or version == 1:
            live.call("POST", "/flavors", {"flavor": {"name": "other", "id": flavor, "ram": 1, "vcpus": 1, "disk": 0}},
                      version, expect=409)
        live.call("DELETE", f"/flavors/{flavor}", None, version)
        live.call("DELETE", f"/flavors/{flavor}", None, version, expect=404)

    Exchange(operation="POST /flavors", path="/flavors", folder="flavor-manage", request="flavor-create-post-req",
             answer="flavor-create-post-resp", fill=fresh, done=made).run(live)
    for version in (1, 104, 0):
        flavor = world.ask("POST", "/flavors", {"flavor": {"name": f"gone{version}", "id": f"gone{version}", "ram": 1,
                                                           "vcpus": 1, "disk": 0}})["flavor"]["id"]
        live.call("DELETE", f"/flavors/{flavor}", None, version)
    Exchange(operation="POST /flavors", path="/flavors", folder="flavor-access", request="flavor-create-req",
             fill=fresh, done=made).run(live)


@scenario
def flavor_reads(world: World) -> None:
    live = world.live
    live.shows("flavors", "flavor-get-resp", "/flavors/1")
    live.shows("flavors", "flavors-list-resp", "/flavors?is_public=None")
    live.shows("flavors", "flavors-detail-resp", "/flavors/detail")


@scenario
def flavor_description(world: World) -> None:
    Exchange(operation="PUT /flavors/{flavor_id}", path="/flavors/private", folder="flavor-manage",
             request="flavor-update-req", answer="flavor-update-resp").run(world.live)


@scenario
def flavor_extra_specs(world: World) -> None:
    live, path = world.live, "/flavors/1/os-extra_specs"
    live.shows("flavor-extra-specs", "flavor-extra-specs-list-resp", path)
    live.shows("flavor-extra-specs", "flavor-extra-specs-get-resp", f"{path}/hw:numa_nodes")

    def known(body: Any, version: int) -> Any:
        """Names that exist: from 2.86 on others are refused."""
        return {"extra_specs": {"hw:cpu_policy": "shared", "hw:cpu_thread_policy": "prefer"}} if version >= 86 else body

    Exchange(operation="POST /flavors/{flavor_id}/os-extra_specs", path=path, folder="flavor-extra-specs",
             request="flavor-extra-specs-create-req", answer="flavor-extra-specs-create-resp", fill=known).run(live)
    Exchange(operation="PUT /flavors/{flavor_id}/os-extra_specs/{key}", folder="flavor-extra-specs",
             path=lambda version: f"{path}/hw:numa_nodes", request="flavor-extra-specs-update-req",
             answer="flavor-extra-specs-update-resp",
             ).run(live)
    world.ask("POST", path, {"extra_specs": {"hw:numa_nodes": "1"}})  # others boot servers of it
    live.call("POST", path, {"extra_specs": {"hw:cpu_policy": "sometimes"}}, 86, expect=400)
    live.call("PUT", f"{path}/hw:numa_nodes", {"hw:cpu_policy": "mixed"}, expect=400)
    for version in (1, 104, 0):
        world.ask("POST", path, {"extra_specs": {"hw:cpu_max_sockets": "2"}})
        live.call("DELETE", f"{path}/hw:cpu_max_sockets", None, version)
        live.call("DELETE", f"{path}/hw:cpu_max_sockets", None, version, expect=404)
    for key in ("hw:cpu_thread_policy", "hw:cpu_policy", "key1", "key2"):
        live.session.delete(f"{live.url}/v2.1{path}/{key}", headers={"X-Auth-Token": f"admin:{PROJECT}"})


@scenario
def flavor_access(world: World) -> None:
    live, path = world.live, "/flavors/private"
    live.shows("flavor-access", "flavor-access-list-resp", f"{path}/os-flavor-access")
    world.ask("POST", f"{path}/action", {"addTenantAccess": {"tenant": "fake-tenant"}})
    Exchange(operation="POST /flavors/{flavor_id}/action#removeTenantAccess", path=f"{path}/action",
             fill=lambda body, version: {"removeTenantAccess": {"tenant": "fake-tenant"}}, folder="flavor-access",
             request="flavor-access-remove-tenant-req", answer="flavor-access-remove-tenant-resp",
             done=lambda answer, version: world.ask("POST", f"{path}/action",
                                                    {"addTenantAccess": {"tenant": "fake-tenant"}})).run(live)

    def take_back(answer: Answer, version: int) -> None:
        body = {"addTenantAccess": {"tenant": OTHER}}
        live.call("POST", f"{path}/action", body, version, expect=409)
        world.ask("POST", f"{path}/action", {"removeTenantAccess": {"tenant": OTHER}})

    Exchange(operation="POST /flavors/{flavor_id}/action#addTenantAccess", path=f"{path}/action",
             folder="flavor-access", request="flavor-access-add-tenant-req", answer="flavor-access-add-tenant-resp",
             body=lambda version: {"addTenantAccess": {"tenant": OTHER}}, done=take_back).run(live)
    live.call("POST", f"{path}/action", {"removeTenantAccess": {"tenant": OTHER}}, expect=404)
    live.call("POST", "/flavors/1/action", {"addTenantAccess": {"tenant": OTHER}}, expect=409)
    live.call("POST", "/flavors/1/action", {"addTenantAccess": {"tenant": OTHER}}, 6, expect=(200, 409))
    each(live, "GET /flavors/{flavor_id}/os-flavor-access", f"{path}/os-flavor-access")
    live.call("GET", "/flavors/1/os-flavor-access", expect=404)
    live.call("GET", f"{path}/os-flavor-access", None, 104, MEMBER, expect=403)
