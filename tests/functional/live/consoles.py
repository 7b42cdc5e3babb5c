"""Consoles: every type at each of its versions, what a token stands for, and what ends it."""

from __future__ import annotations

from tests.functional.backends import wait_until
from tests.functional.live.caller import LEGACY, MEMBER
from tests.functional.live.scenario import Exchange, scenario
from tests.functional.live.world import World

ACTION = "POST /servers/{server_id}/action#"
CREATE = "POST /servers/{server_id}/remote-consoles"
SHOW = "/os-console-auth-tokens/"
#: (protocol, type, first version)
TYPES = (("vnc", "novnc", 6), ("vnc", "xvpvnc", 6), ("spice", "spice-html5", 6), ("serial", "serial", 6),
         ("mks", "webmks", 8), ("spice", "spice-direct", 99))


def path_of(world: World) -> str:
    return f"/servers/{world.server}/action"


def remote(protocol: str, type: str) -> dict[str, dict[str, str]]:
    return {"remote_console": {"protocol": protocol, "type": type}}


@scenario
def old_actions(world: World) -> None:
    for action, type, request, answer in (
            ("os-getVNCConsole", "novnc", "", "get-vnc-console-post-resp"),
            ("os-getSPICEConsole", "spice-html5", "get-spice-console-post-req", "get-spice-console-post-resp"),
            ("os-getSerialConsole", "serial", "get-serial-console-post-req", "get-serial-console-post-resp")):
        body = None if request else lambda version, action=action, type=type: {action: {"type": type}}
        Exchange(operation=ACTION + action, path=path_of(world), folder="os-remote-consoles", request=request,
                 answer=answer, body=body, user=MEMBER).run(world.live)
        for version in (LEGACY, 1, 5):
            world.live.call("POST", path_of(world), {action: {"type": "teletype"}}, version, MEMBER, expect=400)
    world.live.call("POST", path_of(world), {"os-getVNCConsole": {"type": "xvpvnc"}}, 1, MEMBER)


@scenario
def rdp(world: World) -> None:
    """Always refused, whatever is asked about."""
    for version in (LEGACY, 1, 5):
        world.live.call("POST", path_of(world), {"os-getRDPConsole": {"type": "rdp-html5"}}, version, expect=400)
    for version in (6, 104):
        world.live.call("POST", f"/servers/{world.server}/remote-consoles", remote("rdp", "rdp-html5"), version,
                        expect=400)


@scenario
def remote_consoles(world: World) -> None:
    live, path = world.live, f"/servers/{world.server}/remote-consoles"
    for request, answer in (("create-vnc-console-req", "create-vnc-console-resp"),
                            ("create-mks-console-req", "create-mks-console-resp"),
                            ("create-spice-direct-console-req", "")):
        first = {"create-mks-console-req": 8, "create-spice-direct-console-req": 99}.get(request, 6)
        Exchange(operation=CREATE, path=path, folder="os-remote-consoles", request=request, answer=answer, user=MEMBER,
                 versions=range(first, 105)).run(live)
    Exchange(operation=CREATE, path=path, folder="os-console-auth-tokens", request="create-serial-console-req",
             user=MEMBER).run(live)
    for protocol, type, since in TYPES:
        for version in (since - 1, since, 104):
            found = live.call("POST", path, remote(protocol, type), version, MEMBER,
                              expect=() if version >= since else (404 if since == 6 else 400)).body
            if version >= since and found["remote_console"]["url"].count("token") != 1:
                live.problem(f"{type} at 2.{version}", f"expected an address with a token, got {found}")
    live.call("POST", path, remote("vnc", "serial"), 104, MEMBER, expect=400)


@scenario
def tokens(world: World) -> None:
    live = world.live
    live.shows("os-console-auth-tokens", "get-console-connect-info-get-resp", f"{SHOW}{world.console_token}",
               users=("admin",))
    for version in (LEGACY, 1, 30):
        live.call("GET", f"{SHOW}{world.console_token}", None, version, expect=400)
    for version in (31, 98, 99):
        found = live.get(f"{SHOW}{world.console_token}", version)["console"]
        if found["instance_uuid"] != world.server or ("tls_port" in found) != (version >= 99):
            live.problem(f"token at 2.{version}", f"expected the standing server's, got {found}")
    live.call("GET", f"{SHOW}nothing", expect=404)


@scenario
def consoles_that_are_not_ready(world: World) -> None:
    """Of a server that is off, or on its way: 409. What ended a console ends its token."""
    live = world.live
    uuid = world.settle(world.boot("watched"))
    world.doomed.append(uuid)
    path = f"/servers/{uuid}/remote-consoles"
    url = live.call("POST", path, remote("serial", "serial"), 104, MEMBER).body["remote_console"]["url"]
    token = url.rpartition("token=")[2]
    live.call("GET", SHOW + token)
    world.ask("POST", f"/servers/{uuid}/action", {"os-stop": None})
    world.settle(uuid, "SHUTOFF")
    live.call("GET", SHOW + token, expect=404)
    live.call("POST", path, remote("serial", "serial"), 104, MEMBER, expect=409)
    live.call("POST", f"/servers/{uuid}/action", {"os-getVNCConsole": {"type": "novnc"}}, 1, MEMBER, expect=409)
    for action in ("os-getSPICEConsole", "os-getSerialConsole"):
        type = "serial" if action == "os-getSerialConsole" else "spice-html5"
        live.call("POST", f"/servers/{uuid}/action", {action: {"type": type}}, 5, MEMBER, expect=409)
    live.call("POST", f"/servers/{world.migrating}/remote-consoles", remote("vnc", "novnc"), expect=409)
    world.sweep()


@scenario
def no_log_has_a_token(world: World) -> None:
    """In none of the daemons' logs, which are written at DEBUG here; what is kept of it is."""
    opened = world.ask("POST", f"/servers/{world.server}/remote-consoles", remote("vnc", "novnc"), user=MEMBER)
    token = opened["remote_console"]["url"].rpartition("token%3D")[2]
    world.ask("GET", SHOW + token)
    logs = world.cloud.root / "log"
    wait_until("the request is logged", lambda: SHOW + "***" in (logs / "api.log").read_text(), 5, 0.1)
    for log in logs.glob("*.log"):
        for secret in (token, world.console_token):
            if secret in log.read_text():
                world.live.problem(log.name, "has a console's token in it")
