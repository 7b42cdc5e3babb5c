"""What nova-network's networks and addresses were over HTTP, and are again where it is in service."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nova import errors
from nova.api import app, legacy_networks
from nova.api.absent import GONE
from nova.api.routing import Route
from nova.model.network.networks import FixedAddressRow
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(conf=configuration(use_neutron=False), token=ADMIN, version="2.35")


OPERATIONS = [("POST", "/os-networks", {"network": {"label": "n", "cidr": "10.1.0.0/24"}}),
              ("POST", "/os-networks/add", {"id": None}), ("DELETE", "/os-networks/1", None),
              ("POST", "/os-networks/1/action", {"disassociate": None}),
              ("POST", "/os-tenant-networks", {"network": {"label": "n", "cidr": "10.1.0.0/24"}}),
              ("DELETE", "/os-tenant-networks/1", None), ("GET", "/os-fixed-ips/10.0.0.2", None),
              ("POST", "/os-fixed-ips/10.0.0.2/action", {"reserve": None})]


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
def test_operation_when_networks_are_neutrons_then_410_at_every_version(method: str, path: str, body: Any) -> None:
    client = ApiClient(token=ADMIN)
    for version in ("2.1", "2.35", "2.36", "2.104"):
        assert client.request(method, path, body, version=version).status_int == 410


@pytest.mark.parametrize("row", legacy_networks.ROUTES, ids=lambda row: row.id)
def test_operation_of_nova_network_when_networks_are_neutrons_then_410_whoever_asks(row: Route) -> None:
    path, body = re.sub(r"\{\w+\}", "1", row.path), {row.action: None} if row.action else None
    for token, version in ((ADMIN, "2.1"), (DEMO, str(row.until))):
        assert ApiClient(token=token).request(row.method, path, body, version=version).status_int == 410


def test_add_without_an_id_then_400_and_below_v2_422(client: ApiClient) -> None:
    assert client.post("/os-networks/add", {}).status_int == 400
    client.prefix = "/v2"
    answer = client.request("POST", "/os-networks/add", {})
    assert answer.status_int == 422 and "id" in next(iter(answer.json.values()))["message"]
    assert client.request("POST", "/os-networks/add", {"id": 1}).status_int == 400


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
def test_operation_above_its_last_version_is_404(client: ApiClient, method: str, path: str, body: Any) -> None:
    assert client.request(method, path, body, version="2.36").status_int == 404
    assert client.request(method, path, body, version="2.36").content_type == "application/json"


def test_table_with_nova_network_has_no_operation_twice() -> None:
    for networks in ("neutron", legacy_networks.BACK_END):
        rows = [(row.id, row.since, row.legacy) for row in app.table(networks)]
        assert len(rows) == len(set(rows))
    served = {row.id for row in legacy_networks.ROUTES}
    assert served <= set(GONE)
    gone = {row.id for row in app.table("neutron")} - {row.id for row in app.table(legacy_networks.BACK_END)}
    assert gone == set()


def test_create_with_texts_and_numbers_then_all_of_it_is_asked_for(client: ApiClient) -> None:
    body = {"label": "new net 111", "cidr": "10.20.105.0/24", "mtu": 9000, "dhcp_server": "10.20.105.2",
            "enable_dhcp": False, "share_address": "true", "vlan": "12", "dns2": "", "gateway": None,
            "unknown": "is ignored"}
    answer = client.post("/os-networks", {"network": body})
    assert answer.status_int == 200, answer.text
    [asked] = client.conductor.asked("create_network")
    assert (asked.mtu, asked.enable_dhcp, asked.share_address, asked.vlan) == (9000, False, True, 12)
    assert asked.dns2 is None and asked.gateway is None and not asked.by_project
    assert answer.json["network"]["label"] == "new net 111"
    assert answer.json["network"]["bridge"] is None  # an administrator's field


@pytest.mark.parametrize("network", [{}, {"cidr": "10.0.0.0/24"}, {"label": ""}, {"label": "x" * 256},
                                     {"label": "n", "vlan": 4095}, {"label": "n", "num_networks": "many"},
                                     {"label": "n", "multi_host": "perhaps"}])
def test_create_with_a_bad_body_is_400(client: ApiClient, network: dict[str, Any]) -> None:
    assert client.post("/os-networks", {"network": network}).status_int == 400
    assert not client.conductor.asked("create_network")


def test_create_delete_and_actions_when_refused_then_the_conductors_word_counts(client: ApiClient) -> None:
    network = client.conductor.add_network()
    for error, code in ((errors.Conflict("in use"), 409), (errors.NotSupported("not here"), 501),
                        (errors.Invalid("bad"), 400)):
        client.conductor.given(create_network=error, delete_network=error, change_network=error)
        assert client.post("/os-networks", {"network": {"label": "n", "cidr": "10.0.0.0/24"}}).status_int == code
        assert client.delete(f"/os-networks/{network.uuid}").status_int == code
        assert client.post(f"/os-networks/{network.uuid}/action", {"disassociate": None}).status_int == code


@pytest.mark.parametrize(("body", "fields", "host"), [
    ({"disassociate": None}, ("project_id", "host"), None), ({"disassociate_host": None}, ("host",), None),
    ({"disassociate_project": None}, ("project_id",), None), ({"associate_host": "testHost"}, ("host",), "testHost")])
def test_action_changes_whose_it_is(client: ApiClient, body: Any, fields: tuple[str, ...], host: str | None) -> None:
    network = client.conductor.add_network(project_id="demo", host="net")
    assert client.post(f"/os-networks/{network.uuid}/action", body).status_int == 202
    [change] = client.conductor.asked("change_network")
    assert (change.fields, change.host, change.forced) == (fields, host, False)
    assert client.post("/os-networks/nothing/action", body).status_int == 404


def test_add_takes_a_free_network_for_the_caller_and_400_without_one(client: ApiClient) -> None:
    network = client.conductor.add_network()
    assert client.post("/os-networks/add", {"id": None}).status_int == 202
    assert client.conductor.networks[network.uuid].project_id == "admin"
    assert client.post("/os-networks/add", {"id": network.uuid}).status_int == 400
    assert client.post("/os-networks/add", {}).status_int == 400
    client.conductor.given(add_network_to_project=errors.NotSupported("of everybody"))
    assert client.post("/os-networks/add", {"id": None}).status_int == 501


def test_network_of_a_project_as_it_sees_it_made_and_deleted(client: ApiClient) -> None:
    made = client.post("/os-tenant-networks", {"network": {
        "label": "public", "cidr": "172.0.0.0/24", "num_networks": 1, "network_size": 255, "bridge": "",
        "project_id": "another"}}, token=DEMO)
    assert made.status_int == 200 and set(made.json["network"]) == {"id", "cidr", "label"}
    [asked] = client.conductor.asked("create_network")
    assert (asked.project_id, asked.by_project, asked.network_size) == ("demo", True, 255)
    uuid = made.json["network"]["id"]
    assert client.get("/os-tenant-networks", token=DEMO).json["networks"] == [made.json["network"]]
    assert client.get(f"/os-tenant-networks/{uuid}", token=DEMO).json["network"]["label"] == "public"
    assert client.get(f"/os-tenant-networks/{uuid}", token="eve:other").status_int == 404
    assert client.delete(f"/os-tenant-networks/{uuid}", token="eve:other").status_int == 404
    assert client.delete(f"/os-tenant-networks/{uuid}", token=DEMO).status_int == 202


@pytest.mark.parametrize(("field", "value", "code"), [
    ("bridge", "br0", 403), ("bridge_interface", "eth0", 403), ("vlan", 7, 403), ("vlan_start", "7", 403),
    ("multi_host", False, 403), ("dhcp_server", "10.0.0.9", 403), ("gateway", "10.0.0.9", 403), ("mtu", 0, 403),
    ("num_networks", 17, 400), ("network_size", 4097, 400)])
def test_network_of_a_project_when_it_asks_for_what_hosts_have_then_an_administrator_must(
        client: ApiClient, field: str, value: Any, code: int) -> None:
    body = {"network": {"label": "n", "cidr": "10.0.0.0/16", field: value}}
    assert client.post("/os-tenant-networks", body, token=DEMO).status_int == code
    assert client.conductor.asked("create_network") == []
    assert client.post("/os-tenant-networks", body).status_int == 200
    assert str(getattr(client.conductor.asked("create_network")[0], field)) == str(value)


@pytest.mark.parametrize(("error", "code"), [(errors.OverQuota("too many"), 403), (errors.Conflict("cidr"), 503),
                                             (errors.Invalid("cidr"), 400)])
def test_network_of_a_project_when_it_cannot_be_made(client: ApiClient, error: errors.NovaError, code: int) -> None:
    client.conductor.given(create_network=error)
    body = {"network": {"label": "n", "cidr": "10.0.0.0/24"}}
    assert client.post("/os-tenant-networks", body, token=DEMO).status_int == code
    assert client.post("/os-tenant-networks", {"network": {"label": "n"}}, token=DEMO).status_int == 400


def test_fixed_address_shows_reserved_from_2_4_and_is_set_aside(client: ApiClient) -> None:
    client.conductor.fixed_rows["192.168.1.1"] = FixedAddressRow(
        address="192.168.1.1", network_uuid="n", cidr="192.168.1.0/24", host="host", hostname="compute.host.pvt")
    shown = {"address": "192.168.1.1", "cidr": "192.168.1.0/24", "host": "host", "hostname": "compute.host.pvt"}
    assert client.get("/os-fixed-ips/192.168.1.1", version="2.3").json == {"fixed_ip": shown}
    assert client.get("/os-fixed-ips/192.168.1.1", version="2.4").json == {"fixed_ip": {**shown, "reserved": False}}
    for action, reserved in (("reserve", True), ("unreserve", False)):
        assert client.post("/os-fixed-ips/192.168.1.1/action", {action: None}).status_int == 202
        assert client.conductor.fixed_rows["192.168.1.1"].reserved is reserved
    assert client.get("/os-fixed-ips/10.9.9.9").status_int == 404
    assert client.post("/os-fixed-ips/192.168.1.1/action", {"dance": None}).status_int == 400


def test_virtual_interfaces_show_their_network_from_2_12(client: ApiClient) -> None:
    from tests.fakes.conductor_networks import PORT

    server = client.conductor.add_server(interfaces=(PORT,))
    path = f"/servers/{server.uuid}/os-virtual-interfaces"
    shown = {"id": PORT.id, "mac_address": PORT.mac}
    assert client.get(path, version="2.11").json == {"virtual_interfaces": [shown]}
    assert client.get(path, version="2.43").json == {"virtual_interfaces": [{**shown, "net_id": PORT.network_id}]}
    assert client.get(path, version="2.44").status_int == 404
    client.prefix = "/v2"
    found = client.get(path, version=None).json["virtual_interfaces"]
    assert found == [{**shown, "OS-EXT-VIF-NET:net_id": PORT.network_id}]


@pytest.mark.parametrize(("method", "path", "body"), [one for one in OPERATIONS if "tenant" not in one[1]])
def test_operation_of_administrators_as_a_member_is_403(client: ApiClient, method: str, path: str, body: Any) -> None:
    assert client.request(method, path, body, token=DEMO).status_int == 403
