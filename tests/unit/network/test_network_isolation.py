"""Rules for frames, and for IPv6, as data."""

from __future__ import annotations

import pytest

from nova.network import firewall, ipv6, isolation
from nova.network.local_network import here, idle
from nova.privileged.ebtables import ETHERNET
from nova.privileged.iptables import Foreign, changes
from tests.fakes.network import guest, network, options, order


def frames(path, *orders, **fields):
    given = options(path, **fields)
    return {table.name: table for table in isolation.tables(
        [here(one, given, lambda net: net.bridge or "", lambda net: net.bridge_interface) for one in orders], given)}


def test_shared_address_keeps_hosts_from_hearing_each_other(tmp_path):
    table = frames(tmp_path, order(1, multi_host=True, share_address=True, bridge_interface="eth1"))["filter"]
    assert table.chains == {
        "nova-network-INPUT": ("-p ARP -i eth1 --arp-ip-dst 10.0.1.1 -j DROP",),
        "nova-network-OUTPUT": ("-p ARP -o eth1 --arp-ip-src 10.0.1.1 -j DROP",),
        "nova-network-FORWARD": ("-p IPv4 -i eth1 --ip-proto udp --ip-dport 67:68 -j DROP",
                                 "-p IPv4 -o eth1 --ip-proto udp --ip-dport 67:68 -j DROP")}


@pytest.mark.parametrize(("fields", "more"), [
    ({"multi_host": True, "bridge_interface": "eth1"}, {}),
    ({"multi_host": True, "share_address": True}, {}),
    ({"share_address": True, "bridge_interface": "eth1"}, {"share_dhcp_address": True}),
])
def test_other_networks_need_no_rules_and_no_program(tmp_path, fields, more):
    tables = frames(tmp_path, order(1, **fields), **more).values()
    assert all(changes(table, {}, Foreign(), ETHERNET) == [] for table in tables)


def test_shared_address_by_the_option_is_the_same(tmp_path):
    table = frames(tmp_path, order(1, multi_host=True, bridge_interface="eth1"), share_dhcp_address=True)["filter"]
    assert len(table.chains["nova-network-FORWARD"]) == 2


def test_router_advertisements_of_a_multi_host_network_stay_with_their_hosts_guests(tmp_path):
    wanted = order(1, multi_host=True, bridge_interface="eth1", cidr_v6="fd00::/64")
    assert frames(tmp_path, wanted, use_ipv6=True)["filter"].chains["nova-network-FORWARD"] == tuple(
        f"-p IPv6 {way} eth1 --ip6-proto ipv6-icmp --ip6-icmp-type router-advertisement -j DROP"
        for way in ("-i", "-o"))


def test_forced_ranges_with_an_external_gateway_are_taken_off_the_bridge(tmp_path):
    table = frames(tmp_path, order(1, gateway="10.0.1.254"), force_snat_range=("203.0.113.9/24", "0.0.0.0/0"))["nat"]
    assert table.chains["nova-network-PREROUTING"] == (
        "-p IPv4 --ip-src 10.0.1.0/24 --ip-dst 10.0.1.0/24 -j RETURN",
        "-p IPv4 --ip-src 10.0.1.0/24 --ip-dst 203.0.113.0/24 -j redirect",
        "-p IPv4 --ip-src 10.0.1.0/24 -j redirect")


def test_here_of_a_multi_host_network_is_the_hosts_own_address(tmp_path):
    one = here(order(1, multi_host=True).__class__(network=network(multi_host=True), host_address="10.0.1.7"),
               options(tmp_path), lambda net: net.bridge or "")
    assert (one.network.dhcp_server, one.network.gateway, one.shared) == ("10.0.1.7", "10.0.1.7", False)


def test_here_of_a_network_without_a_gateway_has_none_either(tmp_path):
    wanted = order(1).__class__(network=network(multi_host=True, gateway=None), host_address="10.0.1.7")
    one = here(wanted, options(tmp_path), lambda net: net.bridge or "")
    assert (one.network.dhcp_server, one.network.gateway) == ("10.0.1.7", None)


@pytest.mark.parametrize(("option", "fields", "guests", "answer"), [
    (True, {"multi_host": True}, (), True),
    (True, {"multi_host": True}, (guest(3, elsewhere=True),), True),
    (True, {"multi_host": True}, (guest(3),), False),
    (True, {}, (), False),
    (False, {"multi_host": True}, (), False),
])
def test_idle_is_a_multi_host_network_without_guests_here_where_the_option_says_so(tmp_path, option, fields, guests,
                                                                                   answer):
    assert idle(order(1, *guests, **fields), options(tmp_path, teardown_unused_network_gateway=option)) is answer


def test_radvd_speaks_from_the_address_that_everybody_computes(tmp_path):
    given = options(tmp_path, use_ipv6=True, host="host1")
    net = network(cidr_v6="fd00:0:0:1::/64", mtu=1400)
    router = ipv6.router(net, given)
    assert router.startswith("fe80::f816:3fff:fe")
    assert ipv6.config(net, "br1", given) == (
        "interface br1\n{\n    AdvSendAdvert on;\n    MinRtrAdvInterval 3;\n    MaxRtrAdvInterval 10;\n"
        f"    AdvLinkMTU 1400;\n    AdvRASrcAddress {{ {router}; }};\n    prefix fd00:0:0:1::/64\n    {{\n"
        "        AdvOnLink on;\n        AdvAutonomous on;\n    };\n};\n")


def test_ipv6_addresses_of_the_host_include_the_ranges_gateway(tmp_path):
    given = options(tmp_path, use_ipv6=True, host="host1")
    fields = {"cidr_v6": "fd00:0:0:1::/64", "gateway_v6": "fd00:0:0:1::1"}
    assert [one.address for one in ipv6.addresses(network(**fields), given)][1:] == ["fd00:0:0:1::1"]
    assert len(list(ipv6.addresses(network(multi_host=True, **fields), given))) == 2
    assert len(list(ipv6.addresses(network(cidr_v6="fd00:0:0:1::/64", gateway_v6="fe80::1"), given))) == 1


def test_ipv6_rules_let_discovery_in_and_drop_the_rest(tmp_path):
    given = options(tmp_path, use_ipv6=True)
    one = here(order(1, cidr_v6="fd00:0:0:1::/64"), given, lambda net: net.bridge or "")
    table, = firewall.tables_v6([one], given)
    assert table.chains["nova-network-INPUT"] == (
        "-i br1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "-i br1 -p ipv6-icmp -j ACCEPT",
        "-s fd00:0:0:1::/64 -i br1 -j DROP", "-s fe80::/10 -i br1 -j DROP")
    assert table.chains["nova-network-FORWARD"] == ("-i br1 -j ACCEPT", "-o br1 -j ACCEPT")
    assert changes(firewall.tables_v6([one], options(tmp_path))[0], {}, Foreign()) == [], "without use_ipv6: nothing"
