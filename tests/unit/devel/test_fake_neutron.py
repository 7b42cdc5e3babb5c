"""The fake Neutron: networks, subnets, ports and their bindings, and who may see and do what, over WSGI."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova.devel.network.neutron import EXTENSIONS, FakeNeutron
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


# --- what it is


def test_versions_when_anybody_asks_then_there_is_one(service: FakeNeutron) -> None:
    answer = NetworkUser(service, "")("GET", "/")
    assert answer.status_code == 200
    assert [(one["id"], one["status"]) for one in answer.json["versions"]] == [("v2.0", "CURRENT")]
    assert answer.json["versions"][0]["links"][0]["href"].endswith("/v2.0/")


@pytest.mark.parametrize("path", ["/v2.0", "/v2.0/", "/v2.0/networks", "/v2.0/extensions"])
def test_request_when_there_is_no_token_then_401(service: FakeNeutron, demo: NetworkUser, path: str) -> None:
    assert NetworkUser(service, "")("GET", path).status_code == 401
    assert demo("GET", path).status_code == 200


def test_extensions_when_asked_for_then_each_can_be_shown_and_absent_ones_are_404(demo: NetworkUser) -> None:
    listed = demo("GET", "/v2.0/extensions?fields=alias").json["extensions"]
    assert [one["alias"] for one in listed] == list(EXTENSIONS)
    assert demo("GET", "/v2.0/extensions/router").json["extension"]["alias"] == "router"
    for absent in ("qos", "trunk", "address-scope"):
        refused = demo("GET", f"/v2.0/extensions/{absent}")
        assert (refused.status_code, refused.json["NeutronError"]["type"]) == (404, "HTTPNotFound")


@pytest.mark.parametrize("path", ["trunks", "qos/policies", "address-scopes", "nothing"])
def test_path_when_it_is_of_no_resource_then_404_in_neutrons_words(demo: NetworkUser, path: str) -> None:
    refused = demo("GET", f"/v2.0/{path}")
    assert refused.status_code == 404
    assert refused.json["NeutronError"].keys() == {"type", "message", "detail"}


def test_agents_when_asked_for_then_there_are_none(admin: NetworkUser, demo: NetworkUser
                                                                          ) -> None:
    assert admin("GET", "/v2.0/agents").json == {"agents": []}
    assert admin("GET", "/v2.0/agents/any").status_code == 404
    assert demo("GET", "/v2.0/agents").json == {"agents": []}
    assert demo("GET", "/v2.0/agents/any").status_code == 403


def test_zones_when_filtered_then_those_of_the_resource(demo: NetworkUser) -> None:
    zones = demo("GET", "/v2.0/availability_zones?resource=router").json["availability_zones"]
    assert zones == [{"name": "nova", "resource": "router", "state": "available"}]


# --- networks: who sees what


def test_networks_then_a_project_sees_its_own_shared_and_external_ones(admin: NetworkUser, demo: NetworkUser,
                                                                     other: NetworkUser) -> None:
    mine = demo.create("network", name="mine")
    shared = admin.create("network", name="shared", shared=True)
    admin.create("network", name="public", **{"router:external": True})
    hidden = admin.create("network", name="hidden")
    assert demo.names("networks") == ["mine", "public", "shared"]
    assert other.names("networks") == ["public", "shared"]
    assert admin.names("networks") == ["hidden", "mine", "public", "shared"]
    assert demo("GET", f"/v2.0/networks/{hidden['id']}").status_code == 404
    assert other("PUT", f"/v2.0/networks/{mine['id']}", {"network": {"name": "x"}}).status_code == 404
    assert demo("PUT", f"/v2.0/networks/{shared['id']}", {"network": {"name": "x"}}).status_code == 403
    assert demo("DELETE", f"/v2.0/networks/{shared['id']}").status_code == 403
    assert "provider:network_type" not in mine and shared["provider:network_type"] == "vxlan"
    assert demo("DELETE", f"/v2.0/networks/{mine['id']}").status_code == 204
    assert demo("GET", f"/v2.0/networks/{mine['id']}").status_code == 404


@pytest.mark.parametrize(("members", "status"), [
    ({"shared": True}, 403), ({"router:external": True}, 403), ({"provider:network_type": "vlan"}, 403),
    ({"colour": "red"}, 400), ({"name": 5}, 400), ({"admin_state_up": "perhaps"}, 400), ({"status": "ACTIVE"}, 400),
    ({"project_id": "others"}, 400), ({"mtu": 5}, 400), ({"id": "mine"}, 400)], ids=str)
def test_network_when_its_members_are_not_the_users_to_set_then_it_is_refused(demo: NetworkUser, members: object,
                                                                            status: int) -> None:
    assert demo("POST", "/v2.0/networks", {"network": members}).status_code == status
    assert demo.names("networks") == []


@pytest.mark.parametrize("body", [None, [], {}, {"network": []}, {"networks": [1]}, b"nonsense"], ids=str)
def test_network_when_the_body_is_none_then_400(demo: NetworkUser, body: object) -> None:
    assert demo("POST", "/v2.0/networks", body).status_code == 400


def test_network_when_its_owner_may_only_read_then_nothing_is_made(service: FakeNeutron, demo: NetworkUser) -> None:
    reader = users(service)["reader"]
    network = demo.create("network", name="mine")
    assert reader.names("networks") == ["mine"]
    assert reader("POST", "/v2.0/networks", {"network": {}}).status_code == 403
    assert reader("DELETE", f"/v2.0/networks/{network['id']}").status_code == 403


def test_network_when_others_use_it_then_it_stays_shared_and_is_not_deleted(admin: NetworkUser, demo: NetworkUser
                                                                           ) -> None:
    network = admin.network("shared", "10.0.0.0/24", shared=True)
    port = demo.create("port", network_id=network["id"])
    path = f"/v2.0/networks/{network['id']}"
    assert admin.refused("PUT", path, {"network": {"shared": False}}) == (409, "InvalidSharedSetting")
    assert admin.refused("DELETE", path) == (409, "NetworkInUse")
    assert demo("DELETE", f"/v2.0/ports/{port['id']}").status_code == 204
    assert admin("DELETE", path).status_code == 204
    assert admin.names("subnets") == []


# --- subnets


def test_subnet_when_made_then_it_has_a_gateway_and_pools(demo: NetworkUser) -> None:
    network = demo.create("network")
    four = demo.create("subnet", network_id=network["id"], ip_version=4, cidr="10.1.0.7/24")
    six = demo.create("subnet", network_id=network["id"], ip_version=6, cidr="fd00::/64", gateway_ip=None)
    assert (four["cidr"], four["gateway_ip"], four["allocation_pools"]) == (
        "10.1.0.0/24", "10.1.0.1", [{"start": "10.1.0.2", "end": "10.1.0.254"}])
    assert (six["gateway_ip"], six["allocation_pools"]) == (
        None, [{"start": "fd00::1", "end": "fd00::ffff:ffff:ffff:ffff"}])
    assert demo("GET", f"/v2.0/networks/{network['id']}").json["network"]["subnets"] == [four["id"], six["id"]]
    inside = demo.create("subnet", network_id=network["id"], ip_version=4, cidr="10.2.0.0/29", gateway_ip="10.2.0.3")
    assert inside["allocation_pools"] == [{"start": "10.2.0.1", "end": "10.2.0.2"},
                                          {"start": "10.2.0.4", "end": "10.2.0.6"}]


@pytest.mark.parametrize(("members", "status", "kind"), [
    ({"cidr": "10.1.0.0/25"}, 400, "InvalidInput"), ({"cidr": "nowhere"}, 400, "HTTPBadRequest"),
    ({"ip_version": 6}, 400, "InvalidInput"), ({"ip_version": 5}, 400, "HTTPBadRequest"),
    ({"gateway_ip": "fd00::1"}, 400, "InvalidInput"), ({"ipv6_ra_mode": "slaac"}, 400, "InvalidInput"),
    ({"allocation_pools": [{"start": "10.2.0.9", "end": "10.2.0.5"}]}, 400, "InvalidAllocationPool"),
    ({"allocation_pools": [{"start": "10.9.0.1", "end": "10.9.0.5"}]}, 400, "OutOfBoundsAllocationPool"),
    ({"allocation_pools": [{"start": "10.2.0.1", "end": "10.2.0.5"}]}, 409, "GatewayConflictWithAllocationPools"),
    ({"allocation_pools": [{"start": "10.2.0.3", "end": "10.2.0.5"}, {"start": "10.2.0.5", "end": "10.2.0.9"}]}, 409,
     "OverlappingAllocationPools"), ({"network_id": "none"}, 404, "NetworkNotFound")], ids=str)
def test_subnet_when_it_does_not_fit_then_it_is_refused(demo: NetworkUser, members: dict[str, object], status: int,
                                                        kind: str) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    wanted = {"network_id": network["id"], "ip_version": 4, "cidr": "10.2.0.0/24", **members}
    assert demo.refused("POST", "/v2.0/subnets", {"subnet": wanted}) == (status, kind)


def test_subnet_when_the_network_is_anothers_then_403_and_its_subnets_are_seen_where_it_is_shared(
        admin: NetworkUser, demo: NetworkUser) -> None:
    shared = admin.network("shared", "10.0.0.0/24", shared=True)
    admin.network("public", "10.9.0.0/24", **{"router:external": True})
    wanted = {"network_id": shared["id"], "ip_version": 4, "cidr": "10.2.0.0/24"}
    assert demo("POST", "/v2.0/subnets", {"subnet": wanted}).status_code == 403
    assert [one["cidr"] for one in demo("GET", "/v2.0/subnets").json["subnets"]] == ["10.0.0.0/24"]


def test_subnet_when_a_port_has_an_address_of_it_then_it_stays(demo: NetworkUser) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    demo.create("port", network_id=network["id"])
    assert demo.refused("DELETE", f"/v2.0/subnets/{network['subnets'][0]}") == (409, "SubnetInUse")
    changed = demo("PUT", f"/v2.0/subnets/{network['subnets'][0]}", {"subnet": {"dns_nameservers": ["9.9.9.9"]}}).json
    assert changed["subnet"]["dns_nameservers"] == ["9.9.9.9"]


# --- ports


def test_port_when_made_then_it_has_the_next_address_a_mac_and_the_default_group(demo: NetworkUser) -> None:
    network = demo.network("mine", "10.1.0.0/24", "fd00::/64")
    first, second = (demo.create("port", network_id=network["id"], name=name) for name in ("a", "b"))
    assert [one["ip_address"] for one in first["fixed_ips"]] == ["10.1.0.2", "fd00::2"]
    assert [one["ip_address"] for one in second["fixed_ips"]] == ["10.1.0.3", "fd00::3"]
    assert first["mac_address"] != second["mac_address"] and first["mac_address"].startswith("fa:16:3e:")
    [default] = demo("GET", "/v2.0/security-groups").json["security_groups"]
    assert first["security_groups"] == [default["id"]]
    assert (first["status"], first["device_id"]) == ("DOWN", "")
    assert not [name for name in first if name in ("binding:host_id", "binding:vif_type", "binding:profile")]
    demo("DELETE", f"/v2.0/ports/{first['id']}")
    assert demo.create("port", network_id=network["id"])["fixed_ips"][0]["ip_address"] == "10.1.0.2"


def test_port_when_the_subnet_is_slaac_then_the_mac_makes_the_address(admin: NetworkUser) -> None:
    network = admin.create("network")
    admin.create("subnet", network_id=network["id"], ip_version=6, cidr="fd00::/64", ipv6_address_mode="slaac",
                 ipv6_ra_mode="slaac")
    port = admin.create("port", network_id=network["id"], mac_address="FA:16:3E:00:00:01")
    assert port["fixed_ips"][0]["ip_address"] == "fd00::f816:3eff:fe00:1"
    assert port["mac_address"] == "fa:16:3e:00:00:01"


def test_port_when_addresses_run_out_then_409_and_nothing_of_the_request_is_made(demo: NetworkUser) -> None:
    network = demo.network("small", "10.1.0.0/29")
    made = demo("POST", "/v2.0/ports", {"ports": [{"network_id": network["id"]}] * 4})
    assert made.status_code == 201 and len(made.json["ports"]) == 4
    assert demo.refused("POST", "/v2.0/ports", {"ports": [{"network_id": network["id"]}] * 2}) == (
        409, "IpAddressGenerationFailure")
    assert len(demo("GET", "/v2.0/ports").json["ports"]) == 4
    demo.create("port", network_id=network["id"])


@pytest.mark.parametrize(("address", "status", "kind"), [
    ("10.1.0.9", 409, "IpAddressAlreadyAllocated"), ("10.7.0.9", 400, "InvalidIpForNetwork"),
    ("somewhere", 400, "HTTPBadRequest")])
def test_port_when_its_address_cannot_be_had_then_it_is_refused(demo: NetworkUser, address: str, status: int,
                                                                 kind: str) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    demo.create("port", network_id=network["id"], fixed_ips=[{"ip_address": "10.1.0.9"}])
    wanted = {"network_id": network["id"], "fixed_ips": [{"ip_address": address}]}
    assert demo.refused("POST", "/v2.0/ports", {"port": wanted}) == (status, kind)


def test_port_when_its_addresses_change_then_those_named_by_subnet_alone_stay(demo: NetworkUser) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    port = demo.create("port", network_id=network["id"])
    path, subnet = f"/v2.0/ports/{port['id']}", network["subnets"][0]
    wanted = [{"subnet_id": subnet}, {"ip_address": "10.1.0.77"}]
    changed = demo("PUT", path, {"port": {"fixed_ips": wanted}}).json["port"]
    assert [one["ip_address"] for one in changed["fixed_ips"]] == ["10.1.0.2", "10.1.0.77"]
    assert changed["revision_number"] == 1
    assert demo("PUT", path, {"port": {"fixed_ips": []}}).json["port"]["fixed_ips"] == []


@pytest.mark.parametrize(("members", "status"), [
    ({"binding:host_id": "host1"}, 403), ({"device_owner": "network:dhcp"}, 403),
    ({"mac_address": "fa:16:3e:0:0:1"}, 400), ({"mac_address": "fa:16:3e:00:00:01"}, 403),
    ({"security_groups": ["none"]}, 404), ({"port_security_enabled": False}, 403),
    ({"network_id": "none"}, 404)], ids=str)
def test_port_when_it_is_on_a_shared_network_then_much_is_its_owners_to_say(
        admin: NetworkUser, demo: NetworkUser, members: dict[str, object], status: int) -> None:
    shared = admin.network("shared", "10.0.0.0/24", shared=True)
    assert demo("POST", "/v2.0/ports", {"port": {"network_id": shared["id"], **members}}).status_code == status


def test_port_when_it_is_on_an_external_network_then_403(admin: NetworkUser, demo: NetworkUser) -> None:
    public = admin.network("public", "10.9.0.0/24", **{"router:external": True})
    assert demo.refused("POST", "/v2.0/ports", {"port": {"network_id": public["id"]}}) == (403, "HTTPForbidden")


def test_port_when_another_has_its_mac_then_409(demo: NetworkUser) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    wanted = {"network_id": network["id"], "mac_address": "fa:16:3e:00:00:01"}
    demo.create("port", **wanted)
    assert demo.refused("POST", "/v2.0/ports", {"port": wanted}) == (409, "MacAddressInUse")


def test_port_when_it_has_no_port_security_then_it_has_no_groups(demo: NetworkUser) -> None:
    network = demo.network("open", "10.1.0.0/24", port_security_enabled=False)
    port = demo.create("port", network_id=network["id"])
    assert (port["security_groups"], port["port_security_enabled"]) == ([], False)
    [default] = demo("GET", "/v2.0/security-groups").json["security_groups"]
    assert demo.refused("PUT", f"/v2.0/ports/{port['id']}", {"port": {"security_groups": [default["id"]]}}) == (
        409, "PortSecurityPortHasSecurityGroup")


def test_port_when_the_revision_is_another_then_412(demo: NetworkUser) -> None:
    port = demo.create("port", network_id=demo.network("mine", "10.1.0.0/24")["id"])
    path, body = f"/v2.0/ports/{port['id']}", {"port": {"name": "one"}}
    assert demo("PUT", path, body, {"If-Match": "revision_number=0"}).status_code == 200
    assert demo("PUT", path, body, {"If-Match": "revision_number=0"}).status_code == 412


# --- bindings


def test_port_when_bound_to_a_host_then_it_is_active_and_only_services_see_where(admin: NetworkUser, demo: NetworkUser
                                                                                ) -> None:
    port = demo.create("port", network_id=demo.network("mine", "10.1.0.0/24")["id"])
    path = f"/v2.0/ports/{port['id']}"
    bound = admin("PUT", path, {"port": {"binding:host_id": "host1", "device_id": "s", "device_owner": "compute:nova"}})
    assert (bound.json["port"]["status"], bound.json["port"]["binding:vif_type"]) == ("ACTIVE", "ovs")
    assert "binding:host_id" not in demo("GET", path).json["port"]
    free = admin("PUT", path, {"port": {"binding:host_id": "", "device_id": ""}}).json["port"]
    assert (free["status"], free["binding:vif_type"]) == ("DOWN", "unbound")


def test_bindings_when_a_second_host_is_prepared_and_activated_then_the_port_is_there(admin: NetworkUser,
                                                                                     demo: NetworkUser) -> None:
    network = demo.network("mine", "10.1.0.0/24")
    port = admin.create("port", network_id=network["id"], project_id="demo", **{"binding:host_id": "host1"})
    path = f"/v2.0/ports/{port['id']}/bindings"
    body = {"binding": {"host": "host2", "vnic_type": "normal", "profile": {"a": "b"}}}
    assert demo("GET", path).status_code == 403
    assert admin("POST", path, body).json["binding"]["status"] == "INACTIVE"
    assert admin.refused("POST", path, body) == (409, "PortBindingAlreadyExists")
    assert admin("PUT", f"{path}/host2/activate").json["binding"]["status"] == "ACTIVE"
    assert admin.refused("PUT", f"{path}/host2/activate") == (409, "PortBindingAlreadyActive")
    now = admin("GET", f"/v2.0/ports/{port['id']}").json["port"]
    assert (now["binding:host_id"], now["binding:profile"], now["status"]) == ("host2", {"a": "b"}, "ACTIVE")
    assert {one["host"]: one["status"] for one in admin("GET", path).json["bindings"]} == {
        "host1": "INACTIVE", "host2": "ACTIVE"}
    assert admin("DELETE", f"{path}/host1").status_code == 204
    assert admin.refused("DELETE", f"{path}/host1") == (404, "PortBindingNotFound")
    assert admin.refused("POST", path, {"binding": {}}) == (400, "HTTPBadRequest")
    assert admin("DELETE", f"{path}/host2").status_code == 204
    assert admin("GET", f"/v2.0/ports/{port['id']}").json["port"]["status"] == "DOWN"


def test_news_when_a_servers_port_changes_then_nova_is_told(service: FakeNeutron, admin: NetworkUser) -> None:
    told: list[tuple[str, str]] = []
    service.tell = lambda news: told.extend((one.name, one.server_id) for one in news)
    network = admin.network("mine", "10.1.0.0/24")
    port = admin.create("port", network_id=network["id"], device_id="s", device_owner="compute:nova",
                        **{"binding:host_id": "host1"})
    path = f"/v2.0/ports/{port['id']}"
    assert told == []  # whoever made it knows
    admin("PUT", path, {"port": {"fixed_ips": [{"ip_address": "10.1.0.50"}]}})
    admin("PUT", path, {"port": {"admin_state_up": False}})
    admin("PUT", path, {"port": {"admin_state_up": True}})
    admin("PUT", path, {"port": {"fixed_ips": [{"ip_address": "10.7.0.50"}], "admin_state_up": False}})  # refused
    admin("DELETE", path)
    assert told == [("network-changed", "s"), ("network-vif-unplugged", "s"), ("network-vif-plugged", "s"),
                    ("network-vif-deleted", "s")]


# --- what is kept


def test_state_when_kept_then_everything_is_there_again(tmp_path: Path) -> None:
    first = neutron()
    assert first.keep_in(tmp_path / "networks") is False
    demo, admin = (users(first)[name] for name in ("demo", "admin"))
    network = demo.network("mine", "10.1.0.0/24")
    port = admin.create("port", network_id=network["id"], project_id="demo", **{"binding:host_id": "host1"})
    admin("PUT", "/v2.0/quotas/demo", {"quota": {"port": 7}})
    second = neutron()
    assert second.keep_in(tmp_path / "networks") is True
    admin, demo = users(second)["admin"], users(second)["demo"]
    assert admin("GET", f"/v2.0/ports/{port['id']}").json["port"] == port
    assert admin("GET", f"/v2.0/ports/{port['id']}/bindings").json["bindings"][0]["host"] == "host1"
    assert demo("GET", "/v2.0/quotas/demo").json["quota"]["port"] == 7
    assert demo.create("port", network_id=network["id"])["fixed_ips"][0]["ip_address"] == "10.1.0.3"


def test_state_when_a_list_made_the_default_group_then_it_is_kept(tmp_path: Path) -> None:
    first = neutron()
    first.keep_in(tmp_path / "networks")
    made = users(first)["demo"]("GET", "/v2.0/security-groups").json
    second = neutron()
    assert second.keep_in(tmp_path / "networks") is True
    assert users(second)["demo"]("GET", "/v2.0/security-groups").json == made
