"""Server groups, usage of projects, the audit of usage."""

from __future__ import annotations

import datetime
from typing import Any

from tests.functional.live import planted
from tests.functional.live.caller import LEGACY, MEMBER, OTHER, PROJECT, Answer
from tests.functional.live.scenario import Exchange, scenario
from tests.functional.live.world import World

GROUPS, USAGE, AUDIT = "/os-server-groups", "/os-simple-tenant-usage", "/os-instance_usage_audit_log"
SPAN = "start=2020-01-01T00:00:00&end=2037-01-01T00:00:00"


@scenario
def server_groups(world: World) -> None:
    live = world.live

    def made(answer: Answer, version: int) -> None:
        path = f"{GROUPS}/{answer.body['server_group']['id']}"
        live.call("GET", path, None, version, MEMBER)
        live.call("DELETE", path, None, version, MEMBER)
        live.call("DELETE", path, None, version, MEMBER, expect=404)
    Exchange(operation="POST /os-server-groups", path=GROUPS, folder="os-server-groups", user=MEMBER,
             request="server-groups-post-req", answer="server-groups-post-resp", done=made).run(live)
    Exchange(operation="POST /os-server-groups", path=GROUPS, folder="servers", user=MEMBER, versions=range(71, 72),
             request="server-groups-post-req", answer="server-groups-post-resp", done=made).run(live)
    for version in (1, 104, LEGACY):
        body: Any = {"policies": ["affinity"]} if version < 64 else {"policy": "affinity"}
        group = world.ask("POST", GROUPS, {"server_group": {"name": "gone", **body}}, version or 1)["server_group"]
        live.call("DELETE", f"{GROUPS}/{group['id']}", None, version)
    both = {"name": "x", "policies": ["affinity", "anti-affinity"]}
    live.call("POST", GROUPS, {"server_group": both}, 63, expect=400)
    live.call("POST", GROUPS, {"server_group": {"name": "x", "policy": "affinity",
                                                "rules": {"max_server_per_host": 1}}}, 64, expect=400)


@scenario
def server_group_reads(world: World) -> None:
    live = world.live
    assert world.group
    live.shows("os-server-groups", "server-groups-list-resp", f"{GROUPS}?limit=1")
    live.shows("os-server-groups", "server-groups-get-resp", f"{GROUPS}/{world.group}")


@scenario
def usage(world: World) -> None:
    live = world.live
    assert world.server
    live.shows("os-simple-tenant-usage", "simple-tenant-usage-get", f"{USAGE}?{SPAN}")
    live.shows("os-simple-tenant-usage", "simple-tenant-usage-get-all", f"{USAGE}?detailed=1&{SPAN}")
    live.shows("os-simple-tenant-usage", "simple-tenant-usage-get-detail", lambda version: (
        f"{USAGE}?detailed=1&{SPAN}" + ("&limit=1" if version >= 40 else "")))
    live.shows("os-simple-tenant-usage", "simple-tenant-usage-get-specific", f"{USAGE}/{PROJECT}?{SPAN}")
    live.call("GET", f"{USAGE}?start=2037-01-01T00:00:00&end=2020-01-01T00:00:00", expect=400)
    live.call("GET", f"{USAGE}?start=sometime", expect=400)
    live.call("GET", f"{USAGE}?marker=nothing", None, 40, expect=400)
    live.call("GET", USAGE, None, 104, MEMBER, expect=403)
    live.call("GET", f"{USAGE}/{OTHER}", None, 104, MEMBER, expect=403)


@scenario
def usage_audit(world: World) -> None:
    """Of a period that every host but one has finished."""
    live = world.live
    planted.audits(world)
    live.shows("os-instance-usage-audit-log", "inst-usage-audit-log-index-get-resp", AUDIT)
    live.shows("os-instance-usage-audit-log", "inst-usage-audit-log-show-get-resp",
               f"{AUDIT}/{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M:%S}")
    live.call("GET", f"{AUDIT}/sometime", expect=400)
