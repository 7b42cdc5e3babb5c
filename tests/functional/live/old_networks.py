"""What only nova-network has, at the versions that had it: operations that the contract calls gone. Success is what
``legacy_networks.ROUTES`` says it is, refusals are those of the notes on nova-network, answers are like the samples.

Their cloud is one of VlanManager, where networks are projects' own; another than that of the other scenarios.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tests.functional.client import IMAGE
from tests.functional.live.caller import ADMIN, MEMBER, Answer
from tests.functional.live.scenario import Exchange, Scenario, each
from tests.functional.live.world import World

OLD_SCENARIOS: dict[str, Scenario] = {}
NETWORKS, OWN, FIXED = "/os-networks", "/os-tenant-networks", "/os-fixed-ips"
BULK, DNS, PIPES = "/os-floating-ips-bulk", "/os-floating-ip-dns", "/os-cloudpipe"
RULES = "/os-security-group-default-rules"
NOWHERE = "00000000-0000-4000-8000-00000000ffff"
LAST = 35
NUMBERS = itertools.count(1)
OPTIONS = {"network_manager": "nova.network.manager.VlanManager", "vlan_interface": "eth1", "vpn_image_id": IMAGE,
           "floating_ip_dns_manager": "nova.network.minidns.MiniDNS"}


def old(function: Scenario) -> Scenario:
    OLD_SCENARIOS[function.__name__] = function
    return function


# -- what they act on

def network(world: World, **more: Any) -> str:
    """The id of a network that is nobody's, or ``more["project_id"]``'s."""
    body = {"label": "old", "cidr": f"10.30.{next(NUMBERS)}.0/24", **more}
    return str(world.ask("POST", NETWORKS, {"network": body}, version=LAST)["network"]["id"])


def drop(world: World, uuid: str) -> None:
    world.ask("POST", f"{NETWORKS}/{uuid}/action", {"disassociate": None}, version=LAST)
    world.ask("DELETE", f"{NETWORKS}/{uuid}", version=LAST)


def shown(world: World, uuid: str) -> dict[str, Any]:
    return dict(world.ask("GET", f"{NETWORKS}/{uuid}", version=LAST)["network"])


def server(world: World) -> str:
    """A running server on the project's network, with an address."""
    return str(world.once("old server", lambda: world.settle(world.boot("old"))))


def address(world: World) -> str:
    ips = world.ask("GET", f"/servers/{server(world)}/ips")["addresses"]
    return str(next(iter(ips.values()))[0]["addr"])


def expect_refusals(world: World, *calls: tuple[str, str, Any, int], user: str = ADMIN) -> None:
    """(method, path, body, code) at the last version and at the first."""
    for method, path, body, code in calls:
        for version in (1, LAST):
            world.live.call(method, path, body, version, user, expect=code)


def changes(world: World, operation: str, body: Any, kept: Callable[[dict[str, Any]], bool], request: str = "") -> None:
    """An action on a network that is a project's and has a host; ``kept``: what is true of the network then."""
    made: list[str] = []

    def fresh(version: int) -> str:
        made.append(network(world, project_id="somebody"))
        world.ask("POST", f"{NETWORKS}/{made[-1]}/action", {"associate_host": "a-host"}, version=LAST)
        return f"{NETWORKS}/{made[-1]}/action"

    def done(answer: Answer, version: int) -> None:
        if not kept(shown(world, made[-1])):
            world.live.problem(operation, f"did not do it: {shown(world, made[-1])}")
        drop(world, made[-1])
    id = f"POST /os-networks/{{network_id}}/action#{operation}"
    if request:
        Exchange(operation=id, path=fresh, folder="os-networks-associate", request=request, done=done).run(world.live)
    else:
        each(world.live, id, fresh, lambda version: body, done)
    world.live.call("POST", f"{NETWORKS}/{NOWHERE}/action", body, LAST, expect=404)


# -- os-networks, os-networks-associate, os-tenant-networks

@old
def networks(world: World) -> None:
    live = world.live

    def gone(answer: Answer, version: int) -> None:
        world.ask("DELETE", f"{NETWORKS}/{answer.body['network']['id']}", version=LAST)
    Exchange(operation="POST /os-networks", path=NETWORKS, folder="os-networks", request="network-create-req",
             done=gone).run(live)
    each(live, "DELETE /os-networks/{network_id}", lambda version: f"{NETWORKS}/{network(world)}")
    kept = network(world)
    there = shown(world, kept)["cidr"]
    expect_refusals(
        world, ("POST", NETWORKS, {"network": {"label": "again", "cidr": there}}, 409),
        ("POST", NETWORKS, {"network": {"label": "bad", "cidr": "10.0.0"}}, 400),
        ("POST", NETWORKS, {"network": {"cidr": "10.31.0.0/24"}}, 400), ("DELETE", f"{NETWORKS}/{NOWHERE}", None, 404))
    expect_refusals(world, ("POST", NETWORKS, {"network": {"label": "x", "cidr": "10.31.0.0/24"}}, 403),
                    ("DELETE", f"{NETWORKS}/{kept}", None, 403), user=MEMBER)
    live.call("POST", NETWORKS, {"network": {"label": "late", "cidr": "10.31.0.0/24"}}, LAST + 1, expect=404)
    drop(world, kept)


@old
def networks_added(world: World) -> None:
    live, made = world.live, []

    def fresh(body: Any, version: int) -> Any:
        made.append(network(world))
        return {"id": made[-1]}

    def done(answer: Answer, version: int) -> None:
        if not shown(world, made[-1])["project_id"]:
            live.problem("POST /os-networks/add", "the network is still nobody's")
        drop(world, made[-1])
    Exchange(operation="POST /os-networks/add", path=f"{NETWORKS}/add", folder="os-networks",
             request="network-add-req", fill=fresh, done=done).run(live)
    expect_refusals(world, ("POST", f"{NETWORKS}/add", {"id": NOWHERE}, 400), ("POST", f"{NETWORKS}/add", {}, 400))
    live.call("POST", f"{NETWORKS}/add", {}, 0, expect=422)


@old
def networks_associated(world: World) -> None:
    changes(world, "associate_host", {"associate_host": "testHost"}, lambda one: one["host"] == "testHost",
            "network-associate-host-req")
    changes(world, "disassociate", {"disassociate": None}, lambda one: not one["host"] and not one["project_id"],
            "network-disassociate-req")
    changes(world, "disassociate_host", {"disassociate_host": None},
            lambda one: not one["host"] and one["project_id"] == "somebody")
    changes(world, "disassociate_project", {"disassociate_project": None},
            lambda one: one["host"] == "a-host" and not one["project_id"])


@old
def tenant_networks(world: World) -> None:
    live = world.live

    def gone(answer: Answer, version: int) -> None:
        world.ask("DELETE", f"{OWN}/{answer.body['network']['id']}", version=LAST)
    Exchange(operation="POST /os-tenant-networks", path=OWN, folder="os-tenant-networks", request="networks-post-req",
             done=gone).run(live)

    def mine(version: int) -> str:
        body = {"network": {"label": "mine", "cidr": f"10.32.{next(NUMBERS)}.0/24"}}
        return f"{OWN}/{world.ask('POST', OWN, body, version=LAST)['network']['id']}"
    each(live, "DELETE /os-tenant-networks/{network_id}", mine)
    live.shows("os-tenant-networks", "networks-post-res", mine(LAST))
    live.shows("os-tenant-networks", "networks-list-res", OWN)
    expect_refusals(world, ("POST", OWN, {"network": {"label": "none"}}, 400),
                    ("DELETE", f"{OWN}/{NOWHERE}", None, 404))


# -- addresses and interfaces

@old
def fixed_addresses(world: World) -> None:
    live, taken = world.live, address(world)
    live.shows("os-fixed-ips", "fixedips-get-resp", f"{FIXED}/{taken}", users=(ADMIN,))
    each(live, "GET /os-fixed-ips/{fixed_ip}", f"{FIXED}/{taken}")
    free = shown(world, network(world))["cidr"].replace(".0/24", ".77")

    def put_back(answer: Answer, version: int) -> None:
        if not world.ask("GET", f"{FIXED}/{free}", version=LAST)["fixed_ip"]["reserved"]:
            live.problem("reserve", f"{free} is not reserved")
        world.ask("POST", f"{FIXED}/{free}/action", {"unreserve": None}, version=LAST)
    Exchange(operation="POST /os-fixed-ips/{fixed_ip}/action#reserve", path=f"{FIXED}/{free}/action",
             folder="os-fixed-ips", request="fixedip-post-req", done=put_back).run(live)
    each(live, "POST /os-fixed-ips/{fixed_ip}/action#unreserve", f"{FIXED}/{free}/action",
         lambda version: {"unreserve": None})
    expect_refusals(world, ("GET", f"{FIXED}/192.0.2.1", None, 404), ("GET", f"{FIXED}/nothing", None, 400),
                    ("POST", f"{FIXED}/192.0.2.1/action", {"reserve": None}, 404))
    expect_refusals(world, ("GET", f"{FIXED}/{taken}", None, 403), user=MEMBER)


@old
def virtual_interfaces(world: World) -> None:
    live, path = world.live, f"/servers/{server(world)}/os-virtual-interfaces"
    live.shows("os-virtual-interfaces", "vifs-list-resp", path)
    each(live, "GET /servers/{server_id}/os-virtual-interfaces", path)
    for version in (1, 43):
        live.call("GET", f"/servers/{NOWHERE}/os-virtual-interfaces", None, version, expect=404)
    live.call("GET", path, None, 44, expect=404)


# -- floating addresses

@old
def floating_in_bulk(world: World) -> None:
    live = world.live

    def gone(answer: Answer, version: int) -> None:
        world.ask("PUT", f"{BULK}/delete", {"ip_range": answer.body["floating_ips_bulk_create"]["ip_range"]},
                  version=LAST)
    Exchange(operation="POST /os-floating-ips-bulk", path=BULK, folder="os-floating-ips-bulk",
             request="floating-ips-bulk-create-req", answer="floating-ips-bulk-create-resp", done=gone).run(live)

    def stock(version: int) -> str:
        world.ask("POST", BULK, {"floating_ips_bulk_create": {"ip_range": "192.168.1.0/28"}}, version=LAST)
        return f"{BULK}/delete"
    Exchange(operation="PUT /os-floating-ips-bulk/{host_name}", path=stock, folder="os-floating-ips-bulk",
             body=lambda version: {"ip_range": "192.168.1.0/28"}, answer="floating-ips-bulk-delete-resp").run(live)
    stock(LAST)
    mine = world.ask("POST", "/os-floating-ips", {"pool": "nova"}, version=1)["floating_ip"]
    world.ask("POST", f"/servers/{server(world)}/action", {"addFloatingIp": {"address": mine["ip"]}}, version=1)
    each(live, "GET /os-floating-ips-bulk", BULK)
    each(live, "GET /os-floating-ips-bulk/{host_name}", f"{BULK}/ctl")
    [held] = [one for one in live.get(f"{BULK}/ctl", LAST)["floating_ip_info"] if one["instance_uuid"]]
    if (held["address"], held["fixed_ip"], held["pool"]) != (mine["ip"], address(world), "nova"):
        live.problem(f"GET {BULK}/ctl", f"is not the address of the server: {held}")
    expect_refusals(
        world, ("POST", BULK, {"floating_ips_bulk_create": {"ip_range": "192.168.1.0/28"}}, 409),
        ("POST", BULK, {"floating_ips_bulk_create": {"ip_range": "nothing"}}, 400),
        ("GET", f"{BULK}/nowhere", None, 404), ("PUT", f"{BULK}/other", {"ip_range": "192.168.1.0/28"}, 404))
    expect_refusals(world, ("GET", BULK, None, 403), user=MEMBER)


@old
def floating_names(world: World) -> None:
    live, domain = world.live, f"{DNS}/domain1.example.org"
    public = {"domain_entry": {"scope": "public", "project": "project1"}}
    each(live, "PUT /os-floating-ip-dns/{domain}", domain, lambda version: public)
    live.shows("os-floating-ip-dns", "floating-ip-dns-list-resp", DNS)
    each(live, "GET /os-floating-ip-dns", DNS)
    entry = f"{domain}/entries/instance1"
    Exchange(operation="PUT /os-floating-ip-dns/{domain}/entries/{name}", path=entry, folder="os-floating-ip-dns",
             request="floating-ip-dns-create-or-update-entry-req",
             answer="floating-ip-dns-create-or-update-entry-resp").run(live)
    each(live, "GET /os-floating-ip-dns/{domain}/entries/{name}", entry)
    live.shows("os-floating-ip-dns", "floating-ip-dns-entry-list-resp", f"{domain}/entries/192.168.53.11")

    def fresh(version: int) -> str:
        world.ask("PUT", entry, {"dns_entry": {"ip": "192.168.53.11", "dns_type": "A"}}, version=LAST)
        return entry
    each(live, "DELETE /os-floating-ip-dns/{domain}/entries/{name}", fresh)
    private = {"domain_entry": {"scope": "private", "project": "project1"}}
    expect_refusals(
        world, ("GET", entry, None, 404), ("DELETE", entry, None, 404), ("DELETE", f"{DNS}/nothing", None, 404),
        ("PUT", f"{DNS}/other", private, 400), ("PUT", f"{DNS}/other", {"domain_entry": {"scope": "x"}}, 400))
    live.call("PUT", f"{DNS}/other", private, 0, expect=422)
    expect_refusals(world, ("PUT", f"{DNS}/other", public, 403), user=MEMBER)

    def doomed(version: int) -> str:
        world.ask("PUT", f"{DNS}/doomed", public, version=LAST)
        return f"{DNS}/doomed"
    each(live, "DELETE /os-floating-ip-dns/{domain}", doomed)


# -- default rules

@old
def default_rules(world: World) -> None:
    live = world.live

    def made(port: int) -> str:
        body = {"security_group_default_rule": {"ip_protocol": "udp", "from_port": port, "to_port": port,
                                                "cidr": "10.10.10.0/24"}}
        return f"{RULES}/{world.ask('POST', RULES, body, version=LAST)['security_group_default_rule']['id']}"

    def gone(answer: Answer, version: int) -> None:
        world.ask("DELETE", f"{RULES}/{answer.body['security_group_default_rule']['id']}", version=LAST)
    Exchange(operation="POST /os-security-group-default-rules", path=RULES, folder="os-security-group-default-rules",
             request="security-group-default-rules-create-req", answer="security-group-default-rules-create-resp",
             done=gone).run(live)
    kept = made(53)
    live.shows("os-security-group-default-rules", "security-group-default-rules-list-resp", RULES)
    each(live, "GET /os-security-group-default-rules", RULES)
    each(live, "GET /os-security-group-default-rules/{rule_id}", kept)
    each(live, "DELETE /os-security-group-default-rules/{rule_id}", lambda version: made(1000 + version))
    expect_refusals(world, ("GET", f"{RULES}/{NOWHERE}", None, 404), ("DELETE", f"{RULES}/{NOWHERE}", None, 404),
                    ("POST", RULES, {"security_group_default_rule": {"ip_protocol": "gre"}}, 400))
    expect_refusals(world, ("GET", RULES, None, 403), user=MEMBER)
    world.ask("DELETE", kept, version=LAST)


# -- projects' VPN servers

@old
def vpn_servers(world: World) -> None:
    live = world.live
    server(world)  # the project has a network
    Exchange(operation="PUT /os-cloudpipe/{id}", path=f"{PIPES}/configure-project", folder="os-cloudpipe",
             request="cloud-pipe-update-req").run(live)
    first = world.ask("POST", PIPES, {"cloudpipe": {}}, version=LAST)["instance_id"]
    world.settle(first)
    each(live, "POST /os-cloudpipe", PIPES, lambda version: {"cloudpipe": {}})
    each(live, "GET /os-cloudpipe", PIPES)
    [shown_one] = live.get(PIPES, LAST)["cloudpipes"]
    reported = {name: shown_one[name] for name in ("instance_id", "state", "public_ip", "public_port")}
    if reported != {"instance_id": first, "state": "running", "public_ip": "192.168.1.1", "public_port": 2000}:
        live.problem(f"GET {PIPES}", f"is not what was made: {shown_one}")
    expect_refusals(world, ("PUT", f"{PIPES}/other", {"configure_project": {"vpn_ip": "10.0.0.1", "vpn_port": 1}}, 404),
                    ("PUT", f"{PIPES}/configure-project", {"configure_project": {"vpn_ip": "x", "vpn_port": 1}}, 400))
    expect_refusals(world, ("GET", PIPES, None, 403), user=MEMBER)
    world.remove(first)
    world.gone(first)
