"""What is made for a network on a host, by manager and interface driver, as data."""

from __future__ import annotations

import pytest

from nova import errors
from nova.model.network import gateways
from nova.network import drivers, ipv6, manager
from nova.network.gateway import Gateway
from nova.network.manager import Flat, Manager, Vlans
from nova.privileged.links import Address
from tests.fakes.host_machinery import FakeLinks, FakeRunner
from tests.fakes.network import network, options

UPLINK = Address("192.0.2.7", 24, "192.0.2.255")
UUID = "0aa1bb22-cc33-4d44-8e55-ff6677889900"


class Built:
    def __init__(self, path, ground=Flat, driver=drivers.LinuxBridge, **fields) -> None:
        self.options = options(path, host="host1", **fields)
        self.links, self.runner = FakeLinks(["lo", "eth0", "eth1"]), FakeRunner()
        self.manager = Manager(ground(self.options, self.links), driver(self.options, self.links, self.runner),
                               Gateway(self.options, self.links, self.runner))

    def serve(self, wanted) -> None:
        self.manager.ensure_link(wanted)
        self.manager.ensure_address(wanted, self.manager.driver.device(wanted))
        self.manager.join(wanted)


def test_flat_dhcp_takes_the_interface_and_its_address_stays_first_on_the_bridge(tmp_path):
    built = Built(tmp_path, flat_interface="eth0")
    built.links.devices["eth0"] = [UPLINK]
    built.serve(network())
    assert built.links.masters == {"eth0": "br1"}
    assert [address.address for address in built.links.addresses("br1")] == ["10.0.1.1", "192.0.2.7"]


def test_flat_dhcp_prefers_the_networks_own_interface(tmp_path):
    built = Built(tmp_path, flat_interface="eth0")
    built.serve(network(bridge_interface="eth1"))
    assert built.links.masters == {"eth1": "br1"}


def test_flat_dhcp_when_the_interface_is_missing_names_it(tmp_path):
    with pytest.raises(errors.host.Link, match="eth9"):
        Built(tmp_path, flat_interface="eth9").serve(network())


@pytest.mark.parametrize(("option", "parent"), [("eth0", "eth0"), (None, "eth1")])
def test_vlans_make_a_device_and_lead_the_bridge_to_it(tmp_path, option, parent):
    built = Built(tmp_path, Vlans, vlan_interface=option)
    wanted = network(vlan=100, bridge="br100", bridge_interface="eth1", mtu=1400)
    built.serve(wanted)
    vlan = built.links.vlans["vlan100"]
    assert (vlan.parent, vlan.id, vlan.mtu) == (parent, 100, 1400)
    assert built.links.masters == {"vlan100": "br100"}
    assert built.manager.made(wanted) == ("br100", "vlan100")


def test_vlans_without_any_interface_say_what_to_set(tmp_path):
    with pytest.raises(errors.network.NoVlanInterface, match="vlan_interface"):
        Built(tmp_path, Vlans).serve(network(vlan=100, bridge="br100"))


def test_vlans_serve_a_network_without_a_number_as_a_flat_one(tmp_path):
    built = Built(tmp_path, Vlans, flat_interface="eth0")
    built.serve(network())
    assert built.links.masters == {"eth0": "br1"} and built.links.vlans == {}


def test_open_vswitch_plugs_an_internal_port(tmp_path):
    built = Built(tmp_path, driver=drivers.OvsInterfaceDriver, flat_interface="eth0", ovs_vsctl_timeout=9)
    built.links.devices["gw-0aa1bb22-cc"] = []  # ovs-vswitchd's work
    wanted = network(uuid=UUID, mtu=1400)
    built.serve(wanted)
    mac = gateways.gateway_mac(wanted)
    assert [ran.argv for ran in built.runner.ran] == [
        ("ovs-vsctl", "--timeout=9", "--", "--may-exist", "add-port", "br-int", "gw-0aa1bb22-cc", "--", "set",
         "Interface", "gw-0aa1bb22-cc", "type=internal", "external-ids:iface-id=gw-0aa1bb22-cc",
         "external-ids:iface-status=active", f"external-ids:attached-mac={mac}")]
    assert ("up", "gw-0aa1bb22-cc", mac, 1400) in built.links.log
    assert [one.address for one in built.links.addresses("gw-0aa1bb22-cc")] == ["10.0.1.1"]
    assert built.links.masters == {} and not built.links.exists("br1")
    built.manager.driver.remove(wanted)
    assert built.runner.ran[-1].argv[3:] == ("--if-exists", "del-port", "br-int", "gw-0aa1bb22-cc")


def test_neutron_linux_bridge_plugs_a_tap(tmp_path):
    built = Built(tmp_path, driver=drivers.NeutronLinuxBridge)
    wanted = network(uuid=UUID)
    built.serve(wanted)
    assert built.links.masters == {"gw-0aa1bb22-cc": "brq0aa1bb22-cc"}
    assert [one.address for one in built.links.addresses("gw-0aa1bb22-cc")] == ["10.0.1.1"]
    assert built.manager.made(wanted) == ("gw-0aa1bb22-cc", "brq0aa1bb22-cc")


@pytest.mark.parametrize("driver", [drivers.NeutronLinuxBridge, drivers.OvsInterfaceDriver])
@pytest.mark.parametrize("spoken", [True, False])
def test_a_gateway_of_its_own_device_when_the_network_has_no_ipv6_then_the_host_speaks_none_there(
        tmp_path, driver, spoken):
    built = Built(tmp_path, driver=driver, use_ipv6=True)
    built.links.devices["gw-0aa1bb22-cc"] = []
    built.serve(network(uuid=UUID, cidr_v6="fd00::/64" if spoken else None))
    assert built.links.ipv6["gw-0aa1bb22-cc"] is spoken


def test_ipv6_when_the_network_has_a_range_then_it_is_turned_on_before_the_host_s_addresses(tmp_path):
    built = Built(tmp_path, use_ipv6=True)
    wanted = network(cidr_v6="fd00::/64")
    built.serve(wanted)
    assert built.links.ipv6 == {"br1": False}
    server = ipv6.IPv6(built.options, built.links, built.runner)
    server.serve(network(), "br1")
    assert built.links.ipv6 == {"br1": False}
    server.serve(wanted, "br1")
    assert built.links.ipv6 == {"br1": True}


@pytest.mark.parametrize("name", ["nova.network.linux_net.LinuxOVSInterfaceDriver", "LinuxOVSInterfaceDriver"])
def test_load_of_a_driver_takes_the_names_operators_write(name):
    assert drivers.load(name) is drivers.OvsInterfaceDriver


@pytest.mark.parametrize("name", ["my.own.LinuxOVSInterfaceDriver", "Other"])
def test_load_of_another_driver_names_those_there_are(name):
    with pytest.raises(errors.network.InterfaceDriver, match="LinuxBridgeInterfaceDriver"):
        drivers.load(name)


def test_load_of_managers_by_their_class_paths():
    base = "nova.network.manager."
    assert [manager.load(base + name) for name in ("FlatManager", "FlatDHCPManager", "VlanManager")] == [
        None, Flat, Vlans]
    with pytest.raises(errors.network.Manager, match="VlanManager"):
        manager.load("my.Manager")


def test_gateway_macs_differ_by_host_where_several_hosts_are_gateways():
    many, shared = network(multi_host=True), network(multi_host=True, share_address=True)
    assert gateways.gateway_mac(many, "a") != gateways.gateway_mac(many, "b")
    assert len({gateways.gateway_mac(network(), host) for host in ("a", "b", None)}) == 1
    assert gateways.gateway_mac(shared, "a") != gateways.gateway_mac(shared, "b"), "on one wire"
    assert gateways.link_local("fa:16:3f:01:02:03") == "fe80::f816:3fff:fe01:203"
