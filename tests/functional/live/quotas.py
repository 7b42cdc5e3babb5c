"""Quotas of projects, users and classes, and limits."""

from __future__ import annotations

from typing import Any

from tests.functional.live.caller import MEMBER, PROJECT, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

SETS = "/os-quota-sets"
TARGET = "fake_tenant"


@scenario
def quota_reads(world: World) -> None:
    live = world.live
    for folder in ("os-quota-sets", "os-quota-sets-noop"):
        live.shows(folder, "quotas-show-get-resp", f"{SETS}/{TARGET}")
        live.shows(folder, "quotas-show-defaults-get-resp", f"{SETS}/{TARGET}/defaults")
        live.shows(folder, "quotas-show-detail-get-resp", f"{SETS}/{TARGET}/detail")
        live.shows(folder, "user-quotas-show-get-resp", f"{SETS}/{TARGET}?user_id={MEMBER}")
    live.call("GET", f"{SETS}/{TARGET}", None, 104, MEMBER, expect=403)
    live.call("GET", f"{SETS}/{PROJECT}", None, 104, MEMBER)


@scenario
def quota_updates(world: World) -> None:
    live = world.live

    def put_back(answer: Answer, version: int) -> None:
        live.call("DELETE", f"{SETS}/{TARGET}", None, version)

    for folder in ("os-quota-sets", "os-quota-sets-noop"):
        for word in ("quotas-update", "quotas-update-force"):
            Exchange(operation="PUT /os-quota-sets/{tenant_id}", path=f"{SETS}/{TARGET}", folder=folder,
                     request=f"{word}-post-req", answer=f"{word}-post-resp", done=put_back,
                     body=None if (folder, word) != ("os-quota-sets-noop", "quotas-update") else
                     lambda version: {"quota_set": {"cores": 45}}).run(live)
        Exchange(operation="PUT /os-quota-sets/{tenant_id}", path=f"{SETS}/{TARGET}?user_id={MEMBER}", folder=folder,
                 request="user-quotas-update-post-req", answer="user-quotas-update-post-resp", done=put_back).run(live)
    each(live, "DELETE /os-quota-sets/{tenant_id}", f"{SETS}/{TARGET}")
    live.call("PUT", f"{SETS}/{TARGET}", {"quota_set": {"fixed_ips": 1}}, 36, expect=400)


@scenario
def quota_classes(world: World) -> None:
    live, path = world.live, "/os-quota-class-sets/default"

    def made(answer: Answer, version: int) -> None:
        live.call("GET", path, None, version)

    def roomy(body: Any, version: int) -> Any:
        """The default class's limits hold for all that runs here."""
        for name in ("instances", "cores", "ram"):
            body["quota_class_set"][name] = -1
        return body
    Exchange(operation="PUT /os-quota-class-sets/{quota_class}", path=path, folder="os-quota-class-sets",
             request="quota-classes-update-post-req", answer="quota-classes-update-post-resp", fill=roomy,
             done=made).run(live)


@scenario
def limits(world: World) -> None:
    world.live.shows("limits", "limit-get-resp", "/limits")
