"""The rules themselves: whose text is what the kernel's tools print."""

from __future__ import annotations

from nova.compute.filter import frame_rules, packet_rules
from nova.compute.filter.packet_rules import RuleOptions
from nova.model.network.forbidden_ranges import Forbidden
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.privileged.forbidden_rules import MetadataService

MAC = "fa:16:3e:00:00:05"


def interface(**fields):
    return GuardedInterface(**{"mac": MAC, "device": "tap5", "bridge": "br100", "addresses": ("10.0.0.5", "fd00::5"),
                               "ranges": ("10.0.0.0/24", "fd00::/64"), "dhcp_server": "10.0.0.1",
                               "gateway_v6": "fe80::1", **fields})


def state(*allowed, dropped=(), **fields):
    guest = GuestFirewall(server_uuid="u", id=5, instance_name="i", interfaces=(interface(**fields),), allowed=allowed)
    return HostFirewall(host="a", guests=(guest,), dropped=dropped)


def traffic(protocol, first, last, cidr):
    return AllowedTraffic(protocol=protocol, from_port=first, to_port=last, cidr=cidr)


def chain(table, name="inst-5"):
    return list(table.chains[f"nova-compute-{name}"])


def test_chain_when_a_guest_has_rules_then_they_stand_between_answers_and_the_drop():
    table = packet_rules.table(state(
        traffic("tcp", 22, 22, "0.0.0.0/0"), traffic("udp", 1, 9, "192.0.2.0/24"),
        traffic("icmp", -1, -1, "10.1.0.0/16"), traffic("icmp", 8, -1, "10.1.0.0/16"),
        traffic("icmp", 3, 1, "10.1.0.0/16"), traffic("tcp", 80, 80, "::/0"),
        traffic("icmpv6", 128, 0, "::/0")), RuleOptions(), 4)
    assert chain(table) == [
        "-m conntrack --ctstate INVALID -j DROP",
        "-m conntrack --ctstate RELATED -j ACCEPT",
        "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j ACCEPT",
        "-m conntrack --ctstate ESTABLISHED -m connmark ! --mark 0x20000000/0x20000000 -j ACCEPT",
        "-j nova-compute-provider",
        "-s 10.0.0.1/32 -p udp -m udp --sport 67 --dport 68 -j ACCEPT",
        "-s 10.0.0.0/24 -j ACCEPT",
        "-p tcp -m tcp --dport 22 -j ACCEPT",
        "-s 192.0.2.0/24 -p udp -m multiport --dports 1:9 -j ACCEPT",
        "-s 10.1.0.0/16 -p icmp -j ACCEPT",
        "-s 10.1.0.0/16 -p icmp -m icmp --icmp-type 8 -j ACCEPT",
        "-s 10.1.0.0/16 -p icmp -m icmp --icmp-type 3/1 -j ACCEPT",
        "-j nova-compute-sg-fallback"]
    assert chain(table, "local") == ["-d 10.0.0.5/32 -j nova-compute-inst-5"]
    assert table.first["FORWARD"] == ("nova-filter-top", "nova-compute-FORWARD")
    assert table.first["nova-filter-top"] == ("nova-compute-local",)


def test_chain_of_ipv6_when_the_guest_has_an_address_then_its_link_local_one_is_guarded_too():
    table = packet_rules.table(state(traffic("tcp", 80, 80, "::/0"), traffic("icmpv6", 128, 0, "2001:db8::/32"),
                                     traffic("tcp", 22, 22, "0.0.0.0/0")), RuleOptions(), 6)
    assert chain(table)[5:] == [
        "-s fd00::/64 -j ACCEPT",
        "-s fe80::1/128 -p ipv6-icmp -j ACCEPT",
        "-s fe80::/64 -j ACCEPT",
        "-p tcp -m tcp --dport 80 -j ACCEPT",
        "-s 2001:db8::/32 -p ipv6-icmp -m icmp6 --icmpv6-type 128/0 -j ACCEPT",
        "-j nova-compute-sg-fallback"]
    assert chain(table, "local") == ["-d fd00::5/128 -j nova-compute-inst-5",
                                     "-d fe80::f816:3eff:fe00:5/128 -j nova-compute-inst-5"]


def test_chain_when_a_network_s_guests_are_strangers_then_only_neighbours_are_found():
    closed = RuleOptions(same_net=False, drop="LOGDROP")
    assert chain(packet_rules.table(state(), closed, 4))[5:] == [
        "-s 10.0.0.1/32 -p udp -m udp --sport 67 --dport 68 -j ACCEPT", "-j nova-compute-sg-fallback"]
    assert [rule[-30:] for rule in chain(packet_rules.table(state(), closed, 6))[6:8]] == [
        "icmp6 --icmpv6-type 135 -j ACCEPT"[-30:], "icmp6 --icmpv6-type 136 -j ACCEPT"[-30:]]
    assert chain(packet_rules.table(state(), closed, 4), "sg-fallback") == ["-j LOGDROP"]


def test_provider_when_something_is_dropped_then_each_version_has_its_own():
    dropped = (traffic("tcp", 25, 25, "0.0.0.0/0"), traffic("udp", 53, 53, "::/0"))
    assert chain(packet_rules.table(state(dropped=dropped), RuleOptions(), 4), "provider") == [
        "-p tcp -m tcp --dport 25 -j DROP"]
    assert chain(packet_rules.table(state(dropped=dropped), RuleOptions(), 6), "provider") == [
        "-p udp -m udp --dport 53 -j DROP"]


def test_table_when_guests_come_in_another_order_then_it_is_the_same():
    one = state().guests[0]
    other = GuestFirewall(server_uuid="v", id=2, instance_name="j", interfaces=(interface(device="tap2"),))
    for make in (lambda s: packet_rules.table(s, RuleOptions(), 4), frame_rules.table):
        assert make(HostFirewall(host="a", guests=(one, other))) == make(HostFirewall(host="a", guests=(other, one)))


def test_frames_when_a_guest_sends_then_only_as_itself():
    table = frame_rules.table(state())
    assert chain(table, "taps") == ["-i tap5 -j nova-compute-tap5"]
    rules = chain(table, "tap5")
    assert rules[0] == f"-s ! {MAC} -j DROP" and rules[-1] == "-j DROP"
    assert "-p IPv4 --ip-src 10.0.0.5 -j RETURN" in rules and "-p IPv6 --ip6-src fd00::5 -j RETURN" in rules
    before = rules.index("-p IPv4 --ip-proto udp --ip-sport 67 --ip-dport 68 -j DROP")
    assert before < rules.index("-p IPv4 --ip-src 10.0.0.5 -j RETURN")
    assert rules.index("-p ARP --arp-ip-src 10.0.0.5 -j RETURN") < rules.index("-p ARP -j DROP")
    assert "-p IPv4 -j RETURN" not in rules


def test_frames_when_a_guest_speaks_to_all_then_it_does_not_hear_itself():
    table = frame_rules.table(state())
    assert chain(table, "echoes") == [f"-s {MAC} -d Multicast -o tap5 -j DROP"]
    assert table.first["POSTROUTING"] == ("nova-compute-echoes",)


def test_frames_when_a_guest_routes_then_others_sources_pass_but_no_dhcp_answers():
    rules = chain(frame_rules.table(state(routes_for_others=True)), "tap5")
    assert "-p IPv4 -j RETURN" in rules and rules[0] == f"-s ! {MAC} -j DROP"
    assert rules.index(frame_rules.NEVER[0]) < rules.index("-p IPv4 -j RETURN")


def test_tables_when_a_host_has_no_guests_then_frames_need_nothing():
    assert frame_rules.table(HostFirewall(host="a")).silent()


FORBIDDEN = Forbidden(("10.0.0.0/8", "fd00::/48"), ("10.0.0.0/24", "fd00::/64"))
ANSWERS = ["-m conntrack --ctstate RELATED -j RETURN", "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j RETURN"]


def test_forbidden_when_a_guest_sends_there_then_it_ends_but_for_its_own_network_metadata_and_answers():
    options = RuleOptions(drop="LOGDROP", metadata=MetadataService("10.200.0.1", 8775))
    table = packet_rules.table(state(), options, 4, FORBIDDEN)
    entry = "-d 10.0.0.0/8 -i br100 -j nova-compute-forbidden"
    assert chain(table, "FORWARD")[-1] == chain(table, "INPUT")[-1] == entry
    assert chain(table, "forbidden") == [
        *ANSWERS, "-d 10.0.0.0/24 -j RETURN",
        "-d 10.200.0.1/32 -p tcp -m tcp --dport 8775 -m conntrack --ctstate DNAT -j RETURN",
        "-s 10.0.0.5/32 -j LOGDROP"]


def test_forbidden_of_ipv6_when_a_guest_sends_there_then_it_ends_from_each_of_its_addresses():
    table = packet_rules.table(state(), RuleOptions(metadata=MetadataService("fd00::9", 8775)), 6, FORBIDDEN)
    assert chain(table, "FORWARD") == ["-d fd00::/48 -i br100 -j nova-compute-forbidden"]
    assert chain(table, "forbidden") == [*ANSWERS, "-d fd00::/64 -j RETURN", "-s fd00::5/128 -j DROP",
                                         "-s fe80::f816:3eff:fe00:5/128 -j DROP"]


def test_forbidden_when_a_guest_routes_for_others_then_whatever_source_it_gives():
    table = packet_rules.table(state(routes_for_others=True), RuleOptions(), 4, FORBIDDEN)
    assert chain(table, "forbidden")[-1] == "-i br100 -j DROP"


def test_forbidden_when_a_guest_s_bridge_is_not_known_then_all_devices_are_asked_about():
    table = packet_rules.table(state(bridge=None, routes_for_others=True), RuleOptions(), 4, FORBIDDEN)
    assert chain(table, "FORWARD")[-1] == "-d 10.0.0.0/8 -j nova-compute-forbidden"
    assert chain(table, "forbidden")[-1] == "-s 10.0.0.5/32 -j DROP"


def test_forbidden_when_nothing_is_then_no_rule_is_about_it():
    table = packet_rules.table(state(), RuleOptions(), 4)
    assert chain(table, "forbidden") == [] and not any("forbidden" in rule for rule in chain(table, "FORWARD"))
