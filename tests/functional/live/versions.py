"""Which versions there are, the extensions of old, and what was removed for good."""

from __future__ import annotations

from nova.api import legacy_networks, legacy_v2
from nova.legacy.api_extras import EXTRAS
from tests.contract import rows
from tests.functional.live import normal
from tests.functional.live.caller import ADMIN, LEGACY, PROJECT, content, published
from tests.functional.live.scenario import scenario
from tests.functional.live.world import World


@scenario
def documents(world: World) -> None:
    """They need no token, and the root has no version."""
    live = world.live
    for sample, path, codes in (("versions-get-resp", "/", (200,)), ("v2-version-get-resp", "/v2/", (200,)),
                                ("v21-version-get-resp", "/v2.1/", (200,))):
        raw = live.session.get(f"{live.url}{path}")
        name = published()["versions"][sample][1]
        live.tried.add(name)
        found = normal.differences(content(name), raw.json())
        if raw.status_code not in codes or found:
            live.problem(f"GET {path}", f"sample {name}: {raw.status_code} {found}")
        else:
            live.matched.add(name)
    anything = live.session.get(f"{live.url}/v3/anything")
    if anything.status_code != 300 or "choices" not in anything.json():
        live.problem("GET /v3/anything", f"expected 300 with choices, got {anything.status_code} {anything.text}")


@scenario
def extensions(world: World) -> None:
    live = world.live
    live.shows("extension-info", "extensions-list-resp-v21-compatible", "/extensions")
    live.shows("extension-info", "extensions-get-resp", "/extensions/os-agents")
    live.call("GET", "/extensions/nothing", expect=404)
    published_names = {one["alias"] for one in content(
        "extension-info/extensions-list-resp-v21-compatible.json")["extensions"]}
    ours = {one["alias"] for one in live.get("/extensions")["extensions"]}
    if ours != published_names:
        live.problem("GET /extensions",
                     f"missing {sorted(published_names - ours)}, besides {sorted(ours - published_names)}")


@scenario
def gone_for_good(world: World) -> None:
    """410 at every version, whatever is sent; the published requests too. What this cloud's nova-network has is 404
    above the version that took it away. What works below /v2 is gone from /v2.1 alone."""
    live = world.live
    served = {route.id for route in (*legacy_networks.ROUTES, *EXTRAS.networks)}
    below_v2 = {route.id for route in legacy_v2.ROUTES}
    for id, entry in rows.operations().items():
        if entry["status"] != "gone":
            continue
        path = world.fill_any(id)
        body = {id.partition("#")[2]: None} if "#" in id else {} if entry["method"] in ("POST", "PUT") else None
        for version in (44, 104) if id in served else (1, 43, 104) if id in below_v2 else (0, 1, 43, 104):
            live.call(entry["method"], path, body, version, expect=404 if id in served else 410)


@scenario
def certificates_below_v2(world: World) -> None:
    """They need nova-cert, which this cloud does not have. The only one that can be shown is the root's."""
    world.live.call("POST", "/os-certificates", None, LEGACY, expect=503)
    world.live.call("GET", "/os-certificates/1", None, LEGACY, expect=501)


@scenario
def paths_without_a_project(world: World) -> None:
    """The project may be left out of the path, and is of the links then; another than the token's is refused."""
    live = world.live
    headers = {"X-Auth-Token": f"{ADMIN}:{PROJECT}"}
    bare = live.session.get(f"{live.url}/v2.1/flavors/1", headers=headers)
    if not bare.ok or any(PROJECT in one["href"] for one in bare.json()["flavor"]["links"]):
        live.problem("GET /v2.1/flavors/1", f"expected links without a project, got {bare.text}")
    for project, code in (("0123456789abcdef", 400), ("NOT-A-PROJECT", 404)):
        got = live.session.get(f"{live.url}/v2.1/{project}/flavors/1", headers=headers).status_code
        if got != code:
            live.problem(f"GET /v2.1/{project}/flavors/1", f"expected {code}, got {got}")


@scenario
def versions_out_of_range(world: World) -> None:
    live = world.live
    live.call("GET", "/flavors/1", None, 105, expect=406)
    for text, code in (("2.105", 406), ("3.0", 406), ("two", 400), ("2.1.1", 400), ("latest", 200)):
        raw = live.session.get(f"{live.url}/v2.1/flavors/1", headers={
            "X-Auth-Token": f"{ADMIN}:{PROJECT}", "OpenStack-API-Version": f"compute {text}"})
        if raw.status_code != code:
            live.problem(f"GET /v2.1/flavors/1 at {text}", f"expected {code}, got {raw.status_code}")
