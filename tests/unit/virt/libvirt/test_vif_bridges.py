"""Which devices a compute host makes for an interface on a bridge, by whose network it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova import errors
from nova.model.network.networks import Interface
from nova.privileged import links as real
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs import bridge


class Links:
    """Records what is made; ``there``: devices of the host."""

    LinkError, Vlan = errors.host.Link, real.Vlan

    def __init__(self, *there: str) -> None:
        self.there, self.made = set(there), []

    def exists(self, device):
        return device in self.there

    def ensure_bridge(self, name, interface=None, mtu=None):
        if interface and interface not in self.there:
            raise errors.host.Link(device=interface, reason="there is no such device")
        self.made.append((name, interface, mtu))

    def ensure_vlan(self, vlan):
        self.there.add(vlan.name)
        self.made.append(tuple(vlan))


@pytest.fixture
def links(monkeypatch):
    fake = Links("eth0", "eth1")  # netlink needs root and changes the machine
    monkeypatch.setattr(bridge, "links", fake)
    return fake


def settings(**fields) -> LibvirtSettings:
    return LibvirtSettings(instances_path=Path("/i"), state_path=Path("/s"), **fields)


def interface(**fields) -> Interface:
    values = {"id": "v", "mac": "fa:16:3e:00:00:01", "network_id": "n", "label": "net", "bridge": "br100",
              "should_create_bridge": True, "mtu": 1400}
    return Interface(**{**values, **fields})


@pytest.mark.parametrize(("fields", "option", "port"), [
    ({}, None, None), ({}, "eth0", "eth0"), ({"bridge_interface": "eth1"}, "eth0", "eth1")])
def test_prepare_of_a_flat_network_makes_its_bridge(links, fields, option, port):
    bridge.prepare(interface(**fields), settings(flat_interface=option))
    assert links.made == [("br100", port, 1400)]


@pytest.mark.parametrize(("option", "parent"), [("eth0", "eth0"), (None, "eth1")])
def test_prepare_with_a_vlan_makes_its_device_and_the_bridge_on_it(links, option, parent):
    bridge.prepare(interface(should_create_vlan=True, vlan=100, bridge_interface="eth1"),
                   settings(vlan_interface=option))
    assert links.made == [("vlan100", parent, 100, None, 1400), ("br100", "vlan100", 1400)]


def test_prepare_with_a_vlan_and_no_interface_says_what_to_set(links):
    with pytest.raises(errors.host.NoUplink, match="vlan_interface"):
        bridge.prepare(interface(should_create_vlan=True, vlan=100), settings())


def test_prepare_when_the_uplink_is_missing_names_it(links):
    with pytest.raises(errors.host.NoBridge, match="eth9"):
        bridge.prepare(interface(bridge_interface="eth9"), settings())


def test_prepare_of_a_multi_host_network_leaves_the_bridge_to_nova_network_here(links):
    wanted = interface(multi_host=True, should_create_vlan=True, vlan=100)
    with pytest.raises(errors.host.NoLocalBridge, match="nova-network"):
        bridge.prepare(wanted, settings(vlan_interface="eth0"), timeout_s=0)
    links.there.add("br100")
    bridge.prepare(wanted, settings(vlan_interface="eth0"))
    assert links.made == []


def test_prepare_of_a_bridge_that_is_the_operators_makes_none(links):
    with pytest.raises(errors.host.NoBridge, match="br100"):
        bridge.prepare(interface(should_create_bridge=False), settings())
    links.there.add("br100")
    bridge.prepare(interface(should_create_bridge=False), settings())
    assert links.made == []
