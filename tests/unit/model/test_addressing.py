"""The rules by which networks and their pools are made (contract/legacy/nova_network.md, section 3)."""

from __future__ import annotations

import ipaddress
import re

import pytest

from nova import errors
from nova.errors import Conflict, Invalid
from nova.model.network import addressing
from nova.model.network.addressing import Defaults, plan
from nova.model.network.networks import Network, NewNetwork


def asked(**fields) -> NewNetwork:
    return NewNetwork(**{"label": "net", "cidr": "10.0.0.0/24", "bridge": "br100", **fields})


def existing(*cidrs: str) -> list[Network]:
    return [Network(uuid=str(number), label="old", cidr=cidr) for number, cidr in enumerate(cidrs)]


def only(**fields) -> addressing.PlannedNetwork:
    made, = plan(asked(**fields), []).networks
    return made


def usable(made: addressing.PlannedNetwork) -> list[str]:
    return [row.address for row in made.pool if not row.reserved]


def test_plan_with_a_cidr_alone_gives_the_first_address_to_the_gateway():
    network = only(cidr="10.0.0.0/29").network
    assert (network.cidr, network.netmask, network.broadcast) == ("10.0.0.0/29", "255.255.255.248", "10.0.0.7")
    assert (network.gateway, network.dhcp_server, network.dhcp_start) == ("10.0.0.1", "10.0.0.1", "10.0.0.2")
    assert (network.bridge, network.dns1, network.host, network.enable_dhcp) == ("br100", "8.8.4.4", None, True)


def test_plan_with_a_cidr_alone_reserves_two_low_and_one_high():
    made = only(cidr="10.0.0.0/29")
    assert len(made.pool) == 8
    assert usable(made) == [f"10.0.0.{last}" for last in range(2, 7)]


def test_plan_with_gateway_and_dhcp_server_reserves_both():
    made = only(cidr="10.0.0.0/29", gateway="10.0.0.6", dhcp_server="10.0.0.3")
    assert (made.network.gateway, made.network.dhcp_server) == ("10.0.0.6", "10.0.0.3")
    assert usable(made) == ["10.0.0.2", "10.0.0.4", "10.0.0.5"]


def test_plan_with_allowed_range_reserves_what_is_outside():
    made = only(cidr="10.0.0.0/24", allowed_start="10.0.0.100", allowed_end="10.0.0.102")
    assert usable(made) == ["10.0.0.100", "10.0.0.101", "10.0.0.102"]
    assert len(made.pool) == 256


def test_plan_with_fixed_cidr_makes_rows_of_that_part_only():
    made = only(cidr="10.0.0.0/24", fixed_cidr="10.0.0.192/30")
    assert [row.address for row in made.pool] == [f"10.0.0.{last}" for last in range(192, 196)]
    assert usable(made) == [f"10.0.0.{last}" for last in range(192, 196)]


@pytest.mark.parametrize(("cidr", "fields", "cuts"), [
    ("10.0.0.0/24", {}, ["10.0.0.0/24"]),
    ("10.0.0.77/24", {}, ["10.0.0.0/24"]),
    ("10.0.0.0/24", {"num_networks": 2}, ["10.0.0.0/25", "10.0.0.128/25"]),
    ("10.0.0.0/24", {"num_networks": 3}, ["10.0.0.0/26", "10.0.0.64/26", "10.0.0.128/26"]),
    ("10.0.0.0/16", {"num_networks": 2}, ["10.0.0.0/24", "10.0.1.0/24"]),
    ("10.0.0.0/16", {"network_size": 4096}, ["10.0.0.0/20"]),
    ("10.0.0.0/24", {"network_size": 17}, ["10.0.0.0/27"]),
])
def test_plan_cuts_the_range_in_powers_of_two(cidr, fields, cuts):
    assert [made.network.cidr for made in plan(asked(cidr=cidr, **fields), []).networks] == cuts


def test_plan_of_a_large_range_is_cut_with_a_warning():
    made = plan(asked(cidr="10.0.0.0/16"), [])
    assert made.networks[0].network.cidr == "10.0.0.0/24"
    assert len(made.warnings) == 1 and "/24" in made.warnings[0]


def test_plan_of_a_large_range_with_a_larger_default_is_not_cut():
    made = plan(asked(cidr="10.0.0.0/22"), [], Defaults(network_size=1024))
    assert made.networks[0].network.cidr == "10.0.0.0/22" and not made.warnings


def test_plan_of_several_networks_numbers_the_labels():
    made = plan(asked(num_networks=2), [], new_uuid=iter("ab").__next__)
    assert [item.network.label for item in made.networks] == ["net_0", "net_1"]
    assert [item.network.uuid for item in made.networks] == ["a", "b"]


@pytest.mark.parametrize(("used", "cut"), [
    (["10.0.0.0/24"], "10.0.1.0/24"),
    (["10.0.0.0/24", "10.0.1.0/24", "10.0.3.0/24"], "10.0.2.0/24"),
    (["10.0.0.128/25"], "10.0.1.0/24"),
    (["10.0.0.0/17"], "10.0.128.0/24"),
    (["172.16.0.0/12"], "10.0.0.0/24"),
])
def test_plan_when_a_subnet_is_used_moves_to_the_next_free_one(used, cut):
    made = plan(asked(cidr="10.0.0.0/16", network_size=256), existing(*used))
    assert made.networks[0].network.cidr == cut


@pytest.mark.parametrize(("cidr", "used"), [
    ("10.0.0.0/24", "10.0.0.0/24"),
    ("10.0.0.0/24", "10.0.0.64/26"),
    ("10.0.0.0/24", "10.0.0.0/8"),
])
def test_plan_when_nothing_is_free_is_a_conflict_that_names_both(cidr, used):
    with pytest.raises(errors.network.CidrConflict, match=f"{cidr}.*{used}") as caught:
        plan(asked(cidr=cidr, network_size=256), existing(used))
    assert isinstance(caught.value, Conflict)


def test_plan_with_ipv6_makes_a_64():
    network = only(cidr_v6="fd00::/48").network
    assert (network.cidr_v6, network.gateway_v6, network.netmask_v6) == ("fd00::/64", "fd00::1", "64")


def test_plan_with_ipv6_alone_has_no_pool():
    made = only(cidr=None, cidr_v6="fd00::/64")
    assert made.network.cidr is None and made.pool == ()


def test_plan_with_configured_defaults_uses_them_where_nothing_was_said():
    defaults = Defaults(bridge="br7", bridge_interface="eth1", dns1="9.9.9.9", mtu=1400, multi_host=True)
    network = plan(NewNetwork(label="n", cidr="10.0.0.0/24", dns1="1.1.1.1"), [], defaults).networks[0].network
    assert (network.bridge, network.bridge_interface, network.dns1) == ("br7", "eth1", "1.1.1.1")
    assert (network.mtu, network.multi_host) == (1400, True)


@pytest.mark.parametrize(("field", "fields"), [
    ("label", {"label": ""}),
    ("label", {"label": "x" * 256}),
    ("label", {"label": "a,b"}),
    ("label", {"label": "x" * 254, "num_networks": 2}),
    ("cidr", {"cidr": None}),
    ("cidr", {"cidr": "10.0.0.0/33"}),
    ("cidr", {"cidr": "fd00::/64"}),
    ("cidr", {"cidr": "10.0.0.0/31"}),
    ("cidr_v6", {"cidr_v6": "10.0.0.0/24"}),
    ("cidr_v6", {"cidr_v6": "fd00::/80"}),
    ("bridge", {"bridge": None}),
    ("bridge", {"bridge": "a/../../b"}),
    ("bridge", {"bridge": "-x"}),
    ("bridge", {"bridge": "sixteen-letters-"}),
    ("bridge_interface", {"bridge_interface": "eth 0"}),
    ("mtu", {"mtu": 67}),
    ("num_networks", {"num_networks": 0}),
    ("network_size", {"network_size": 2}),
    ("network_size", {"network_size": 512}),
    ("network_size", {"num_networks": 2, "network_size": 256}),
    ("network_size", {"cidr": "10.0.0.0/8", "network_size": 1 << 24}),
    ("gateway", {"gateway": "10.0.1.1"}),
    ("gateway", {"gateway": "10.0.0.255"}),
    ("gateway", {"gateway": "10.0.0.9", "num_networks": 2}),
    ("dhcp_server", {"dhcp_server": "x"}),
    ("gateway_v6", {"cidr_v6": "fd00::/64", "gateway_v6": "10.0.0.1"}),
    ("dns2", {"dns2": "8.8.8"}),
    ("fixed_cidr", {"fixed_cidr": "10.0.1.0/28"}),
    ("fixed_cidr", {"fixed_cidr": "10.0.0.0/31"}),
    ("allowed_start", {"allowed_start": "10.1.0.0"}),
    ("allowed_end", {"allowed_end": "10.1.0.0"}),
    ("allowed_start", {"allowed_start": "10.0.0.9", "allowed_end": "10.0.0.8"}),
    ("uuid", {"uuid": "net-1"}),
])
def test_plan_with_bad_input_names_the_field(field, fields):
    with pytest.raises(errors.network.Invalid) as caught:
        plan(asked(**fields), [])
    assert caught.value.data["field"] == field and isinstance(caught.value, Invalid)


def test_plan_never_gives_an_address_twice_over_many_requests():
    made: list[Network] = []
    pools: set[str] = set()
    for _ in range(16):
        planned, = plan(asked(cidr="10.0.0.0/20", network_size=256), made).networks
        assert pools.isdisjoint(usable(planned))
        pools.update(usable(planned))
        made.append(planned.network)
    with pytest.raises(Conflict):
        plan(asked(cidr="10.0.0.0/20", network_size=256), made)
    assert all(ipaddress.ip_address(address) in ipaddress.ip_network("10.0.0.0/20") for address in pools)


def test_generate_mac_uses_our_prefix_and_the_bytes_given():
    assert addressing.generate_mac(lambda count: bytes(range(count))) == "fa:16:3e:00:01:02"
    assert re.fullmatch(r"fa:16:3e(:[0-9a-f]{2}){3}", addressing.generate_mac())


@pytest.mark.parametrize(("field", "range_"), [("cidr", "127.0.0.0/24"), ("cidr", "169.254.169.0/24"),
                                               ("cidr", "0.0.0.0/1"), ("cidr", "0.0.0.0/0"), ("cidr", "240.0.0.0/24"),
                                               ("cidr_v6", "fe80::/64"), ("cidr_v6", "::/64")])
def test_network_when_hosts_speak_by_its_range_then_nobody_makes_it(field: str, range_: str) -> None:
    for by_project in (True, False):
        with pytest.raises(errors.network.Invalid, match=f"{field}. {range_} overlaps .* reserved for hosts"):
            addressing.plan(NewNetwork(label="n", bridge="br0", by_project=by_project, **{field: range_}), ())
    allowed = {"cidr": "172.0.0.0/24", "cidr_v6": "fd00::/64"}[field]
    assert addressing.plan(NewNetwork(label="n", bridge="br0", by_project=True, **{field: allowed}), ()).networks
