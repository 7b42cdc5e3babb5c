"""Moves of servers between hosts: resize, migration, live migration, evacuation; and live ones told to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.functional.backends import wait_until
from tests.functional.live.caller import ADMIN, MEMBER, Answer, content, samples
from tests.functional.live.life import PLACES, act, action, put_back
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import SPARE, World

GROWN = "grown"
STARTED_S = 20.0
SETTLED = "VERIFY_RESIZE"


def mover(world: World) -> str:
    """A server that may go to any host."""
    return world.once("mover", lambda: world.settle(world.boot("mover")))


def host_of(world: World, uuid: str) -> str:
    return str(world.ask("GET", f"/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"])


def elsewhere(world: World, uuid: str) -> str:
    """A host that is up and not the server's."""
    return "host2" if host_of(world, uuid) == "host1" else "host1"


# -- resize


def other_flavor(world: World, uuid: str) -> str:
    """A flavor that the server does not have, with a disk of the same size."""
    def make() -> str:
        plain = world.ask("GET", "/flavors/1")["flavor"]
        world.ask("POST", "/flavors", {"flavor": {"name": "m1.grown", "id": GROWN, "ram": plain["ram"] * 2, "vcpus": 1,
                                                  "disk": plain["disk"]}})
        return GROWN
    world.once(GROWN, make)
    held = world.ask("GET", f"/servers/{uuid}", version=46)["server"]["flavor"]["id"]
    return GROWN if held == "1" else "1"


def resized(world: World, uuid: str, place: str) -> Callable[[int], str]:
    def run(version: int) -> str:
        act(world, uuid, {"resize": {"flavorRef": other_flavor(world, uuid)}}, SETTLED)
        return f"/{place}/{uuid}/action"
    return run


@scenario
def resize(world: World) -> None:
    live, uuid = world.live, mover(world)

    def reverted(answer: Answer, version: int) -> None:
        world.settle(uuid, SETTLED)
        act(world, uuid, {"revertResize": None})
    for place in PLACES:
        each(live, action("resize", place), f"/{place}/{uuid}/action",
             lambda version: {"resize": {"flavorRef": other_flavor(world, uuid)}}, reverted, user=MEMBER)
        each(live, action("confirmResize", place), resized(world, uuid, place),
             lambda version: {"confirmResize": None}, lambda answer, version: put_back(world, uuid), user=MEMBER)
        Exchange(operation=action("revertResize", place), path=resized(world, uuid, place), folder="servers",
                 request="server-action-revert-resize", user=MEMBER,
                 done=lambda answer, version: put_back(world, uuid)).run(live)


@scenario
def resize_refusals(world: World) -> None:
    live, uuid = world.live, mover(world)
    held = "1" if other_flavor(world, uuid) == GROWN else GROWN
    world.ask("POST", "/flavors", {"flavor": {"name": "m1.shrunk", "id": "shrunk", "ram": 64, "vcpus": 1, "disk": 0}})
    for place in PLACES:
        path = f"/{place}/{uuid}/action"
        for flavor in (held, "nothing", "shrunk"):
            live.call("POST", path, {"resize": {"flavorRef": flavor}}, 102, expect=400)
        for body in ({"confirmResize": None}, {"revertResize": None}):
            live.call("POST", path, body, 102, expect=409)


# -- cold


@scenario
def migrate(world: World) -> None:
    live, uuid = world.live, mover(world)

    def away(body: Any, version: int) -> Any:
        if body["migrate"]:
            body["migrate"]["host"] = elsewhere(world, uuid)
        return body

    def confirmed(answer: Answer, version: int) -> None:
        world.settle(uuid, SETTLED)
        act(world, uuid, {"confirmResize": None})
    for request, versions in (("migrate-server", range(105)), ("migrate-server-null", range(56, 57))):
        Exchange(operation=action("migrate"), path=f"/servers/{uuid}/action", folder="os-migrate-server",
                 request=request, fill=away, done=confirmed, versions=versions).run(live)
    for host in (host_of(world, uuid), "nowhere"):
        live.call("POST", f"/servers/{uuid}/action", {"migrate": {"host": host}}, expect=400)
    live.call("POST", f"/servers/{uuid}/action", {"migrate": None}, 104, MEMBER, expect=403)


# -- live


def away_alive(world: World, uuid: str) -> Callable[[Any, int], Any]:
    """A sample's request, with a host of ours in it and the fields of its version."""
    def filled(body: Any, version: int) -> Any:
        asked = body["os-migrateLive"]
        if asked["host"]:
            asked["host"] = elsewhere(world, uuid)
        if version < 25:
            return {"os-migrateLive": asked | {"block_migration": True, "disk_over_commit": False}}
        asked.pop("disk_over_commit", None)
        return {"os-migrateLive": asked | {"block_migration": "auto"}}
    return filled


@scenario
def live_migrate(world: World) -> None:
    live, uuid = world.live, mover(world)
    path, fill = f"/servers/{uuid}/action", away_alive(world, uuid)
    hosts: list[str] = []

    def arrived(answer: Answer, version: int) -> None:
        world.settle(uuid)
        hosts.append(host_of(world, uuid))
        if hosts[-2:-1] == hosts[-1:]:
            live.problem(f"live migration at 2.{version}", f"the server is still on {hosts[-1]}")
    Exchange(operation=action("os-migrateLive"), path=path, folder="os-migrate-server", request="live-migrate-server",
             fill=fill, done=arrived).run(live)
    for version, sample in samples("server-migrations", "live-migrate-server"):
        answer = live.call("POST", path, fill(content(sample), version), version)
        live.sent(sample, answer)
        arrived(answer, version)
    for version in (30, 67):
        forced = {"host": elsewhere(world, uuid), "block_migration": "auto", "force": True}
        arrived(live.call("POST", path, {"os-migrateLive": forced}, version), version)
    for host in (host_of(world, uuid), "nowhere"):
        live.call("POST", path, {"os-migrateLive": {"host": host, "block_migration": "auto"}}, expect=400)
    live.call("POST", path, {"os-migrateLive": {"host": None, "block_migration": "auto"}}, 104, MEMBER, expect=403)


def under_way(world: World, uuid: str) -> str:
    """A live migration is begun; the path of it, once it runs."""
    world.ask("POST", f"/servers/{uuid}/action", {"os-migrateLive": {"host": None, "block_migration": "auto"}})
    found: list[dict[str, Any]] = []

    def runs() -> bool:
        found[:] = world.ask("GET", f"/servers/{uuid}/migrations")["migrations"]
        return any(move["status"] == "running" for move in found)
    wait_until(f"the migration of {uuid} runs", runs, STARTED_S, 0.02)
    return f"/servers/{uuid}/migrations/{found[0]['id']}"


@scenario
def live_migrations_told_to_end(world: World) -> None:
    live, uuid = world.live, mover(world)
    began_at: list[str] = []

    def begin(version: int) -> str:
        began_at.append(host_of(world, uuid))
        return under_way(world, uuid)

    def ended(goes: bool) -> Callable[[Answer, int], None]:
        def done(answer: Answer, version: int) -> None:
            world.settle(uuid)
            if (host_of(world, uuid) != began_at[-1]) != goes:
                live.problem(f"{answer.operation} at 2.{version}",
                             f"the server was on {began_at[-1]} and is on {host_of(world, uuid)}")
        return done
    each(live, "DELETE /servers/{server_id}/migrations/{migration_id}", begin, done=ended(goes=False))
    Exchange(operation="POST /servers/{server_id}/migrations/{migration_id}/action#force_complete",
             path=lambda version: f"{begin(version)}/action", folder="server-migrations", request="force_complete",
             done=ended(goes=True)).run(live)


# -- from a host that is down


@scenario
def evacuate(world: World) -> None:
    """From the spare host, which is said to be down while its servers leave, and clears up after them."""
    live = world.live
    service = f"/os-services/{world.service_of('nova-compute', SPARE, 104)}"
    world.ask("PUT", service, {"status": "enabled"})
    refugees: list[str] = []

    def stranded(version: int) -> str:
        world.ask("PUT", service, {"forced_down": False})
        wait_until(f"{SPARE} takes servers", lambda: _boots_there(world, refugees), STARTED_S * 2, 0.5)
        world.ask("PUT", service, {"forced_down": True})
        return f"/servers/{refugees[-1]}/action"

    def safe(answer: Answer, version: int) -> None:
        wanted = ("SHUTOFF",) if version >= 95 else ("ACTIVE",)
        world.settle(refugees[-1], *wanted)
        if host_of(world, refugees[-1]) == SPARE:
            live.problem(f"evacuate at 2.{version}", f"{refugees[-1]} is still on {SPARE}")
        world.doomed.append(refugees[-1])

    def fitting(body: Any, version: int) -> Any:
        asked = body["evacuate"]
        if "host" in asked:
            asked["host"] = "host1"
        asked.pop("onSharedStorage", None)
        return {"evacuate": asked | ({"onSharedStorage": "False"} if version < 14 else {})}
    try:
        Exchange(operation=action("evacuate"), path=stranded, folder="os-evacuate", request="server-evacuate-req",
                 fill=fitting, done=safe).run(live)
        for versions in (range(1, 2), range(14, 15), range(29, 30), range(95, 96)):
            Exchange(operation=action("evacuate"), path=stranded, folder="os-evacuate", fill=fitting, done=safe,
                     request="server-evacuate-find-host-req", answer="server-evacuate-find-host-resp",
                     versions=versions).run(live)
        path = stranded(104)
        live.call("POST", path, {"evacuate": {"host": "nowhere"}}, expect=404)
        live.call("POST", path, {"evacuate": {"host": SPARE}}, expect=400)
        live.call("POST", path, {"evacuate": {}}, 104, MEMBER, expect=(403, 404))
        world.ask("PUT", service, {"forced_down": False})
        live.call("POST", path, {"evacuate": {}}, expect=400)
        world.doomed.append(refugees[-1])
    finally:
        world.ask("PUT", service, {"forced_down": False})
        world.ask("PUT", service, {"status": "disabled", "disabled_reason": "a spare"})
    world.sweep()


def _boots_there(world: World, refugees: list[str]) -> bool:
    """One more server on the spare host; not where the scheduler does not know yet that it is up."""
    uuid = world.boot("refugee", {"host": SPARE}, user=ADMIN)
    world.settle(uuid, "ACTIVE", "ERROR")
    if world.ask("GET", f"/servers/{uuid}")["server"]["status"] == "ERROR":
        world.remove(uuid)
        return False
    refugees.append(uuid)
    return True
