"""What hosts are told of where guests are, so that they keep them from all else of the operator's."""

from __future__ import annotations

from nova.model.network.floating import FloatingRange
from nova.model.network.networks import NewNetwork


def test_guest_ranges_when_there_are_networks_and_floating_addresses_then_all_are_told_in_few_ranges(cloud):
    before = cloud.hosts.guest_ranges("a")
    for label, cidr, cidr_v6 in (("one", "10.20.0.0/24", "fd20::/64"), ("two", "10.20.1.0/24", None)):
        cloud.control.create_network(NewNetwork(label=label, cidr=cidr, cidr_v6=cidr_v6, bridge=f"br{label}"))
    cloud.control.create_floating_addresses(FloatingRange(ip_range="203.0.113.0/29", pool="public"))
    assert cloud.hosts.guest_ranges("b") == before, "one answer serves all hosts for some seconds"
    cloud.clock_s += 3
    told = cloud.hosts.guest_ranges("a")
    assert set(told) - set(before) == {"10.20.0.0/23", "fd20::/64", "203.0.113.1/32", "203.0.113.2/31",
                                       "203.0.113.4/31", "203.0.113.6/32"}
