"""Aggregates, zones, hosts, hypervisors and services."""

from __future__ import annotations

import itertools
from typing import Any

from tests.functional.client import IMAGE
from tests.functional.live import planted
from tests.functional.live.caller import LEGACY, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import SPARE, World

AGGREGATES = "/os-aggregates"
NUMBERS = itertools.count(1)
PAGED = "?limit=1"


def fresh(world: World, host: str = "", zone: str | None = "london") -> str:
    """Path of a new aggregate, with a host in it."""
    name = f"aggregate{next(NUMBERS)}"
    body = {"aggregate": {"name": name, "availability_zone": zone}}
    made = world.ask("POST", AGGREGATES, body)["aggregate"]["id"]
    if host:
        world.ask("POST", f"{AGGREGATES}/{made}/action", {"add_host": {"host": host}})
    return f"{AGGREGATES}/{made}"


def gone(world: World, path: str) -> None:
    for host in world.ask("GET", path)["aggregate"]["hosts"]:
        world.ask("POST", f"{path}/action", {"remove_host": {"host": host}})
    world.ask("DELETE", path)


@scenario
def aggregate_life(world: World) -> None:
    live = world.live

    def renamed(body: Any, version: int) -> Any:
        body["aggregate"]["name"] = f"name{next(NUMBERS)}"
        return body

    def made(answer: Answer, version: int) -> None:
        path = f"{AGGREGATES}/{answer.body['aggregate']['id']}"
        live.call("POST", AGGREGATES, {"aggregate": {"name": answer.body["aggregate"]["name"]}}, version, expect=409)
        live.call("DELETE", path, None, version)
        live.call("DELETE", path, None, version, expect=404)

    Exchange(operation="POST /os-aggregates", path=AGGREGATES, folder="os-aggregates", request="aggregate-post-req",
             answer="aggregate-post-resp", fill=renamed, done=made).run(live)
    for version in (1, 104, LEGACY):
        live.call("DELETE", fresh(world), None, version)
    path = fresh(world)
    Exchange(operation="PUT /os-aggregates/{aggregate_id}", path=path, folder="os-aggregates", fill=renamed,
             request="aggregate-update-post-req", answer="aggregate-update-post-resp").run(live)
    live.call("PUT", path, {"aggregate": {"name": "standing"}}, expect=409) if world.aggregate else None
    gone(world, path)


@scenario
def aggregate_hosts(world: World) -> None:
    live = world.live
    for action, empty in (("add_host", True), ("remove_host", False)):
        paths: dict[int, str] = {}
        word = action.partition("_")[0]

        def path(version: int, empty: bool = empty, paths: dict[int, str] = paths) -> str:
            paths[version] = fresh(world, "" if empty else "host2")
            return f"{paths[version]}/action"

        def named(body: Any, version: int) -> Any:
            next(iter(body.values()))["host"] = "host2"
            return body

        def again(answer: Answer, version: int, action: str = action, paths: dict[int, str] = paths) -> None:
            live.call("POST", f"{paths[version]}/action", {action: {"host": "host2"}}, version,
                      expect=409 if action == "add_host" else 404)
            live.call("POST", f"{paths[version]}/action", {action: {"host": "nowhere"}}, version, expect=404)
            if action == "add_host":
                live.call("DELETE", paths[version], None, version, expect=400)
            gone(world, paths[version])
        Exchange(operation=f"POST /os-aggregates/{{aggregate_id}}/action#{action}", path=path, folder="os-aggregates",
                 request=f"aggregate-{word}-host-post-req", answer=f"aggregates-{word}-host-post-resp", fill=named,
                 done=again).run(live)


@scenario
def aggregate_metadata(world: World) -> None:
    live, path = world.live, fresh(world)
    Exchange(operation="POST /os-aggregates/{aggregate_id}/action#set_metadata", path=f"{path}/action",
             folder="os-aggregates", request="aggregate-metadata-post-req", answer="aggregates-metadata-post-resp",
             ).run(live)
    gone(world, path)
    path = fresh(world, "host2")
    each(live, "POST /os-aggregates/{aggregate_id}/images", f"{path}/images",
         lambda version: {"cache": [{"id": IMAGE}]})
    live.call("POST", f"{path}/images", {"cache": [{"id": IMAGE}, {"id": IMAGE}]}, expect=400)
    gone(world, path)


@scenario
def aggregate_reads(world: World) -> None:
    assert world.aggregate
    world.live.shows("os-aggregates", "aggregates-list-get-resp", AGGREGATES)
    world.live.shows("os-aggregates", "aggregates-get-resp", f"{AGGREGATES}/{world.aggregate['id']}")


@scenario
def zones(world: World) -> None:
    world.live.shows("os-availability-zone", "availability-zone-list-resp", "/os-availability-zone")
    world.live.shows("os-availability-zone", "availability-zone-detail-resp", "/os-availability-zone/detail")


@scenario
def hypervisors(world: World) -> None:
    live = world.live

    def paged(base: str, filters: str = "") -> Any:
        return lambda version: base + (f"{PAGED}{filters}" if version >= 33 else "")
    live.shows("os-hypervisors", "hypervisors-list-resp", paged("/os-hypervisors"))
    live.shows("os-hypervisors", "hypervisors-detail-resp", paged("/os-hypervisors/detail"))
    assert world.server
    busy = world.ask("GET", f"/servers/{world.server}")["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    live.shows("os-hypervisors", "hypervisors-detail-with-servers-resp",
               f"/os-hypervisors/detail?with_servers=True&hypervisor_hostname_pattern={busy}")
    live.shows("os-hypervisors", "hypervisors-show-resp", lambda version: world.fill(SHOW, version))
    at = next(str(one["id"]) for one in world.ask("GET", "/os-hypervisors", version=53)["hypervisors"]
              if one["hypervisor_hostname"] == busy)
    live.shows("os-hypervisors", "hypervisors-show-with-servers-resp", f"/os-hypervisors/{at}?with_servers=True")
    live.shows("os-hypervisors", "hypervisors-search-resp", lambda version: (
        "/os-hypervisors/host1/search" if version < 53 else "/os-hypervisors?hypervisor_hostname_pattern=host1"))
    live.shows("os-hypervisors", "hypervisors-with-servers-resp", lambda version: (
        f"/os-hypervisors/{busy}/servers" if version < 53 else
        f"/os-hypervisors?with_servers=True&hypervisor_hostname_pattern={busy}"))
    live.shows("os-hypervisors", "hypervisors-statistics-resp", "/os-hypervisors/statistics")
    live.shows("os-hypervisors", "hypervisors-uptime-resp", lambda version: world.fill(f"{SHOW}/uptime", version))
    live.shows("os-hypervisors", "hypervisors-without-servers-resp", f"/os-hypervisors/{SPARE}/servers")


SHOW = "GET /os-hypervisors/{hypervisor_id}"


@scenario
def hosts_of_old(world: World) -> None:
    live = world.live
    live.shows("os-hosts", "host-get-resp", "/os-hosts/host1")
    Exchange(operation="PUT /os-hosts/{host_name}", path="/os-hosts/host1", folder="os-hosts",
             request="host-put-maintenance-req", answer="host-put-maintenance-resp").run(live)
    for action in ("reboot", "shutdown", "startup"):
        live.shows("os-hosts", f"host-get-{action}", f"/os-hosts/host1/{action}")
    live.call("GET", "/os-hosts/nowhere", None, 42, expect=404)
    live.call("PUT", "/os-hosts/nowhere", {"status": "enable"}, 42, expect=404)


@scenario
def services(world: World) -> None:
    """The words of the path up to 2.52, the service's own resource from 2.53 on."""
    live = world.live

    def path(word: str) -> Any:
        return lambda version: f"/os-services/{world.service(version) if version >= 53 else word}"

    def put_back(answer: Answer, version: int) -> None:
        world.ask("PUT", f"/os-services/{world.service(104)}", {"status": "enabled", "forced_down": False})

    for word, sample in (("disable", "service-disable-put"), ("enable", "service-enable-put"),
                         ("disable-log-reason", "service-disable-log-put"), ("force-down", "service-force-down-put")):
        Exchange(operation="PUT /os-services/{service_id}", path=path(word), folder="os-services",
                 request=f"{sample}-req", answer=f"{sample}-resp", done=put_back,
                 versions=range(53, 105) if word == "force-down" else range(105)).run(live)
    live.call("PUT", "/os-services/force-down", {"host": "host1", "binary": "nova-compute", "forced_down": True}, 11)
    put_back(Answer(200, None, {}), 11)
    live.call("PUT", "/os-services/enable", {"host": "host1", "binary": "nova-compute"}, 53, expect=(400, 404))
    live.call("PUT", "/os-services/enable", {"host": "nowhere", "binary": "nova-compute"}, 52, expect=404)


@scenario
def service_list(world: World) -> None:
    """Two disabled, of the scheduler and of a compute host, with their reasons, as the samples have them."""
    live, compute = world.live, world.service(104)
    world.ask("PUT", f"/os-services/{compute}", {"status": "disabled", "disabled_reason": "test"})
    live.shows("os-services", "services-list-get-resp", "/os-services", versions=range(1, 69))
    world.ask("PUT", f"/os-services/{compute}", {"status": "enabled"})


@scenario
def service_delete(world: World) -> None:
    """Only of daemons that are gone: these never were."""
    live = world.live

    def there(version: int) -> str:
        return f"/os-services/{planted.service(world, f'gone{next(NUMBERS)}', version)}"
    each(live, "DELETE /os-services/{service_id}", there)
    assert world.server
    host = world.ask("GET", f"/servers/{world.server}")["server"]["OS-EXT-SRV-ATTR:host"]
    live.call("DELETE", f"/os-services/{world.service_of('nova-compute', host, 104)}", expect=409)
