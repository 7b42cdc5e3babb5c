"""The fake Neutron's security groups, routers, floating addresses, quotas and tags; and its lists."""

from __future__ import annotations

from typing import Any

import pytest

from nova.devel.network.neutron import FakeNeutron
from nova.devel.network.store import QUOTAS
from tests.unit.devel.network_users import NetworkUser, neutron, users


@pytest.fixture
def service() -> FakeNeutron:
    return neutron()


@pytest.fixture
def admin(service: FakeNeutron) -> NetworkUser:
    return users(service)["admin"]


@pytest.fixture
def demo(service: FakeNeutron) -> NetworkUser:
    return users(service)["demo"]


@pytest.fixture
def other(service: FakeNeutron) -> NetworkUser:
    return users(service)["other"]


# --- security groups


def test_groups_when_a_project_first_asks_then_it_has_a_default_one_with_its_rules(demo: NetworkUser,
                                                                                  admin: NetworkUser) -> None:
    [group] = demo("GET", "/v2.0/security-groups").json["security_groups"]
    assert (group["name"], group["project_id"]) == ("default", "demo")
    assert {(one["direction"], one["ethertype"], one["remote_group_id"]) for one in group["security_group_rules"]} == {
        ("egress", "IPv4", None), ("egress", "IPv6", None), ("ingress", "IPv4", group["id"]),
        ("ingress", "IPv6", group["id"])}
    assert len(demo("GET", "/v2.0/security-group-rules").json["security_group_rules"]) == 4
    asked = admin("GET", "/v2.0/security-groups?project_id=never-seen&fields=name").json["security_groups"]
    assert asked == [{"name": "default"}]


def test_group_when_it_is_the_default_one_then_it_keeps_its_name_and_only_administrators_remove_it(
        demo: NetworkUser, admin: NetworkUser) -> None:
    [group] = demo("GET", "/v2.0/security-groups").json["security_groups"]
    path = f"/v2.0/security-groups/{group['id']}"
    assert demo.refused("DELETE", path) == (409, "SecurityGroupCannotRemoveDefault")
    assert demo.refused("PUT", path, {"security_group": {"name": "x"}}) == (409, "SecurityGroupCannotUpdateDefault")
    assert demo.refused("POST", "/v2.0/security-groups", {"security_group": {"name": "default"}}) == (
        409, "SecurityGroupDefaultAlreadyExists")
    assert demo("PUT", path, {"security_group": {"description": "mine"}}).status_code == 200
    second = demo.create("security_group", name="web")
    assert demo.refused("PUT", f"/v2.0/security-groups/{second['id']}", {"security_group": {"name": "default"}}) == (
        409, "SecurityGroupCannotUpdateDefault")
    assert admin("DELETE", path).status_code == 204


def test_group_when_a_port_has_it_then_it_stays_and_then_goes_with_rules_that_name_it(demo: NetworkUser,
                                                                                     other: NetworkUser) -> None:
    group, second = (demo.create("security_group", name=name) for name in ("web", "db"))
    assert {one["direction"] for one in group["security_group_rules"]} == {"egress"}
    rule = demo.create("security_group_rule", security_group_id=second["id"], direction="ingress",
                       remote_group_id=group["id"])
    port = demo.create("port", network_id=demo.network("mine", "10.1.0.0/24")["id"], security_groups=[group["id"]])
    path = f"/v2.0/security-groups/{group['id']}"
    assert other("GET", path).status_code == 404
    assert demo.refused("DELETE", path) == (409, "SecurityGroupInUse")
    demo("PUT", f"/v2.0/ports/{port['id']}", {"port": {"security_groups": [second["id"]]}})
    assert demo("DELETE", path).status_code == 204
    assert demo("GET", f"/v2.0/security-group-rules/{rule['id']}").status_code == 404


@pytest.mark.parametrize(("members", "status", "kind"), [
    ({"protocol": "tcp", "port_range_min": 80, "port_range_max": 22}, 400, "SecurityGroupInvalidPortRange"),
    ({"protocol": "gre", "port_range_min": 1, "port_range_max": 2}, 400, "SecurityGroupInvalidPortRange"),
    ({"port_range_min": 80, "port_range_max": 80}, 400, "SecurityGroupProtocolRequiredWithPorts"),
    ({"protocol": "icmp", "port_range_max": 3}, 400, "SecurityGroupMissingIcmpType"),
    ({"protocol": "icmp", "port_range_min": 256}, 400, "SecurityGroupInvalidIcmpValue"),
    ({"protocol": "tcp", "port_range_min": -1, "port_range_max": 3}, 400, "SecurityGroupInvalidPortValue"),
    ({"protocol": "carrier-pigeon"}, 400, "HTTPBadRequest"), ({"direction": "sideways"}, 400, "HTTPBadRequest"),
    ({"remote_ip_prefix": "fd00::/64"}, 400, "SecurityGroupRuleParameterConflict"),
    ({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": "any"}, 400, "SecurityGroupRemoteGroupAndRemoteIpPrefix"),
    ({"remote_group_id": "none"}, 404, "SecurityGroupNotFound"),
    ({"security_group_id": "none"}, 404, "SecurityGroupNotFound")], ids=str)
def test_rule_when_it_does_not_fit_together_then_it_is_refused(demo: NetworkUser, members: dict[str, object],
                                                             status: int, kind: str) -> None:
    group = demo.create("security_group", name="web")
    wanted = {"security_group_id": group["id"], "direction": "ingress", **members}
    assert demo.refused("POST", "/v2.0/security-group-rules", {"security_group_rule": wanted}) == (status, kind)


def test_rule_when_it_is_there_already_then_409_and_when_deleted_it_is_gone(demo: NetworkUser) -> None:
    group = demo.create("security_group", name="web")
    wanted = {"security_group_id": group["id"], "direction": "ingress", "protocol": 6, "port_range_min": 22,
              "port_range_max": 22, "remote_ip_prefix": "10.0.0.1"}
    rule = demo.create("security_group_rule", **wanted)
    assert (rule["protocol"], rule["remote_ip_prefix"]) == ("6", "10.0.0.1/32")
    kept = demo.create("security_group_rule", **{**wanted, "remote_ip_prefix": "10.2.3.124/24"})
    assert kept["remote_ip_prefix"] == "10.2.3.124/24"
    again = {**wanted, "protocol": "TCP"}
    assert demo.refused("POST", "/v2.0/security-group-rules", {"security_group_rule": again}) == (
        409, "SecurityGroupRuleExists")
    assert demo("PUT", f"/v2.0/security-group-rules/{rule['id']}", {"security_group_rule": {"direction": "egress"}}
                ).status_code == 400
    assert demo("DELETE", f"/v2.0/security-group-rules/{rule['id']}").status_code == 204
    shown = demo("GET", f"/v2.0/security-groups/{group['id']}").json["security_group"]
    assert rule["id"] not in [one["id"] for one in shown["security_group_rules"]]


# --- routers and floating addresses


@pytest.fixture
def outside(admin: NetworkUser) -> dict[str, Any]:
    """An external network with four addresses."""
    return admin.network("public", "172.24.4.0/29", **{"router:external": True})


@pytest.fixture
def inside(demo: NetworkUser) -> dict[str, Any]:
    return demo.network("mine", "10.1.0.0/24")


@pytest.fixture
def router(demo: NetworkUser, outside: dict[str, Any], inside: dict[str, Any]) -> dict[str, Any]:
    """Between them."""
    made = demo.create("router", name="router", external_gateway_info={"network_id": outside["id"]})
    plugged = demo("PUT", f"/v2.0/routers/{made['id']}/add_router_interface", {"subnet_id": inside["subnets"][0]})
    assert plugged.status_code == 200, plugged.text
    return made


def test_router_when_plugged_then_it_has_the_gateways_address_and_ports_that_only_it_removes(
        demo: NetworkUser, admin: NetworkUser, router: dict[str, Any], inside: dict[str, Any]) -> None:
    [port] = demo("GET", f"/v2.0/ports?device_id={router['id']}").json["ports"]
    assert (port["fixed_ips"][0]["ip_address"], port["device_owner"], port["status"]) == (
        "10.1.0.1", "network:router_interface", "ACTIVE")
    assert router["external_gateway_info"]["external_fixed_ips"][0]["ip_address"] == "172.24.4.2"
    assert len(admin("GET", f"/v2.0/ports?device_id={router['id']}").json["ports"]) == 2
    path = f"/v2.0/routers/{router['id']}"
    assert demo.refused("DELETE", f"/v2.0/ports/{port['id']}") == (409, "ServicePortInUse")
    assert demo.refused("DELETE", path) == (409, "RouterInUse")
    subnet = {"subnet_id": inside["subnets"][0]}
    assert demo.refused("PUT", f"{path}/add_router_interface", subnet) == (400, "BadRequest")
    assert demo("PUT", f"{path}/remove_router_interface", subnet).json["port_id"] == port["id"]
    assert demo.refused("PUT", f"{path}/remove_router_interface", subnet) == (404, "RouterInterfaceNotFoundForSubnet")
    assert demo("DELETE", path).status_code == 204
    assert admin("GET", "/v2.0/ports").json["ports"] == []


def test_router_when_a_port_is_plugged_then_it_is_the_routers(demo: NetworkUser, router: dict[str, Any]) -> None:
    network = demo.network("second", "10.2.0.0/24")
    port, used = (demo.create("port", network_id=network["id"], device_id=device) for device in ("", "a server"))
    path = f"/v2.0/routers/{router['id']}/add_router_interface"
    assert demo.refused("PUT", path, {"port_id": used["id"]}) == (409, "PortInUse")
    assert demo("PUT", path, {"port_id": port["id"]}).json["subnet_id"] == network["subnets"][0]
    assert demo("GET", f"/v2.0/ports/{port['id']}").json["port"]["device_id"] == router["id"]


@pytest.mark.parametrize(("body", "status"), [
    ({}, 400), ([], 400), ({"subnet_id": 5}, 400), ({"subnet_id": "none"}, 404), ({"port_id": "none"}, 404)], ids=str)
def test_interface_when_it_names_nothing_then_it_is_refused(demo: NetworkUser, router: dict[str, Any], body: object,
                                                           status: int) -> None:
    assert demo("PUT", f"/v2.0/routers/{router['id']}/add_router_interface", body).status_code == status


def test_interface_when_subnets_overlap_or_have_no_gateway_then_400(demo: NetworkUser, router: dict[str, Any]) -> None:
    overlapping = demo.network("second", "10.1.0.0/25")
    lonely = demo.create("network")
    subnet = demo.create("subnet", network_id=lonely["id"], ip_version=4, cidr="10.3.0.0/24", gateway_ip=None)
    path = f"/v2.0/routers/{router['id']}/add_router_interface"
    for one in (overlapping["subnets"][0], subnet["id"]):
        assert demo.refused("PUT", path, {"subnet_id": one}) == (400, "BadRequest")


@pytest.mark.parametrize(("gateway", "status"), [
    ({"network_id": "none"}, 404), ({"network_id": "inside"}, 400), ({"enable_snat": True}, 400),
    ({"network_id": "outside", "external_fixed_ips": [5]}, 400), ({"network_id": "outside", "colour": "red"}, 400),
    ({"network_id": "outside", "enable_snat": False}, 403)], ids=str)
def test_gateway_when_it_cannot_be_then_no_router_is_made(
        demo: NetworkUser, outside: dict[str, Any], inside: dict[str, Any], gateway: dict[str, Any],
        status: int) -> None:
    ids = {"inside": inside["id"], "outside": outside["id"]}
    info = {name: ids.get(str(value), value) for name, value in gateway.items()}
    assert demo("POST", "/v2.0/routers", {"router": {"external_gateway_info": info}}).status_code == status
    assert demo("GET", "/v2.0/routers").json["routers"] == []


def test_floating_when_it_leads_to_a_port_then_both_know_it_and_what_it_needs_stays(
        service: FakeNeutron, demo: NetworkUser, router: dict[str, Any], outside: dict[str, Any],
        inside: dict[str, Any]) -> None:
    told: list[str] = []
    service.tell = lambda news: told.extend(one.name for one in news)
    port = demo.create("port", network_id=inside["id"], device_id="s", device_owner="compute:nova")
    floating = demo.create("floatingip", floating_network_id=outside["id"])
    assert (floating["status"], floating["port_id"], floating["floating_ip_address"]) == ("DOWN", None, "172.24.4.3")
    path, leads = f"/v2.0/floatingips/{floating['id']}", {"floatingip": {"port_id": port["id"]}}
    now = demo("PUT", path, leads).json["floatingip"]
    assert (now["status"], now["fixed_ip_address"], now["router_id"], now["port_details"]["device_id"]) == (
        "ACTIVE", port["fixed_ips"][0]["ip_address"], router["id"], "s")
    assert told == ["network-changed"]
    assert demo.refused("PUT", f"/v2.0/routers/{router['id']}/remove_router_interface",
                        {"subnet_id": inside["subnets"][0]}) == (409, "RouterInterfaceInUseByFloatingIP")
    assert demo.refused("PUT", f"/v2.0/routers/{router['id']}", {"router": {"external_gateway_info": {}}}) == (
        409, "RouterExternalGatewayInUseByFloatingIp")
    second = demo.create("floatingip", floating_network_id=outside["id"])
    assert demo.refused("PUT", f"/v2.0/floatingips/{second['id']}", leads) == (409, "FloatingIPPortAlreadyAssociated")
    demo("DELETE", f"/v2.0/ports/{port['id']}")
    assert demo("GET", path).json["floatingip"]["port_id"] is None
    assert demo("DELETE", path).status_code == 204
    assert demo("GET", path).status_code == 404


def test_floating_when_nothing_leads_to_the_port_then_404_and_none_is_made(demo: NetworkUser, outside: dict[str, Any],
                                                                          inside: dict[str, Any]) -> None:
    port = demo.create("port", network_id=inside["id"])
    wanted = {"floatingip": {"floating_network_id": outside["id"], "port_id": port["id"]}}
    assert demo.refused("POST", "/v2.0/floatingips", wanted) == (404, "ExternalGatewayForFloatingIPNotFound")
    assert demo("GET", "/v2.0/floatingips").json["floatingips"] == []


@pytest.mark.parametrize(("addresses", "wanted", "status"), [
    (2, None, 400), (2, "10.1.0.3", 200), (1, "10.1.0.99", 400), (0, None, 400)], ids=str)
def test_floating_when_the_port_has_several_addresses_then_one_is_named(
        demo: NetworkUser, router: dict[str, Any], outside: dict[str, Any], inside: dict[str, Any], addresses: int,
        wanted: str | None, status: int) -> None:
    port = demo.create("port", network_id=inside["id"], fixed_ips=[{"subnet_id": inside["subnets"][0]}] * addresses)
    floating = demo.create("floatingip", floating_network_id=outside["id"])
    fields = {"port_id": port["id"], **({"fixed_ip_address": wanted} if wanted else {})}
    assert demo("PUT", f"/v2.0/floatingips/{floating['id']}", {"floatingip": fields}).status_code == status


def test_floating_when_addresses_run_out_then_409(demo: NetworkUser, outside: dict[str, Any], inside: dict[str, Any]
                                                 ) -> None:
    for _ in range(5):
        demo.create("floatingip", floating_network_id=outside["id"])
    wanted = {"floatingip": {"floating_network_id": outside["id"]}}
    assert demo.refused("POST", "/v2.0/floatingips", wanted) == (409, "IpAddressGenerationFailure")
    assert len(demo("GET", "/v2.0/floatingips").json["floatingips"]) == 5
    assert demo.refused("POST", "/v2.0/floatingips", {"floatingip": {"floating_network_id": inside["id"]}}) == (
        400, "BadRequest")


def test_network_when_it_is_external_then_it_takes_floating_addresses_with_it_that_lead_nowhere(
        admin: NetworkUser, demo: NetworkUser, outside: dict[str, Any]) -> None:
    demo.create("floatingip", floating_network_id=outside["id"])
    assert admin("DELETE", f"/v2.0/networks/{outside['id']}").status_code == 204
    assert demo("GET", "/v2.0/floatingips").json["floatingips"] == admin("GET", "/v2.0/ports").json["ports"] == []


def test_network_when_a_router_has_a_gateway_there_then_409_and_floating_addresses_stay(
        admin: NetworkUser, demo: NetworkUser, outside: dict[str, Any], router: dict[str, Any]) -> None:
    demo.create("floatingip", floating_network_id=outside["id"])
    assert admin.refused("DELETE", f"/v2.0/networks/{outside['id']}") == (409, "NetworkInUse")
    assert len(demo("GET", "/v2.0/floatingips").json["floatingips"]) == 1


# --- quotas


def test_quotas_when_asked_then_they_tell_what_is_used_and_the_next_is_too_many(demo: NetworkUser, admin: NetworkUser
                                                                              ) -> None:
    assert demo("PUT", "/v2.0/quotas/demo", {"quota": {"network": 9}}).status_code == 403
    assert admin("PUT", "/v2.0/quotas/demo", {"quota": {"network": 1}}).json["quota"]["network"] == 1
    demo.create("network")
    assert demo.refused("POST", "/v2.0/networks", {"network": {}}) == (409, "OverQuota")
    for path in ("details", "details.json"):
        assert demo("GET", f"/v2.0/quotas/demo/{path}").json["quota"]["network"] == {
            "limit": 1, "used": 1, "reserved": 0}
    assert demo("GET", "/v2.0/quotas/demo/default").json["quota"] == QUOTAS
    assert [one["project_id"] for one in admin("GET", "/v2.0/quotas").json["quotas"]] == ["demo"]
    assert admin("DELETE", "/v2.0/quotas/demo").status_code == 204
    assert admin.refused("DELETE", "/v2.0/quotas/demo") == (404, "TenantQuotaNotFound")
    assert demo("GET", "/v2.0/quotas/demo").json["quota"] == QUOTAS
    assert demo("GET", "/v2.0/quotas/tenant").json == {"tenant": {"tenant_id": "demo"}}


@pytest.mark.parametrize("quota", [{"colour": 1}, {"port": "many"}, {"port": -2}, {"port": True}], ids=str)
def test_quotas_when_they_are_none_then_400(admin: NetworkUser, quota: object) -> None:
    assert admin.refused("PUT", "/v2.0/quotas/demo", {"quota": quota}) == (400, "HTTPBadRequest")


def test_quotas_when_they_are_anothers_then_403(demo: NetworkUser) -> None:
    assert demo("GET", "/v2.0/quotas/other").status_code == 403


# --- tags and lists


def test_tags_when_written_then_they_filter(demo: NetworkUser, admin: NetworkUser) -> None:
    ids = {name: demo.create("network", name=name)["id"] for name in ("a", "b", "c")}
    assert demo("PUT", f"/v2.0/networks/{ids['a']}/tags", {"tags": ["red", "big"]}).json == {"tags": ["big", "red"]}
    assert demo("PUT", f"/v2.0/networks/{ids['b']}/tags/red").status_code == 201
    assert demo("GET", f"/v2.0/networks/{ids['b']}/tags/red").status_code == 204
    assert demo.refused("GET", f"/v2.0/networks/{ids['b']}/tags/big") == (404, "TagNotFound")
    assert demo.refused("PUT", f"/v2.0/networks/{ids['b']}/tags", {"tags": [5]}) == (400, "HTTPBadRequest")
    assert [demo.names("networks", f"?{query}") for query in (
        "tags=red", "tags=red,big", "tags-any=big,blue", "not-tags=red", "not-tags-any=red,big")] == [
        ["a", "b"], ["a"], ["a"], ["c"], ["c"]]
    assert demo("DELETE", f"/v2.0/networks/{ids['b']}/tags/red").status_code == 204
    assert demo("DELETE", f"/v2.0/networks/{ids['a']}/tags").status_code == 204
    assert demo("GET", f"/v2.0/networks/{ids['a']}/tags").json == {"tags": []}


def test_list_when_filtered_then_any_of_the_values_will_do(demo: NetworkUser, admin: NetworkUser) -> None:
    for name in ("a", "b", "c"):
        admin.create("network", name=name, shared=name != "a")
    assert admin.names("networks", "?name=a&name=b&name=none") == ["a", "b"]
    assert admin.names("networks", "?shared=True") == admin.names("networks", "?shared=true") == ["b", "c"]
    assert admin.names("networks", "?tenant_id=demo") == []
    assert demo("GET", "/v2.0/networks?name=b&fields=name&fields=mtu").json == {"networks": [
        {"name": "b", "mtu": 1450}]}
    assert demo.refused("GET", "/v2.0/networks?colour=red") == (400, "HTTPBadRequest")


def test_list_when_ports_are_asked_for_by_address_or_group_then_those_are_in_it(demo: NetworkUser) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    for name in ("a", "b"):
        demo.create("port", network_id=network["id"], name=name)
    [group] = demo("GET", "/v2.0/security-groups").json["security_groups"]
    assert demo.names("ports", "?fixed_ips=ip_address=10.1.0.3") == ["b"]
    assert demo.names("ports", "?fixed_ips=ip_address_substr=.0.2") == ["a"]
    assert demo.names("ports", f"?fixed_ips=subnet_id={network['subnets'][0]}") == ["a", "b"]
    assert demo.names("ports", f"?security_groups={group['id']}&device_id=") == ["a", "b"]
    assert demo.names("ports", "?security_groups=none") == []


def test_list_when_it_has_pages_then_their_links_lead_through_all(demo: NetworkUser) -> None:
    for name in ("c", "a", "e", "b", "d"):
        demo.create("network", name=name)
    path, found = "/v2.0/networks?limit=2&sort_key=name&sort_dir=desc&fields=id&fields=name", []
    while path:
        body = demo("GET", path).json
        found.append([one["name"] for one in body["networks"]])
        path = body.get("networks_links", [{"href": ""}])[0]["href"]
    assert found == [["e", "d"], ["c", "b"], ["a"]]


@pytest.mark.parametrize("query", ["limit=-1", "limit=many", "marker=none", "sort_key=colour", "sort_dir=asc",
                                   "sort_key=name&sort_dir=up", "name=%ff"])
def test_list_when_the_query_is_wrong_then_400(demo: NetworkUser, query: str) -> None:
    demo.create("network", name="a")
    assert demo.refused("GET", f"/v2.0/networks?{query}") == (400, "HTTPBadRequest")
