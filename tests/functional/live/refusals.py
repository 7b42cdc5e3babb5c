"""Refusals that need a state of their own: quotas used up, locks, servers without a host, hosts that are down."""

from __future__ import annotations

from tests.functional.live.caller import MEMBER, PROJECT
from tests.functional.live.scenario import scenario
from tests.functional.live.world import KEY, SPARE, World

BOOT, QUOTA = "/os-volumes_boot", f"/os-quota-sets/{PROJECT}"


@scenario
def quotas_used_up(world: World) -> None:
    live = world.live
    world.ask("PUT", QUOTA, {"quota_set": {"key_pairs": 0, "server_groups": 0, "instances": 0, "force": True}})
    try:
        live.call("POST", "/os-keypairs", {"keypair": {"name": "more", "public_key": KEY}}, 104, MEMBER, expect=403)
        live.call("POST", "/os-server-groups", {"server_group": {"name": "more", "policy": "affinity"}}, 104, MEMBER,
                  expect=403)
        for path in ("/servers", BOOT):
            server = {"name": "more", "flavorRef": "1", "imageRef": world.image, "networks": "auto"}
            live.call("POST", path, {"server": server}, 102, MEMBER, expect=403)
    finally:
        world.ask("DELETE", QUOTA)


@scenario
def metadata_used_up(world: World) -> None:
    live, path = world.live, f"/servers/{world.hinted}/metadata"
    world.ask("PUT", path, {"metadata": {f"k{number}": "v" for number in range(128)}})
    live.call("POST", path, {"metadata": {"more": "v"}}, expect=403)
    live.call("PUT", f"{path}/more", {"meta": {"more": "v"}}, expect=403)
    world.ask("PUT", path, {"metadata": {"My Server Name": "Apache1"}})


@scenario
def locked_servers_at_their_old_place(world: World) -> None:
    live, path = world.live, f"{BOOT}/{world.locked}"
    for body in ({"os-stop": None}, {"reboot": {"type": "SOFT"}}, {"os-start": None}):
        live.call("POST", f"{path}/action", body, 102, MEMBER, expect=409)
    live.call("DELETE", path, None, 102, MEMBER, expect=409)
    for where in (BOOT, f"{BOOT}/detail", "/servers/detail"):
        live.call("GET", f"{where}?all_tenants=1", None, 102, MEMBER, expect=403)


@scenario
def servers_without_a_host(world: World) -> None:
    """One that no host could take."""
    live = world.live
    world.ask("POST", "/flavors", {"flavor": {"name": "huge", "id": "huge", "ram": 999999999, "vcpus": 1, "disk": 1}})
    uuid = world.settle(world.boot("homeless", {"flavorRef": "huge"}), "ERROR")
    path = f"/servers/{uuid}"
    live.call("POST", f"{path}/action", {"os-getConsoleOutput": {}}, expect=409)
    live.call("GET", f"{path}/diagnostics", expect=409)
    live.call("PUT", f"{path}/tags", {"tags": ["a"]}, expect=409)
    live.call("PUT", f"{path}/tags/a", None, expect=409)
    live.call("DELETE", f"{path}/tags", expect=409)
    live.call("DELETE", f"{path}/tags/a", expect=409)
    shown = live.get(path)["server"]
    if shown["status"] != "ERROR" or "fault" not in shown or shown["hostId"] != "":
        live.problem(f"GET {path}", f"expected ERROR, a fault and no host, got {shown}")
    world.remove(uuid)


@scenario
def hosts_that_are_down(world: World) -> None:
    live = world.live
    service = f"/os-services/{world.service_of('nova-compute', SPARE, 104)}"
    found = world.ask("GET", "/os-hypervisors/detail", version=53)["hypervisors"]
    spare = next(one["id"] for one in found if one["service"]["host"] == SPARE)
    world.ask("PUT", service, {"forced_down": True})
    try:
        live.call("GET", f"/os-hypervisors/{spare}/uptime", None, 87, expect=400)
    finally:
        world.ask("PUT", service, {"forced_down": False})
    for where in ("/os-hypervisors", "/os-hypervisors/detail"):
        live.call("GET", f"{where}?hypervisor_hostname_pattern=nothing", expect=404)
    live.call("DELETE", "/os-services/no-uuid", expect=400)
    for where in ("/images", "/images/detail"):
        live.call("GET", f"{where}?limit=-1", None, 35, expect=400)


@scenario
def zones_that_are_asked_for(world: World) -> None:
    """A host does not leave the zone that a server on it asked for."""
    assert world.aggregate
    uuid = world.settle(world.boot("londoner", {"availability_zone": "london"}))
    world.live.call("POST", f"/os-aggregates/{world.aggregate['id']}/action", {"remove_host": {"host": "host2"}},
                    expect=409)
    world.remove(uuid)
    world.gone(uuid)
