"""Kinds of networks on a real kernel: multi-host with own and shared addresses, IPv6, one default route of several."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.model.network import gateways
from nova.model.network.networks import NetworkOnHost
from tests.fakes.network import guest, network
from tests.machine.network_cases import Cloud, eventually, obstacle

pytestmark = [pytest.mark.in_turn(4, 10),
              pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]
SEARCHED = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")


@pytest.fixture
def clouds(tmp_path, monkeypatch) -> Iterator[contextlib.ExitStack]:
    monkeypatch.setenv("NOVA_CONCURRENCY", "threads")
    with contextlib.ExitStack() as stack:
        yield stack


def cloud_of(clouds: contextlib.ExitStack, state: Path, name: str = "", **settings) -> Cloud:
    state.mkdir(exist_ok=True)
    made = Cloud(state, name, **settings)
    clouds.callback(made.remove)
    made.say()
    made.start()
    return made


def started(cloud: Cloud, *orders: NetworkOnHost) -> None:
    cloud.say(*orders)
    cloud.tell()
    answer = cloud.daemon.stdout.readline().strip()
    assert answer == "ok", f"{answer}\n{cloud.log()}"


def gateway_seen(cloud: Cloud, address: str) -> str:
    """The MAC that the guest finds the address at."""
    cloud.guest("ping", "-c", "1", "-W", "3", address)
    return cloud.guest("ip", "neigh", "show", address).split("lladdr ")[1].split()[0]


def pair(clouds, tmp_path, **fields) -> tuple[Cloud, Cloud]:
    """Two hosts with a cable between them, and a guest each on one multi-host network."""
    one, two = (cloud_of(clouds, tmp_path / name, name) for name in ("one", "two"))
    one.host("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", two.host.name)
    for number, cloud in enumerate((one, two)):
        net = network(1, multi_host=True, bridge_interface="wire", **fields)
        guests = [guest(3 + at, elsewhere=at != number) for at in range(2)]
        started(cloud, NetworkOnHost(network=net, addresses=tuple(guests), version=1,
                                     host_address=net.dhcp_server if net.share_address else f"10.0.1.{11 + number}"))
        cloud.card(guest(3 + number).mac)
        cloud.plug()
    return one, two


def test_hosts_of_a_multi_host_network_are_each_their_own_guests_gateway(clouds, tmp_path):
    for number, cloud in enumerate(pair(clouds, tmp_path)):
        lease = cloud.lease()
        assert (lease["ip"], lease["router"]) == (f"10.0.1.{3 + number}", f"10.0.1.{11 + number}")
        names = (cloud.state / "networks/nova-br1.hosts").read_text().splitlines()
        assert names == ["10.0.1.3\tvm3.novalocal", "10.0.1.4\tvm4.novalocal"]
    cloud.guest("ping", "-c", "1", "-W", "5", "10.0.1.3")


def test_hosts_that_share_an_address_do_not_hear_each_other(clouds, tmp_path):
    one, two = pair(clouds, tmp_path, share_address=True)
    for number, cloud in enumerate((one, two)):
        lease = cloud.lease()
        assert (lease["ip"], lease["router"]) == (f"10.0.1.{3 + number}", "10.0.1.1")
        own = cloud.host("cat", "/sys/class/net/br1/address").strip()
        assert gateway_seen(cloud, "10.0.1.1") == own
    one.guest("ping", "-c", "1", "-W", "5", "10.0.1.4")
    two.guest("ip", "neigh", "flush", "all")
    two.host("ip", "addr", "flush", "dev", "br1")  # now only the other host has it
    with pytest.raises(AssertionError):
        two.guest("ping", "-c", "1", "-W", "1", "10.0.1.1")
    before = one.host("ebtables-save")
    assert "--arp-ip-dst 10.0.1.1 -j DROP" in before
    one.kill()
    one.start()
    net = network(1, multi_host=True, bridge_interface="wire", share_address=True)
    started(one, NetworkOnHost(network=net, addresses=(guest(3),), version=2, host_address="10.0.1.1"))
    rules = [line for line in one.host("ebtables-save").splitlines() if not line.startswith("#")]
    assert rules == [line for line in before.splitlines() if not line.startswith("#")]


@pytest.mark.skipif(not shutil.which("radvd", path=SEARCHED), reason="needs radvd")
def test_guest_learns_its_ipv6_router_and_makes_its_address(clouds, tmp_path):
    cloud = cloud_of(clouds, tmp_path, use_ipv6=True, host="host1")
    net = network(1, cidr_v6="fd00:0:0:1::/64", gateway_v6="fd00:0:0:1::1")
    order = NetworkOnHost(network=net, addresses=(guest(3),), version=1)
    started(cloud, order)
    cloud.plug()
    router = gateways.gateway_v6(net)
    eventually(lambda: f"via {router}" in cloud.guest("ip", "-6", "route", "show", "default"), "an advertisement came")
    eventually(lambda: "fd00::1:f816:3eff:fe00:103" in cloud.guest("ip", "-6", "addr", "show", "dev", "eth0",
                                                                  "-tentative"), "the address is made")
    cloud.guest("ping", "-c", "1", "-W", "5", "fd00:0:0:1::1")
    assert cloud.host("cat", "/proc/sys/net/ipv6/conf/all/forwarding") == "1\n"
    assert cloud.missing(order) == []
    radvds = sorted(pid for pid in cloud.host.pids() if b"radvd" in Path(f"/proc/{pid}/cmdline").read_bytes())
    cloud.kill()
    cloud.start()
    started(cloud, order)
    assert sorted(pid for pid in cloud.host.pids()
                  if b"radvd" in Path(f"/proc/{pid}/cmdline").read_bytes()) == radvds
    assert len(radvds) == 2
    cloud.say()
    cloud.host("ip", "link", "set", "tap1", "nomaster")
    cloud.kill()
    cloud.start()
    eventually(lambda: "br1" not in cloud.host("ip", "-o", "link"), "the network is gone")
    assert not [pid for pid in cloud.host.pids() if b"radvd" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    eventually(lambda: "fd00:" not in cloud.host("ip6tables-save"), "no rule is left")


def test_one_of_several_interfaces_has_the_default_route(clouds, tmp_path):
    cloud = cloud_of(clouds, tmp_path, use_single_default_gateway=True)
    first, second = guest(3, vif_id="7c8c1a"), guest(4, vif_id="9d0e", default_route=False)
    started(cloud, NetworkOnHost(network=network(1), addresses=(first, second), version=1))
    cloud.plug()
    assert cloud.lease()["router"] == "10.0.1.1"
    cloud.card(second.mac)
    (tmp_path / "udhcpc.env").unlink()
    lease = cloud.lease()
    assert lease["ip"] == "10.0.1.4" and "router" not in lease


def test_networks_side_by_side_and_forced_ranges_are_what_the_kernel_says_they_are(clouds, tmp_path):
    cloud = cloud_of(clouds, tmp_path, force_snat_range=["203.0.113.0/24", "198.51.100.7/32", "0.0.0.0/0"],
                     forward_bridge_interface=["out0"], dmz_cidr=["172.16.0.0/12"])
    orders = (NetworkOnHost(network=network(1, gateway="10.0.1.254"), addresses=(guest(3),), version=1),
              NetworkOnHost(network=network(2, gateway=None), addresses=(guest(3, 2),), version=1),
              NetworkOnHost(network=network(3, vpn_private_address="10.0.3.2", vpn_public_address="192.0.2.9",
                                            vpn_public_port=1000), version=1))
    started(cloud, *orders)
    assert len(cloud.dnsmasqs()) == 3
    assert cloud.missing(*orders) == []
    assert json.loads((tmp_path / "networks/nova-br2.standing").read_text())["made"] == ["br2"]


def test_forced_ranges_are_translated_here_though_the_gateway_is_another_machine(clouds, tmp_path):
    cloud = cloud_of(clouds, tmp_path, force_snat_range=["192.0.2.0/24"])
    outside = cloud.outside()
    clouds.callback(outside.remove)
    started(cloud, NetworkOnHost(network=network(1, gateway="10.0.1.254"), addresses=(guest(3),), version=1))
    cloud.plug()
    assert cloud.lease()["router"] == "10.0.1.254"
    router = "fa:16:3e:99:99:99"  # it is somewhere else, and would not help
    cloud.guest("ip", "neigh", "replace", "10.0.1.254", "lladdr", router, "dev", "eth0", "nud", "permanent")
    outside.respond("192.0.2.200", 8080)
    assert cloud.get("http://192.0.2.200:8080/") == "192.0.2.9"
    assert "10.0.1.254" in cloud.guest("ip", "route", "get", "192.0.2.200")
