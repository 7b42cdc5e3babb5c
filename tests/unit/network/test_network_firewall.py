"""Rules, as data, for networks and options."""

from __future__ import annotations

import pytest

from nova import errors
from nova.model.network.forbidden_ranges import Forbidden
from nova.model.network.networks import NetworkOnHost
from nova.network import firewall
from nova.network.local_network import LocalNetwork, here
from nova.privileged.iptables import Table
from tests.fakes.network import network, options


def made(tmp_path, *networks, **fields) -> dict[str, Table]:
    given = options(tmp_path, **fields)
    return {table.name: table for table in firewall.tables(served(given, *networks), given)}


def served(given, *networks) -> list[LocalNetwork]:
    return [here(NetworkOnHost(network=one), given, lambda network: network.bridge or "") for one in networks]


def test_tables_of_one_network_are_these(tmp_path):
    tables = made(tmp_path, network())
    assert tables["nat"].chains == {
        "nova-network-PREROUTING":
            ("-d 169.254.169.254/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 192.0.2.9:8775",),
        "nova-network-OUTPUT": (),
        "nova-network-POSTROUTING": ("-s 10.0.1.0/24 -d 192.0.2.9/32 -j ACCEPT",
                                     "-s 10.0.1.0/24 -d 10.0.1.0/24 -m conntrack ! --ctstate DNAT -j ACCEPT"),
        "nova-network-float-snat": (),
        "nova-network-snat": ("-j nova-network-float-snat",
                              "-s 10.0.1.0/24 -o eth0 -j SNAT --to-source 192.0.2.1"),
    }
    assert tables["filter"].chains["nova-network-INPUT"] == (
        "-i br1 -p udp -m udp --dport 67 -j ACCEPT", "-i br1 -p tcp -m tcp --dport 67 -j ACCEPT",
        "-i br1 -p udp -m udp --dport 53 -j ACCEPT", "-i br1 -p tcp -m tcp --dport 53 -j ACCEPT",
        "-i br1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        "-i br1 -p tcp -m tcp --dport 8775 -m conntrack --ctstate DNAT -j ACCEPT",
        "-i br1 -p icmp -m icmp --icmp-type 8 -j ACCEPT",
        "-s 10.0.1.0/24 -i br1 -j DROP")
    assert tables["filter"].chains["nova-network-FORWARD"] == ("-i br1 -j ACCEPT", "-o br1 -j ACCEPT")
    assert tables["mangle"].chains["nova-network-POSTROUTING"] == (
        "-o br1 -p udp -m udp --dport 68 -j CHECKSUM --checksum-fill",)


def test_tables_jump_where_operators_look(tmp_path):
    tables = made(tmp_path, network())
    assert tables["filter"].first["FORWARD"] == ("nova-filter-top", "nova-network-FORWARD")
    assert tables["filter"].first["nova-filter-top"] == ("nova-network-local",)
    assert tables["nat"].last == {"POSTROUTING": ("nova-postrouting-bottom",)}
    assert tables["nat"].first["nova-postrouting-bottom"] == ("nova-network-snat",)
    names = [name for table in tables.values() for name in (*table.chains, *table.shared)]
    assert all(len(name) <= 28 for name in names), "the kernel's limit"


def test_tables_do_not_depend_on_the_order_of_networks(tmp_path):
    one, two = network(1), network(2)
    assert made(tmp_path, one, two) == made(tmp_path, two, one)


def test_metadata_on_loopback_is_redirected(tmp_path):
    rules = made(tmp_path, metadata_host="127.0.0.1", metadata_port=9000)["nat"].chains["nova-network-PREROUTING"]
    assert rules == ("-d 169.254.169.254/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 9000",)


def test_snat_with_an_external_gateway_covers_forced_ranges_only(tmp_path):
    outside = network(gateway="10.0.1.254")
    assert made(tmp_path, outside)["nat"].chains["nova-network-snat"] == ("-j nova-network-float-snat",)
    forced = made(tmp_path, outside, force_snat_range=("203.0.113.9/24",))["nat"].chains["nova-network-snat"]
    assert forced[1:] == ("-s 10.0.1.0/24 -d 203.0.113.0/24 -o eth0 -j SNAT --to-source 192.0.2.1",)


def test_dmz_keeps_its_source_address(tmp_path):
    rules = made(tmp_path, network(), dmz_cidr=("172.16.0.0/12",))["nat"].chains["nova-network-POSTROUTING"]
    assert "-s 10.0.1.0/24 -d 172.16.0.0/12 -j ACCEPT" in rules


def test_forwarding_with_named_interfaces_drops_the_rest(tmp_path):
    rules = made(tmp_path, network(), forward_bridge_interface=("eth1",),
                 iptables_drop_action="LOGDROP")["filter"].chains["nova-network-FORWARD"]
    assert rules == ("-i br1 -o br1 -j ACCEPT", "-i br1 -o eth1 -j ACCEPT", "-i eth1 -o br1 -j ACCEPT",
                     "-i br1 -j LOGDROP", "-o br1 -j LOGDROP")


def test_forwarding_without_a_gateway_is_dropped(tmp_path):
    rules = made(tmp_path, network(gateway=None))["filter"].chains["nova-network-FORWARD"]
    assert rules == ("-i br1 -j DROP", "-o br1 -j DROP")


def test_tables_without_networks_keep_the_metadata_rule(tmp_path):
    tables = made(tmp_path)
    assert tables["filter"].chains["nova-network-FORWARD"] == ()
    assert len(tables["nat"].chains["nova-network-PREROUTING"]) == 1


FORBIDDEN = Forbidden(("10.0.0.0/8", "fd12::/64"), ("10.0.1.0/24", "10.200.0.53/32", "fd12::/80"))


def test_forbidden_ranges_when_there_are_some_then_they_end_before_anything_is_let_through(tmp_path):
    given = options(tmp_path, iptables_drop_action="LOGDROP")
    table = firewall.tables(served(given, network(), network(2)), given, FORBIDDEN)[0]
    assert table.chains["nova-network-FORWARD"] == (
        "-d 10.0.0.0/8 -i br1 -j nova-network-forbidden", "-d 10.0.0.0/8 -i br2 -j nova-network-forbidden",
        "-i br1 -j ACCEPT", "-o br1 -j ACCEPT", "-i br2 -j ACCEPT", "-o br2 -j ACCEPT")
    assert table.chains["nova-network-forbidden"] == (
        "-m conntrack --ctstate RELATED -j RETURN", "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j RETURN",
        "-d 10.0.1.0/24 -j RETURN", "-d 10.200.0.53/32 -j RETURN",
        "-d 192.0.2.9/32 -p tcp -m tcp --dport 8775 -m conntrack --ctstate DNAT -j RETURN", "-j LOGDROP")


def test_forbidden_ranges_of_ipv6_when_there_are_some_then_they_end_there_and_know_no_metadata(tmp_path):
    given = options(tmp_path, use_ipv6=True)
    [table] = firewall.tables_v6(served(given, network(cidr_v6="fd12::/80")), given, FORBIDDEN)
    assert table.chains["nova-network-FORWARD"][0] == "-d fd12::/64 -i br1 -j nova-network-forbidden"
    assert table.chains["nova-network-forbidden"] == (
        "-m conntrack --ctstate RELATED -j RETURN", "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j RETURN",
        "-d fd12::/80 -j RETURN", "-j DROP")


def test_forbidden_ranges_when_there_are_none_then_no_rule_is_about_them(tmp_path):
    chains = made(tmp_path, network())["filter"].chains
    assert chains["nova-network-forbidden"] == ()
    assert not any("forbidden" in rule for rule in chains["nova-network-FORWARD"])


@pytest.mark.parametrize("words", [("none", "auto"), (), ("intern",), ("0.0.0.0/0",)])
def test_forbidden_ranges_when_they_are_ill_said_then_nova_network_does_not_start(tmp_path, words):
    with pytest.raises(errors.network.Option, match="guest_forbidden_ranges"):
        options(tmp_path, guest_forbidden_ranges=words)


def test_dmz_when_it_has_ranges_of_ipv6_then_they_are_not_said_in_ipv4(tmp_path):
    rules = made(tmp_path, network(), dmz_cidr=("fd12::/64",))["nat"].chains["nova-network-POSTROUTING"]
    assert not any("fd12" in rule for rule in rules)
