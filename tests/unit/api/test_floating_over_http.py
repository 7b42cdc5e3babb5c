"""Floating addresses over HTTP: with either network service, and what only nova-network has."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from tests.fakes.api import ADMIN, DEMO, READER, ApiClient, configuration

OTHER = "eve:other"


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(conf=configuration(use_neutron=False), token=DEMO)


def old(client: ApiClient) -> ApiClient:
    """The same API under /v2."""
    made = ApiClient(client.conductor, configuration(use_neutron=False), token=DEMO)
    made.prefix = "/v2"
    return made


def stocked(client: ApiClient, count: int = 3) -> list[str]:
    return [client.conductor.add_floating(f"192.0.2.{last}").address for last in range(1, count + 1)]


def test_floating_when_asked_for_then_it_is_the_projects(client: ApiClient) -> None:
    stocked(client)
    made = client.post("/os-floating-ips", {"pool": "nova"})
    assert made.status_int == 200
    shown = {"id": "1", "ip": "192.0.2.1", "pool": "nova", "fixed_ip": None, "instance_id": None}
    assert made.json == {"floating_ip": shown}
    assert client.get("/os-floating-ips").json == {"floating_ips": [shown]}
    assert client.get("/os-floating-ips/1").json == {"floating_ip": shown}
    assert client.get("/os-floating-ips", token=ADMIN).json == {"floating_ips": []}, "an administrator's own"
    assert client.get("/os-floating-ips/1", token=OTHER).status_int == 404
    assert client.delete("/os-floating-ips/1", token=OTHER).status_int == 403
    assert client.delete("/os-floating-ips/1").status_int == 202
    assert client.get("/os-floating-ips/1").status_int == 404


@pytest.mark.parametrize("body", [{}, {"pool": None}, {"pool": ""}])
def test_floating_when_no_pool_is_named_then_it_is_the_configured_one(client: ApiClient, body: Any) -> None:
    stocked(client)
    assert client.post("/os-floating-ips", body).json["floating_ip"]["pool"] == "nova"


def test_floating_when_it_cannot_be_then_the_code_says_why(client: ApiClient) -> None:
    assert client.post("/os-floating-ips", {"pool": "none"}).status_int == 404
    stocked(client)
    client.conductor.given(allocate_floating_address=errors.OverQuota("Maximum number of floating IPs exceeded"))
    refused = client.post("/os-floating-ips", {})
    assert refused.status_int == 403 and "forbidden" in refused.json
    assert client.get("/os-floating-ips/x").status_int == 400
    assert client.post("/os-floating-ips", {}, token=READER).status_int == 403


def test_pools_are_named(client: ApiClient) -> None:
    client.conductor.add_floating("192.0.2.1", "pool2")
    client.conductor.add_floating("192.0.2.2", "pool1")
    assert client.get("/os-floating-ip-pools").json == {"floating_ip_pools": [{"name": "pool1"}, {"name": "pool2"}]}


@pytest.mark.parametrize("path", ["/os-floating-ips", "/os-floating-ip-pools", "/os-floating-ips-bulk",
                                  "/os-floating-ip-dns"])
def test_operations_disappear(client: ApiClient, path: str) -> None:
    assert client.get(path, version="2.35", token=ADMIN).status_int == 200
    assert client.get(path, version="2.36", token=ADMIN).status_int == 404


# servers

def action(client: ApiClient, name: str, body: dict[str, Any], uuid: str, **more: Any) -> Any:
    return client.post(f"/servers/{uuid}/action", {name: body}, **more)


def test_server_when_an_address_is_added_then_it_has_it_until_it_is_removed(client: ApiClient) -> None:
    stocked(client)
    server = client.conductor.add_server()
    client.post("/os-floating-ips", {})
    asked = {"address": "192.0.2.1", "fixed_address": "10.0.0.9"}
    added = action(client, "addFloatingIp", asked, server.uuid)
    assert (added.status_int, added.body) == (202, b"")
    shown = client.get("/os-floating-ips/1").json["floating_ip"]
    assert (shown["instance_id"], shown["fixed_ip"]) == (server.uuid, "10.0.0.9")
    assert action(client, "removeFloatingIp", {"address": "192.0.2.1"}, server.uuid).status_int == 202
    assert client.get("/os-floating-ips/1").json["floating_ip"]["instance_id"] is None
    assert action(client, "addFloatingIp", asked, server.uuid, version="2.43").status_int == 202
    assert action(client, "addFloatingIp", asked, server.uuid, version="2.44").status_int in (400, 404)


@pytest.mark.parametrize("body", [{}, {"address": "x"}, {"address": "192.0.2.1", "more": 1},
                                  {"address": "192.0.2.1", "fixed_address": None}])
def test_server_when_the_body_is_wrong_then_400(client: ApiClient, body: dict[str, Any]) -> None:
    server = client.conductor.add_server()
    assert action(client, "addFloatingIp", body, server.uuid).status_int == 400


def test_server_when_the_address_is_not_its_own_then_409_and_422_of_old(client: ApiClient) -> None:
    stocked(client)
    server = client.conductor.add_server()
    client.post("/os-floating-ips", {})
    gone = {"address": "192.0.2.1"}
    assert action(client, "removeFloatingIp", gone, server.uuid).status_int == 409
    assert action(old(client), "removeFloatingIp", gone, server.uuid).status_int == 422
    assert action(client, "removeFloatingIp", {"address": "192.0.2.99"}, server.uuid).status_int == 404
    assert action(client, "addFloatingIp", gone, server.uuid, token=OTHER).status_int == 404
    theirs = client.conductor.add_server(project_id="other")
    assert action(client, "addFloatingIp", gone, theirs.uuid, token=OTHER).status_int == 403


# in bulk

def test_bulk_makes_lists_and_deletes(client: ApiClient) -> None:
    asked = {"ip_range": "192.0.2.0/29", "pool": "p", "interface": "eth1"}
    made = client.post("/os-floating-ips-bulk", {"floating_ips_bulk_create": asked}, token=ADMIN)
    assert (made.status_int, made.json) == (200, {"floating_ips_bulk_create": asked})
    listed = client.get("/os-floating-ips-bulk", token=ADMIN).json["floating_ip_info"]
    assert len(listed) == 6 and listed[0] == {"address": "192.0.2.1", "pool": "p", "interface": "eth1",
                                              "project_id": None, "instance_uuid": None, "fixed_ip": None}
    assert client.post("/os-floating-ips-bulk", {"floating_ips_bulk_create": asked}, token=ADMIN).status_int == 409
    assert old(client).post("/os-floating-ips-bulk", {"floating_ips_bulk_create": asked},
                            token=ADMIN).status_int == 400
    gone = client.put("/os-floating-ips-bulk/delete", {"ip_range": "192.0.2.1"}, token=ADMIN)
    assert (gone.status_int, gone.json) == (200, {"floating_ips_bulk_delete": "192.0.2.1"})
    assert client.put("/os-floating-ips-bulk/other", {"ip_range": "192.0.2.1"}, token=ADMIN).status_int == 404
    assert len(client.get("/os-floating-ips-bulk", token=ADMIN).json["floating_ip_info"]) == 5


def test_bulk_of_a_host_is_what_it_carries(client: ApiClient) -> None:
    client.conductor.add_floating("192.0.2.1", project_id="demo", host="net1")
    assert len(client.get("/os-floating-ips-bulk/net1", token=ADMIN).json["floating_ip_info"]) == 1
    assert client.get("/os-floating-ips-bulk/net2", token=ADMIN).status_int == 404


@pytest.mark.parametrize("wrong", ["192.0.2.0/31", "10.0.0.0/8", "nonsense", ""])
def test_bulk_when_the_range_is_wrong_then_400(client: ApiClient, wrong: str) -> None:
    body = {"floating_ips_bulk_create": {"ip_range": wrong}}
    assert client.post("/os-floating-ips-bulk", body, token=ADMIN).status_int == 400


def test_bulk_and_dns_are_the_administrators_and_gone_with_neutron(client: ApiClient) -> None:
    assert client.get("/os-floating-ips-bulk").status_int == 403
    assert client.put("/os-floating-ip-dns/x.org", {"domain_entry": {"scope": "public"}}).status_int == 403
    neutron = ApiClient(token=ADMIN)
    for path in ("/os-floating-ips-bulk", "/os-floating-ip-dns"):
        for version in ("2.1", "2.35", "2.90"):
            assert neutron.get(path, version=version).status_int == 410
    assert neutron.get("/os-floating-ips").status_int == 200


# names

def test_dns_domains_and_entries(client: ApiClient) -> None:
    put = client.put("/os-floating-ip-dns/demo.example.org", {"domain_entry": {"scope": "public", "project": "demo"}},
                     token=ADMIN)
    assert put.json == {"domain_entry": {"domain": "demo.example.org", "scope": "public", "project": "demo",
                                         "availability_zone": None}}
    assert client.get("/os-floating-ip-dns").json == {"domain_entries": [
        {"domain": "demo.example.org", "scope": "public", "project": "demo", "availability_zone": None}]}
    assert client.get("/os-floating-ip-dns", token=OTHER).json == {"domain_entries": []}
    entry = "/os-floating-ip-dns/demo.example.org/entries/web"
    made = client.put(entry, {"dns_entry": {"ip": "192.0.2.1", "dns_type": "A"}})
    shown = {"domain": "demo.example.org", "name": "web", "ip": "192.0.2.1", "id": None, "type": "A"}
    assert made.json == {"dns_entry": shown}
    assert client.get(entry).json == {"dns_entry": {**shown, "type": None}}
    by_address = client.get("/os-floating-ip-dns/demo.example.org/entries/192.0.2.1")
    assert by_address.json == {"dns_entries": [{**shown, "type": None}]}
    assert client.get("/os-floating-ip-dns/demo.example.org/entries/none").status_int == 404
    assert client.put(entry, {"dns_entry": {"ip": "192.0.2.1", "dns_type": "A"}}, token=OTHER).status_int == 404
    assert client.delete(entry).status_int == 202
    assert client.delete(entry).status_int == 404
    assert client.delete("/os-floating-ip-dns/demo.example.org", token=ADMIN).status_int == 202
    assert client.delete("/os-floating-ip-dns/demo.example.org", token=ADMIN).status_int == 404


@pytest.mark.parametrize("entry", [{"scope": "private", "project": "demo"},
                                   {"scope": "public", "availability_zone": "nova"}])
def test_dns_domain_when_the_owner_is_of_the_other_scope_then_400_and_422_of_old(client: ApiClient, entry: Any
                                                                                ) -> None:
    path = "/os-floating-ip-dns/x.example.org"
    assert client.put(path, {"domain_entry": entry}, token=ADMIN).status_int == 400
    assert old(client).put(path, {"domain_entry": entry}, token=ADMIN).status_int == 422


def test_dns_entries_of_a_private_domain_are_the_administrators(client: ApiClient) -> None:
    client.put("/os-floating-ip-dns/vms.example.org", {"domain_entry": {"scope": "private"}}, token=ADMIN)
    entry, body = "/os-floating-ip-dns/vms.example.org/entries/a", {"dns_entry": {"ip": "10.0.0.3", "dns_type": "A"}}
    assert client.put(entry, body).status_int == 403
    assert client.put(entry, body, token=ADMIN).status_int == 200
    assert client.get(entry).status_int == 200
