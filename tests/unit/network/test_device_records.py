"""What is taken away with a network, and what stays: on fake machinery."""

from __future__ import annotations

import pytest

from nova.model.network.networks import NetworkOnHost
from nova.network.device_records import NetworkDeviceRecords, NetworkDevices
from nova.privileged.links import Address
from tests.fakes.host_machinery import FakeLinks
from tests.fakes.network import guest, network, options
from tests.unit.network.test_network_service import Host

VLAN = "nova.network.manager.VlanManager"
OURS, THEIRS = Address("10.0.1.1", 24), Address("192.0.2.7", 24)


def vlan_order(*guests, version=1, **fields) -> NetworkOnHost:
    net = network(1, bridge="br100", vlan=100, bridge_interface="eth0", multi_host=True, **fields)
    return NetworkOnHost(network=net, addresses=guests, version=version, host_address="10.0.1.7")


def vlan_host(path, *orders, **fields) -> Host:
    return Host(path, *orders, network_manager=VLAN, **fields)


def left(host: Host) -> set[str]:
    """Files of networks that are still there."""
    return {path.name for path in host.options.networks_path.iterdir()} - {"nova-dhcpbridge", "leases.json"}


def test_multi_host_network_is_served_with_the_hosts_own_address(tmp_path):
    host = vlan_host(tmp_path)
    host.serve(vlan_order(guest(3)))
    assert [one.address for one in host.links.addresses("br100")] == ["10.0.1.7"]
    assert "--listen-address=10.0.1.7" in host.runner.named("dnsmasq")[0].argv
    assert (host.options.networks_path / "nova-br100.opts").read_text() == "3,10.0.1.7\n"


def test_deleted_network_leaves_nothing(tmp_path):
    host = vlan_host(tmp_path, vlan_order(guest(3)))
    host.service.sync()
    assert host.links.masters == {"vlan100": "br100"}
    host.conductor.networks = ()
    host.restart()
    host.service.sync()
    assert set(host.links.devices) == {"lo", "eth0"} and left(host) == set()
    assert host.book.networks() == frozenset()
    assert "10.0.1" not in host.runner.named("iptables-restore")[-1].stdin


def test_deleted_network_whose_bridge_a_guest_is_on_keeps_it_until_the_guest_has_gone(tmp_path):
    host = vlan_host(tmp_path, vlan_order(guest(3)))
    host.service.sync()
    host.links.masters["tap1"] = "br100"
    host.conductor.networks = ()
    host.service.sync()
    assert host.links.exists("br100") and host.links.exists("vlan100")
    assert host.links.addresses("br100") == ()
    del host.links.masters["tap1"]
    host.service.sync()
    assert not host.links.exists("br100") and not host.links.exists("vlan100") and left(host) == set()


@pytest.mark.parametrize(("option", "devices"), [(True, {"lo", "eth0"}), (False, {"lo", "eth0", "br100", "vlan100"})])
def test_last_guest_leaves_with_all_of_the_network_where_the_option_says_so(tmp_path, option, devices):
    host = vlan_host(tmp_path, teardown_unused_network_gateway=option)
    host.serve(vlan_order(guest(3)))
    host.serve(vlan_order(guest(4, elsewhere=True), version=2))
    assert set(host.links.devices) == devices
    host.serve(vlan_order(guest(3), version=3))
    assert "10.0.1.3" in host.hosts_file("br100")


def test_changed_host_address_takes_the_former_one_away(tmp_path):
    host = vlan_host(tmp_path)
    host.serve(vlan_order(guest(3)))
    host.serve(NetworkOnHost(network=vlan_order().network, addresses=(guest(3),), version=2, host_address="10.0.1.8"))
    assert [one.address for one in host.links.addresses("br100")] == ["10.0.1.8"]


def test_flat_manager_makes_nothing_and_empties_what_another_manager_left(tmp_path):
    host = Host(tmp_path)
    host.serve(NetworkOnHost(network=network(1), addresses=(guest(3),)))
    saved = host.runner.named("iptables-restore")[0].stdin
    host = Host(tmp_path, NetworkOnHost(network=network(1), addresses=(guest(3),)),
                network_manager="nova.network.manager.FlatManager")
    host.runner.answers["iptables-save"] = saved
    host.service.sync()
    assert not host.runner.named("dnsmasq") and not host.links.exists("br1") and host.forwarding == 0
    assert host.links.addresses("lo") == ()
    emptied = host.runner.named("iptables-restore")[-1].stdin
    assert ":nova-network-snat" in emptied and "-A nova-network" not in emptied


def test_flat_manager_on_a_fresh_host_writes_no_rule(tmp_path):
    host = Host(tmp_path, NetworkOnHost(network=network(1)), network_manager="nova.network.manager.FlatManager")
    host.service.sync()
    assert {ran.argv[0] for ran in host.runner.ran} == {"iptables-save", "ip6tables-save", "ebtables-save"}


def standings(path, links: FakeLinks) -> NetworkDeviceRecords:
    return NetworkDeviceRecords(options(path).networks_path, links)


def test_clear_leaves_a_bridge_that_was_there_before(tmp_path):
    links = FakeLinks(["br1"])
    known = standings(tmp_path, links)
    known.note(NetworkDevices(network="n", device="br1", made=("br1",), addresses=(OURS,)))
    links.ensure_address("br1", OURS)
    assert known.clear("br1") is True
    assert links.exists("br1") and links.addresses("br1") == () and known.devices() == frozenset()


def test_clear_leaves_a_bridge_with_an_address_of_the_operators(tmp_path):
    links = FakeLinks([])
    known = standings(tmp_path, links)
    known.note(NetworkDevices(network="n", device="br1", made=("br1",), addresses=(OURS,)))
    links.devices["br1"] = [OURS, THEIRS]
    assert known.clear("br1") is False
    assert links.addresses("br1") == (THEIRS,) and known.devices() == {"br1"}


def test_note_again_keeps_what_we_made_ours(tmp_path):
    links = FakeLinks([])
    wanted = NetworkDevices(network="n", device="br1", made=("br1",))
    standings(tmp_path, links).note(wanted)
    links.ensure_bridge("br1")
    assert standings(tmp_path, links).note(wanted).made == ("br1",)
    assert standings(tmp_path, links).note(NetworkDevices(network="other", device="br1", made=("br1",))).made == ()


def test_clear_of_what_has_no_record_or_a_broken_one_does_nothing(tmp_path):
    links = FakeLinks(["br1"])
    known = standings(tmp_path, links)
    options(tmp_path).networks_path.mkdir(parents=True)
    (tmp_path / "networks/nova-br1.standing").write_text("{")
    assert known.clear("br1") is True and known.clear("br2") is True
    assert links.exists("br1") and known.devices() == frozenset()


def test_network_that_an_earlier_release_served_goes_without_its_record(tmp_path):
    host = Host(tmp_path)
    host.links.devices["br1"] = [Address("10.0.1.1", 24), THEIRS]
    for name, text in (("nova-br1.conf", ""), ("nova-br1.opts", "3,10.0.1.1\n"), ("nova-ra-br9.conf", "")):
        (host.options.networks_path / name).write_text(text)
    host.service.sync()
    assert host.links.addresses("br1") == (THEIRS,)
    assert left(host) == {"nova-ra-br9.conf"}, "radvd's files are no bridge's"
