"""Each field of what nova-network answers has the type that every published sample of it has, as JSON and as XML.

The XML samples are older than those as JSON, and are nova-network's own: a value's text there is Python's (``True``,
``None``, a number), so they tell the types that the same answer has as JSON.
"""

from __future__ import annotations

import json
import re
import uuid
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from nova.model.network.floating import DnsDomain, DnsEntry
from nova.model.network.networks import FixedAddressRow
from nova.model.security.certificates import Cloudpipe
from tests.contract import rows
from tests.fakes.api import ADMIN, configuration
from tests.fakes.conductor import WHEN
from tests.fakes.conductor_networks import PORT
from tests.fakes.whole_api import WholeApiClient
from tests.functional.live import normal

pytestmark = rows.needs_contract
JSON, XML = rows.SHARED / "samples", rows.SHARED / "legacy" / "xml_samples"
ID = str(uuid.UUID(int=1))
DOMAIN, ENTRIES = "/os-floating-ip-dns/domain1.example.org", "/os-floating-ip-dns/domain1.example.org/entries"
BULK = {"ip_range": "192.168.1.0/24"}
RULE = {"ip_protocol": "TCP", "from_port": "80", "to_port": "80", "cidr": "10.10.10.0/24"}

#: Sample -> the request that it answers: method, path, body.
ANSWERS: dict[str, tuple[str, str, Any]] = {
    "os-networks/network-show-resp.json": ("GET", f"/os-networks/{ID}", None),
    "os-networks/network-create-resp.xml": ("GET", f"/os-networks/{ID}", None),  # the same form
    "os-extended-networks/network-show-resp.xml": ("GET", f"/os-networks/{ID}", None),
    "os-extended-networks/networks-list-resp.xml": ("GET", "/os-networks", None),
    "os-tenant-networks/networks-list-res.json": ("GET", "/os-tenant-networks", None),
    "os-tenant-networks/networks-post-res.json": ("GET", f"/os-tenant-networks/{ID}", None),
    "os-floating-ip-pools/floatingippools-list-resp.json": ("GET", "/os-floating-ip-pools", None),
    "os-floating-ips-bulk/floating-ips-bulk-create-resp.json": (
        "POST", "/os-floating-ips-bulk", {"floating_ips_bulk_create": BULK}),
    "os-floating-ips-bulk/floating-ips-bulk-delete-resp.json": ("PUT", "/os-floating-ips-bulk/delete", BULK),
    "os-floating-ips-bulk/floating-ips-bulk-list-resp.xml": ("GET", "/os-floating-ips-bulk", None),
    "os-floating-ips-bulk/floating-ips-bulk-list-by-host-resp.xml": ("GET", "/os-floating-ips-bulk/host", None),
    "os-floating-ip-dns/floating-ip-dns-list-resp.json": ("GET", "/os-floating-ip-dns", None),
    "os-floating-ip-dns/floating-ip-dns-entry-list-resp.json": ("GET", f"{ENTRIES}/192.168.1.1", None),
    "os-floating-ip-dns/floating-ip-dns-create-or-update-entry-resp.json": (
        "PUT", f"{ENTRIES}/instance1", {"dns_entry": {"ip": "192.168.1.1", "dns_type": "A"}}),
    "os-cloudpipe/cloud-pipe-get-resp.xml": ("GET", "/os-cloudpipe", None),
    "os-fixed-ips/fixedips-get-resp.json": ("GET", "/os-fixed-ips/192.168.1.1", None),
    "os-fixed-ips/fixedips-get-resp.xml": ("GET", "/os-fixed-ips/192.168.1.1", None),
    "os-security-group-default-rules/security-group-default-rules-create-resp.json": (
        "POST", "/os-security-group-default-rules", {"security_group_default_rule": {**RULE, "to_port": "81"}}),
    "os-security-group-default-rules/security-group-default-rules-list-resp.json": (
        "GET", "/os-security-group-default-rules", None),
}
#: Those that the table above has not: -> why.
ELSEWHERE = {
    "os-floating-ips/": "ids are numbers here, and Neutron's there: test_floating_over_http",
    "os-security-groups/": "ids are numbers here, and Neutron's there: test_api_security_groups",
    "os-virtual-interfaces/": "from 2.12, below",
    "os-fixed-ips/v2.4/": "from 2.4: test_legacy_network_samples",
}
FOLDERS = tuple({name.partition("/")[0] for name in (*ANSWERS, *ELSEWHERE)} - {"os-extended-networks"})


@pytest.fixture
def client() -> WholeApiClient:
    made = WholeApiClient(conf=configuration(use_neutron=False), token=ADMIN, version="2.1")
    fake = made.conductor
    fake.add_network(
        label="mynet_0", netmask="255.255.255.0", broadcast="10.0.0.255", gateway="10.0.0.1", dhcp_start="10.0.0.2",
        vlan=100, bridge="br100", bridge_interface="eth0", host="host1", vpn_public_port=1000, project_id="admin",
        created_at=WHEN, updated_at=WHEN, dhcp_server="10.0.0.1", vpn_private_address="10.0.0.2",
        vpn_public_address="127.0.0.1", uuid=ID)
    fake.fixed_rows["192.168.1.1"] = FixedAddressRow(address="192.168.1.1", network_uuid=ID, cidr="192.168.1.0/24",
                                                     host="host", hostname="compute")
    fake.add_floating("10.10.10.1", host="host", interface=None)
    fake.domains["domain1.example.org"] = DnsDomain(domain="domain1.example.org", scope="public", project_id="project1")
    fake.dns_entries["domain1.example.org", "instance1"] = DnsEntry(domain="domain1.example.org", name="instance1",
                                                                   address="192.168.1.1")
    fake.list_cloudpipes = lambda: (Cloudpipe(
        project_id="p", server_uuid=ID, state="down", internal_address="192.168.0.3", public_address="127.0.0.1",
        public_port=22, created_at=WHEN),)
    made.post("/os-security-group-default-rules", {"security_group_default_rule": RULE})
    return made


def sample(name: str) -> Any:
    if name.endswith(".json"):
        return json.loads((JSON / name).read_text())
    root = ElementTree.parse(XML / name).getroot()
    return {root.tag: _of_xml(root)}


def _of_xml(element: ElementTree.Element) -> Any:
    if element.attrib:
        return {key: _typed(text) for key, text in element.attrib.items()}
    children = list(element)
    if not children:
        return _typed(element.text or "")
    if {child.tag for child in children} == {children[0].tag}:
        return [_of_xml(child) for child in children]
    return {child.tag: _of_xml(child) for child in children}


def _typed(text: str) -> Any:
    """``1234`` is a project's id."""
    known = {"None": None, "True": True, "False": False}
    if text in known:
        return known[text]
    return int(text) if text.isdigit() and text != "1234" else re.sub(r"^(\d{4}-\d\d-\d\d) (\d\d:.*)", r"\1T\2", text)


@pytest.mark.parametrize("name", ANSWERS)
def test_answer_has_the_published_samples_fields_and_types(client: WholeApiClient, name: str) -> None:
    method, path, body = ANSWERS[name]
    answer = client.request(method, path, body)
    assert answer.status_int == 200, answer.text
    wanted, ours = sample(name), answer.json
    if name == "os-networks/network-create-resp.xml":  # from before os-extended-networks
        for key in ("mtu", "dhcp_server", "enable_dhcp", "share_address"):
            del ours["network"][key]
    if name.startswith("os-floating-ips-bulk/floating-ips-bulk-list"):  # the rows say fixed_ip, too
        assert all(one.pop("fixed_ip") is None for one in ours["floating_ip_info"])
    assert list(normal.differences(wanted, ours)) == []


def test_flags_and_numbers_of_a_network_are_what_they_are(client: WholeApiClient) -> None:
    """What the sample of a network that was just made shows as ``None`` is no text when it is set."""
    shown = client.get(f"/os-networks/{ID}").json["network"]
    assert {name: shown[name] for name in ("enable_dhcp", "injected", "multi_host", "share_address", "deleted", "vlan",
                                           "priority", "rxtx_base", "vpn_public_port")} == {
        "enable_dhcp": True, "injected": False, "multi_host": False, "share_address": False, "deleted": False,
        "vlan": 100, "priority": None, "rxtx_base": None, "vpn_public_port": 1000}


def test_domain_has_its_zone_and_its_project_whichever_it_is(client: WholeApiClient) -> None:
    for scope, whose in (("public", {"project": "p"}), ("private", {"availability_zone": "z"}), ("private", {})):
        made = client.put(DOMAIN, {"domain_entry": {"scope": scope, **whose}})
        assert made.json == {"domain_entry": {"domain": "domain1.example.org", "scope": scope, "project": None,
                                              "availability_zone": None, **whose}}


def test_virtual_interfaces_have_the_samples_types(client: WholeApiClient) -> None:
    server = client.conductor.add_server(interfaces=(PORT,))
    answer = client.get(f"/servers/{server.uuid}/os-virtual-interfaces", version="2.12")
    assert list(normal.differences(sample("os-virtual-interfaces/v2.12/vifs-list-resp.json"), answer.json)) == []


def test_every_published_answer_is_in_the_table() -> None:
    for folder in FOLDERS:
        for path in sorted((JSON / folder).rglob("*.json")):
            name = str(path.relative_to(JSON))
            assert "-req" in name or name in ANSWERS or name.startswith(tuple(ELSEWHERE)), name
