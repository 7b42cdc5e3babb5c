"""What hangs on a server: metadata, tags, addresses, actions, password, diagnostics, topology, moves."""

from __future__ import annotations

from typing import Any

from tests.functional.live import planted
from tests.functional.live.caller import LEGACY, MEMBER
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World


@scenario
def metadata(world: World) -> None:
    live, path = world.live, f"/servers/{world.hinted}/metadata"
    world.ask("PUT", path, {"metadata": {"foo": "Foo Value"}})
    live.shows("server-metadata", "server-metadata-all-resp", path)
    live.shows("server-metadata", "server-metadata-resp", f"{path}/foo")
    for method in ("POST", "PUT"):
        Exchange(operation=f"{method} /servers/{{server_id}}/metadata", path=path, folder="server-metadata",
                 request="server-metadata-all-req", answer="server-metadata-all-resp").run(live)
    Exchange(operation="PUT /servers/{server_id}/metadata/{key}", path=f"{path}/foo", folder="server-metadata",
             request="server-metadata-req", answer="server-metadata-resp").run(live)
    live.call("PUT", f"{path}/other", {"meta": {"foo": "x"}}, expect=400)
    live.call("GET", f"{path}/nothing", expect=404)
    live.call("DELETE", f"{path}/nothing", expect=404)
    live.call("PUT", path, {"metadata": {f"k{number}": "v" for number in range(129)}}, expect=403)

    def doomed(version: int) -> str:
        world.ask("POST", path, {"metadata": {"doomed": "x"}})
        return f"{path}/doomed"
    each(live, "DELETE /servers/{server_id}/metadata/{key}", doomed)
    locked = world.locked
    for method, where, body in (("POST", "", {"metadata": {"a": "b"}}), ("PUT", "", {"metadata": {"a": "b"}}),
                                ("PUT", "/a", {"meta": {"a": "b"}}), ("DELETE", "/a", None)):
        live.call(method, f"/servers/{locked}/metadata{where}", body, 104, MEMBER, expect=409)


@scenario
def tags(world: World) -> None:
    live, path = world.live, f"/servers/{world.hinted}/tags"
    each(live, "PUT /servers/{server_id}/tags", path, lambda version: {"tags": ["one", "two"]})
    for version in (26, 104):
        live.call("PUT", f"{path}/one", None, version, expect=204)
        live.call("PUT", f"{path}/three{version}", None, version, expect=201)
        live.call("GET", f"{path}/one", None, version, expect=204)
        live.call("GET", f"{path}/nothing", None, version, expect=404)
        live.call("DELETE", f"{path}/three{version}", None, version, expect=204)
        live.call("DELETE", f"{path}/three{version}", None, version, expect=404)
        live.call("PUT", f"{path}/{'x' * 61}", None, version, expect=400)
        live.call("PUT", path, {"tags": ["a,b"]}, version, expect=400)
        live.call("PUT", path, {"tags": [str(number) for number in range(51)]}, version, expect=400)
    world.ask("PUT", path, {"tags": [str(number) for number in range(50)]})
    live.call("PUT", f"{path}/toomany", None, 104, expect=400)
    each(live, "DELETE /servers/{server_id}/tags", path)


@scenario
def addresses(world: World) -> None:
    live, uuid = world.live, world.server
    live.shows("server-ips", "server-ips-resp", f"/servers/{uuid}/ips")
    live.shows("server-ips", "server-ips-network-resp", f"/servers/{uuid}/ips/private")
    live.call("GET", f"/servers/{uuid}/ips/nothing", expect=404)


def put_back(world: World, uuid: str, settled: str) -> None:
    world.settle(uuid, settled)


@scenario
def power(world: World) -> None:
    """Stop and start in turns: each wants the state that the other leaves."""
    live, uuid = world.live, world.hinted
    for place in ("servers", "os-volumes_boot"):
        template = f"POST /{place}/{{server_id}}/action#"
        Exchange(operation=f"{template}os-stop", path=f"/{place}/{uuid}/action", folder="servers",
                 request="server-action-stop", user=MEMBER, done=lambda answer, version: restart(world, uuid)).run(live)
        Exchange(operation=f"{template}os-start", folder="servers", request="server-action-start", user=MEMBER,
                 path=lambda version, place=place: stopped(world, uuid, place),
                 done=lambda answer, version: put_back(world, uuid, "ACTIVE")).run(live)
        Exchange(operation=f"{template}reboot", path=f"/{place}/{uuid}/action", folder="servers",
                 request="server-action-reboot", user=MEMBER,
                 done=lambda answer, version: put_back(world, uuid, "ACTIVE")).run(live)
    live.call("POST", f"/servers/{uuid}/action", {"os-start": None}, expect=409)
    live.call("POST", f"/servers/{uuid}/action", {"reboot": {"type": "GENTLE"}}, expect=400)
    live.call("POST", f"/servers/{uuid}/action", {"nonsense": None}, expect=400)
    live.call("POST", f"/servers/{uuid}/action", {"os-stop": None, "reboot": {"type": "SOFT"}}, expect=400)


def restart(world: World, uuid: str) -> None:
    world.settle(uuid, "SHUTOFF")
    world.ask("POST", f"/servers/{uuid}/action", {"os-start": None})
    world.settle(uuid)


def stopped(world: World, uuid: str, place: str) -> str:
    world.ask("POST", f"/servers/{uuid}/action", {"os-stop": None})
    world.settle(uuid, "SHUTOFF")
    return f"/{place}/{uuid}/action"


@scenario
def locks(world: World) -> None:
    live, uuid = world.live, world.hinted
    path = f"/servers/{uuid}/action"
    for sample in ("lock-server", "lock-server-with-reason"):
        Exchange(operation="POST /servers/{server_id}/action#lock", path=path, folder="os-lock-server", request=sample,
                 fill=lambda body, version: body if version >= 73 else {"lock": None}, user=MEMBER).run(live)
    Exchange(operation="POST /servers/{server_id}/action#unlock", path=path, folder="os-lock-server",
             request="unlock-server", user=MEMBER).run(live)
    live.call("POST", path, {"lock": {"locked_reason": ""}}, 73, expect=400)


@scenario
def console_output(world: World) -> None:
    Exchange(operation="POST /servers/{server_id}/action#os-getConsoleOutput", path=f"/servers/{world.server}/action",
             folder="os-console-output", request="console-output-post-req", answer="console-output-post-resp",
             body=lambda version: {"os-getConsoleOutput": {"length": 50}}).run(world.live)


@scenario
def instance_actions(world: World) -> None:
    """A server with two actions, as the samples' has: a create and a stop."""
    live = world.live
    uuid = world.stopped
    path = f"/servers/{uuid}/os-instance-actions"
    newest, _ = (one["request_id"] for one in world.ask("GET", path)["instanceActions"])
    for stem in ("instance-action-get-resp", "instance-action-get-non-admin-resp"):
        live.shows("os-instance-actions", stem, f"{path}/{newest}",
                   users=("admin",) if stem == "instance-action-get-resp" else (MEMBER,))
    live.shows("os-instance-actions", "instance-actions-list-resp", path)
    live.shows("os-instance-actions", "instance-actions-list-with-limit-resp", f"{path}?limit=1")
    live.shows("os-instance-actions", "instance-actions-list-with-marker-resp", f"{path}?marker={newest}")
    live.shows("os-instance-actions", "instance-actions-list-with-changes-since",
               f"{path}?changes-since=2000-01-01T00:00:00Z")
    live.shows("os-instance-actions", "instance-actions-list-with-changes-before",
               f"{path}?changes-before=2037-01-01T00:00:00Z")
    live.call("GET", f"{path}/req-nothing", expect=404)
    live.call("GET", f"{path}?marker=req-nothing", expect=400)
    live.call("GET", f"{path}?limit=-1", expect=400)


@scenario
def password(world: World) -> None:
    live, path = world.live, f"/servers/{world.server}/os-server-password"
    planted.password(world, world.server, "xlozO3wLCBRWAa2yDjCCVx8vwNPypnxypmRYDa/zErlQ+EzPe1S/Gz6nfmC52mOlOSCRuUOm")
    live.shows("os-server-password", "get-password-resp", path)
    each(live, "DELETE /servers/{server_id}/os-server-password", path)
    if live.get(path) != {"password": ""}:
        live.problem(f"GET {path}", "expected an empty password after it was deleted")


@scenario
def diagnostics(world: World) -> None:
    live, uuid = world.live, world.server
    live.shows("os-server-diagnostics", "server-diagnostics-get-resp", f"/servers/{uuid}/diagnostics")
    live.call("GET", f"/servers/{uuid}/diagnostics", None, 104, MEMBER, expect=403)


@scenario
def topology(world: World) -> None:
    """Of a server whose flavor asks for two NUMA nodes and pinned processors, where the host has them."""
    live, uuid = world.live, world.placed
    live.shows("os-server-topology", "servers-topology-resp", f"/servers/{uuid}/topology", users=("admin",))
    live.shows("os-server-topology", "servers-topology-resp-user", f"/servers/{uuid}/topology", users=(MEMBER,))


@scenario
def moves(world: World) -> None:
    """One is under way; those that are over are planted, for their times."""
    live, uuid, key = world.live, world.migrating, world.migration
    listed = "/os-migrations"
    live.shows("os-migrations", "migrations-get", listed)
    newest = world.ask("GET", listed)["migrations"][0]["uuid"]
    live.shows("os-migrations", "migrations-get-with-limit", f"{listed}?limit=1")
    live.shows("os-migrations", "migrations-get-with-marker", f"{listed}?marker={newest}&status=running")
    live.shows("os-migrations", "migrations-get-with-changes-since",
               f"{listed}?changes-since={planted.LONG_AGO + planted.SECOND:%Y-%m-%dT%H:%M:%S}&migration_type=resize")
    live.shows("os-migrations", "migrations-get-with-changes-before",
               f"{listed}?changes-before={planted.LATER:%Y-%m-%dT%H:%M:%S}&status=running")
    live.shows("os-migrations", "migrations-get-with-user-or-project-id",
               f"{listed}?migration_type=live-migration&user_id={MEMBER}")
    live.shows("server-migrations", "migrations-index", f"/servers/{uuid}/migrations")
    live.shows("server-migrations", "migrations-get", f"/servers/{uuid}/migrations/{key}")
    live.call("GET", f"/servers/{uuid}/migrations/999999", expect=404)
    live.call("GET", f"/servers/{world.server}/migrations/{key}", expect=404)
    live.call("GET", f"{listed}?marker=nothing", expect=400)
    live.call("GET", f"{listed}?stranger=1", None, 59, expect=400)


@scenario
def moves_told_to_end(world: World) -> None:
    """Of a server that is not on its way."""
    live, path = world.live, f"/servers/{world.server}/migrations/{world.migration}"
    live.call("DELETE", path, None, 104, MEMBER, expect=(403, 409))
    live.call("DELETE", path, None, 104, expect=409)
    live.call("POST", f"{path}/action", {"force_complete": None}, 104, expect=409)


@scenario
def reset_state(world: World) -> None:
    Exchange(operation="POST /servers/{server_id}/action#os-resetState", path=f"/servers/{world.stopped}/action",
             folder="os-admin-actions", request="admin-actions-reset-server-state").run(world.live)
    world.live.call("POST", f"/servers/{world.stopped}/action", {"os-resetState": {"state": "paused"}}, expect=400)


@scenario
def events(world: World) -> None:
    live, path = world.live, "/os-server-external-events"

    def known(body: Any, version: int) -> Any:
        body["events"][0] |= {"server_uuid": world.server, "name": "network-changed"}
        return body
    Exchange(operation="POST /os-server-external-events", path=path, folder="os-server-external-events",
             request="event-create-req", answer="event-create-resp", fill=known).run(live)
    lost = {"name": "network-changed", "server_uuid": "00000000-0000-4000-8000-000000000000"}
    for version in (1, 104, LEGACY):
        live.call("POST", path, {"events": [lost, lost | {"server_uuid": world.server}]}, version, expect=207)
        live.call("POST", path, {"events": [lost | {"name": "nonsense"}]}, version, expect=400)
    live.call("POST", path, {"events": [lost]}, 104, MEMBER, expect=403)
