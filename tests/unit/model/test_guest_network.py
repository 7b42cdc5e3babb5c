"""What a guest is told of its networks: ranges of both families, by DHCP, by the router's word, and injected."""

from __future__ import annotations

import json

import msgspec
import pytest

from nova.model.guest import guest_tree
from nova.model.guest.guest_network import network_config, network_data
from nova.model.guest.guest_tree import TreeOptions
from nova.model.guest.guests import GuestFacts
from nova.model.network.networks import FixedAddress, GuestRoute, Interface, Subnet

V4 = Subnet(id="s4", cidr="10.0.0.0/24", gateway="10.0.0.1", dns=("10.0.0.2",), dhcp=False,
            routes=(GuestRoute(cidr="10.9.0.0/16", gateway="10.0.0.9"),))
V6 = Subnet(id="s6", cidr="fd00:1::/64", version=6, gateway="fd00:1::1", dns=("fd00:1::2",), dhcp=False)
CARD = Interface(id="p1", mac="fa:16:3e:00:00:01", network_id="n1", label="l", device="tapp1", mtu=1450, type="ovs",
                 addresses=(FixedAddress(address="10.0.0.5", subnet_id="s4"),
                            FixedAddress(address="fd00:1::5", version=6, subnet_id="s6")), subnets=(V4, V6))


def card(**fields) -> Interface:
    return msgspec.structs.replace(CARD, **fields)


def test_network_data_when_both_families_are_static_then_each_has_its_own_range():
    found = network_data([CARD])
    assert found["links"] == [{"id": "tapp1", "vif_id": "p1", "type": "ovs", "mtu": 1450,
                               "ethernet_mac_address": "fa:16:3e:00:00:01"}]
    common = {"link": "tapp1", "network_id": "n1"}
    assert found["networks"] == [
        {**common, "id": "network0", "type": "ipv4", "ip_address": "10.0.0.5", "netmask": "255.255.255.0",
         "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"},
                    {"network": "10.9.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"}],
         "services": [{"type": "dns", "address": "10.0.0.2"}]},
        {**common, "id": "network1", "type": "ipv6", "ip_address": "fd00:1::5", "netmask": "ffff:ffff:ffff:ffff::",
         "routes": [{"network": "::", "netmask": "::", "gateway": "fd00:1::1"}],
         "services": [{"type": "dns", "address": "fd00:1::2"}]}]
    assert found["services"] == [{"type": "dns", "address": "10.0.0.2"}, {"type": "dns", "address": "fd00:1::2"}]


@pytest.mark.parametrize(("mode", "kind"), [
    ("slaac", "ipv6_slaac"), ("dhcpv6-stateful", "ipv6_dhcpv6-stateful"),
    ("dhcpv6-stateless", "ipv6_dhcpv6-stateless"), (None, "ipv6_dhcp"), ("unheard-of", "ipv6_dhcp")])
def test_network_data_when_ipv6_has_a_mode_then_its_type_says_so(mode, kind):
    v6 = msgspec.structs.replace(V6, dhcp=True, ipv6_mode=mode)
    entry = network_data([card(subnets=(V4, v6))])["networks"][1]
    assert entry["type"] == kind
    assert (set(entry) == {"id", "type", "link", "network_id"}) == (kind == "ipv6_dhcp")


def test_network_data_when_by_dhcp_then_an_entry_has_four_fields_and_the_link_no_mtu():
    v4 = msgspec.structs.replace(V4, dhcp=True)
    more = (*CARD.addresses, FixedAddress(address="10.0.0.6", subnet_id="s4"))
    found = network_data([card(subnets=(v4, V6), addresses=more)])
    assert found["links"][0]["mtu"] is None
    assert [entry for entry in found["networks"] if entry["type"] == "ipv4_dhcp"] == [
        {"id": "network0", "type": "ipv4_dhcp", "link": "tapp1", "network_id": "n1"}], "once a range"
    assert found["services"] == [{"type": "dns", "address": "fd00:1::2"}]


def test_network_data_when_two_ranges_hold_an_address_then_the_subnets_id_decides():
    other = msgspec.structs.replace(V4, id="other", gateway="10.0.0.254")
    entry = network_data([card(subnets=(other, V4), addresses=CARD.addresses[:1])])["networks"][0]
    assert entry["routes"][0]["gateway"] == "10.0.0.1"


@pytest.mark.parametrize(("type_", "shown"), [("bridge", "bridge"), ("hw_veb", "hw_veb"), ("hostdev_physical", "phy"),
                                              ("macvtap", "phy")])
def test_link_when_guests_do_not_know_its_type_then_it_is_phy(type_, shown):
    assert network_data([card(type=type_)])["links"][0]["type"] == shown


INJECTED = card(injected=True, subnets=(msgspec.structs.replace(V4, dhcp=True), V6))


def test_network_data_when_injected_then_addresses_are_told_whatever_the_range_says():
    assert [entry["type"] for entry in network_data([INJECTED])["networks"]] == ["ipv4", "ipv6"]
    assert network_data([INJECTED])["links"][0]["mtu"] == 1450


def test_network_config_when_injected_then_ifupdown_can_read_it():
    assert network_config([CARD, INJECTED]) == """\
# Written by the cloud that this machine runs in.

auto lo
iface lo inet loopback

auto eth1
iface eth1 inet static
    hwaddress ether fa:16:3e:00:00:01
    address 10.0.0.5
    netmask 255.255.255.0
    broadcast 10.0.0.255
    mtu 1450
    gateway 10.0.0.1
    dns-nameservers 10.0.0.2
    post-up ip route add 10.9.0.0/16 via 10.0.0.9 || true

iface eth1 inet6 static
    address fd00:1::5
    netmask 64
    gateway fd00:1::1
    dns-nameservers fd00:1::2
"""


def test_network_config_when_nothing_is_injected_or_there_is_no_template_then_none():
    assert network_config([CARD]) is None and network_config([]) is None
    assert network_config([INJECTED], "") is None
    assert network_config([INJECTED], "mine: $interfaces $other").startswith("mine: auto eth0")


@pytest.mark.parametrize("make", [guest_tree.tree, guest_tree.config_drive_files])
def test_tree_when_networks_are_injected_then_its_content_is_after_the_files(make):
    facts = GuestFacts(uuid="u", id=1, name="n", hostname="h", project_id="p", interfaces=(INJECTED,),
                       files={"/etc/motd": "aGVsbG8="})
    files = make(facts)
    reported = json.loads(files["openstack/2012-08-10/meta_data.json"])
    assert reported["network_config"] == {"name": "network_config", "content_path": "/content/0001"}
    assert files["openstack/content/0000"] == b"hello"
    assert files["openstack/content/0001"].decode() == network_config([INJECTED])
    without = make(facts, TreeOptions(network_template=""))
    assert "network_config" not in json.loads(without["openstack/latest/meta_data.json"])


def test_network_data_when_a_row_of_an_older_release_says_one_range_then_it_is_used():
    old = Interface(id="v", mac="m", network_id="n", label="l", addresses=(FixedAddress(address="10.0.0.5"),),
                    cidr="10.0.0.0/24", gateway="10.0.0.1", dns=("8.8.4.4",))
    assert network_data([old])["networks"][0]["netmask"] == "255.255.255.0"
    assert network_data([msgspec.structs.replace(old, dhcp_server="10.0.0.1")])["networks"][0]["type"] == "ipv4_dhcp"
