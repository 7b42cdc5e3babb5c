"""What rules may say, and what they come to."""

from __future__ import annotations

import pytest

from nova import errors
from nova.model.network import security_rules
from nova.model.network.networks import FixedAddress, Interface, Subnet
from nova.model.network.security_groups import AllowedTraffic, NewSecurityRule, SecurityRule


def wanted(**fields):
    return NewSecurityRule(group_id="1", **fields)


@pytest.mark.parametrize("fields, said", [
    ({"protocol": "TCP", "from_port": 22, "to_port": 22}, ("tcp", 22, 22, "0.0.0.0/0")),
    ({"protocol": "udp", "from_port": 1, "to_port": 65535, "cidr": "10.1.2.3/8"}, ("udp", 1, 65535, "10.0.0.0/8")),
    ({"protocol": "tcp", "from_port": 22, "to_port": 22, "cidr": "::/0"}, ("tcp", 22, 22, "::/0")),
    ({"protocol": "icmp", "from_port": -1, "to_port": -1}, ("icmp", -1, -1, "0.0.0.0/0")),
    ({"protocol": "icmp"}, ("icmp", -1, -1, "0.0.0.0/0")),
    ({"protocol": "icmp", "from_port": 8, "to_port": 0}, ("icmp", 8, 0, "0.0.0.0/0")),
    ({"protocol": "icmpv6", "from_port": 128, "to_port": -1, "cidr": "fd00::/8"}, ("icmpv6", 128, -1, "fd00::/8")),
    ({"source_id": "2"}, (None, None, None, None)),
    ({"source_id": "2", "cidr": "10.0.0.0/8"}, (None, None, None, None)),
    ({"source_id": "2", "from_port": -1, "to_port": -1}, (None, None, None, None)),
    ({"source_id": "2", "protocol": "tcp"}, ("tcp", 1, 65535, None)),
])
def test_rule_when_it_is_good_then_all_of_it_is_said(fields, said):
    rule = security_rules.checked(wanted(**fields))
    assert (rule.protocol, rule.from_port, rule.to_port, rule.cidr) == said


@pytest.mark.parametrize("fields", [
    {}, {"protocol": "gre"}, {"protocol": "tcp"}, {"protocol": "tcp", "from_port": 22},
    {"protocol": "tcp", "from_port": 0, "to_port": 22}, {"protocol": "tcp", "from_port": 23, "to_port": 22},
    {"protocol": "udp", "from_port": 1, "to_port": 65536}, {"protocol": "tcp", "from_port": -1, "to_port": -1},
    {"protocol": "icmp", "from_port": 256, "to_port": 0}, {"protocol": "icmp", "from_port": -1, "to_port": 0},
    {"protocol": "icmp", "from_port": -2, "to_port": -1}, {"protocol": "icmp", "from_port": 8},
    {"protocol": "icmp", "cidr": "10.0.0.0/0"}, {"protocol": "icmp", "cidr": "10.0.0.1"},
    {"protocol": "icmp", "cidr": "0.0.0.0/00"}, {"protocol": "icmp", "cidr": "10.0.0.0/33"},
    {"protocol": "icmp", "cidr": "everybody"}, {"protocol": "icmp", "cidr": "fd00::/0"},
    {"protocol": "icmpv6", "cidr": "10.0.0.0/8"}, {"source_id": "2", "from_port": 1, "to_port": 2},
])
def test_rule_when_it_is_bad_then_it_is_refused(fields):
    with pytest.raises(errors.Invalid):
        security_rules.checked(wanted(**fields))


def rule(**fields):
    return SecurityRule(id="1", group_id="1", **fields)


def test_allowed_when_the_source_group_has_no_members_then_nothing_is():
    assert list(security_rules.allowed(rule(source_id="2"), ())) == []
    assert list(security_rules.allowed(rule(protocol="tcp", from_port=1, to_port=2), ("10.0.0.1",))) == []


def test_allowed_when_members_have_both_kinds_of_addresses_then_icmp_is_each_ones_own():
    found = list(security_rules.allowed(rule(source_id="2", protocol="icmp", from_port=-1, to_port=-1),
                                        ("10.0.0.1", "fd00::1")))
    assert found == [AllowedTraffic(protocol="icmp", from_port=-1, to_port=-1, cidr="10.0.0.1/32"),
                     AllowedTraffic(protocol="icmpv6", from_port=-1, to_port=-1, cidr="fd00::1/128")]


def test_guarded_when_an_interface_has_no_device_or_is_exempted_then_it_is_left_out():
    plain = Interface(id="1", mac="FA:16:3E:00:00:01", network_id="n", label="l", device="tap1", vlan=100,
                      cidr="10.0.0.9/24", addresses=(FixedAddress(address="10.0.0.9"),), dhcp_server="10.0.0.1",
                      subnets=(Subnet(cidr="10.0.0.0/24"), Subnet(cidr="fd00::/64", version=6, gateway="fe80::1")))
    others = [Interface(id="2", mac="fa:16:3e:00:00:02", network_id="n", label="l", device=device, filtered=filtered)
              for device, filtered in ((None, True), ("tap2", False))]
    [found] = security_rules.guarded([plain, *others], {"10.0.0.9"})
    assert (found.mac, found.ranges, found.gateway_v6, found.routes_for_others) == (
        "fa:16:3e:00:00:01", ("10.0.0.0/24", "fd00::/64"), "fe80::1", True)


def test_guarded_when_projects_share_the_network_then_none_of_it_is_open():
    shared = Interface(id="1", mac="fa:16:3e:00:00:01", network_id="n", label="l", device="tap1", cidr="10.0.0.9/24",
                       subnets=(Subnet(cidr="10.0.0.0/24"),))
    assert security_rules.guarded([shared])[0].ranges == ()
