"""What of an interface is made on the host, what libvirt is told, and how it is found again, a kind at a time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.network.networks import Interface
from nova.privileged import vfs
from nova.privileged.os_vif_plugs import VifPort
from nova.privileged.ovs import OpenVSwitch
from nova.privileged.runner import Completed
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.properties import requested_properties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml import interfaces as xml
from nova.virt.libvirt.xml.arrival import ArrivalPaths, InterfaceWire, arrival_xml

ID, MAC, UUID = "ce531f90-199f-48c0-816c-13e38010b442", "fa:16:3e:4c:2c:30", "11111111-2222-4333-8444-555555555555"
TAP, PCI = "tapce531f90-19", "0000:03:10.1"
SETTINGS = LibvirtSettings(instances_path=Path("/i"), state_path=Path("/s"))


class Runner:
    """Keeps the commands; ``codes``: exit codes by the tool's first word after its options."""

    def __init__(self, **codes: int) -> None:
        self.codes, self.ran = codes, []

    said = ""

    def run(self, argv, *, stdin=None, ok=(0,), environment=None) -> Completed:
        words = [word for word in argv[1:] if not word.startswith("--timeout")]
        self.ran.append(" ".join(words))
        code = self.codes.get(words[0].replace("-", "_"), 0)
        if code not in ok:
            raise errors.host.CommandFailed(command=argv[0], where="here", reason=f"exit {code}")
        return Completed(code, self.said)


class OsVif:
    """``broken``: the switch does not answer."""

    def __init__(self, broken: bool = False) -> None:
        self.broken, self.plugged, self.unplugged = broken, [], []

    def plug(self, port: VifPort, server_uuid: str) -> None:
        if self.broken:
            raise errors.host.NotPlugged(id=port.id, what="plugged into", bridge=port.bridge, reason="no answer")
        self.plugged.append((port, server_uuid))

    def unplug(self, port: VifPort) -> None:
        self.unplugged.append(port)


class Links:
    def __init__(self, *there: str) -> None:
        self.there, self.made = set(there), []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: self.made.append((name, *args))

    def exists(self, device: str) -> bool:
        return device in self.there


def interface(type: str, **fields: Any) -> Interface:
    return Interface(**{"id": ID, "mac": MAC, "network_id": "n", "label": "net", "type": type, "status": "DOWN",
                        "mtu": 1450, **fields})


def asked(extra: dict[str, str] | None = None, kvm: bool = True) -> vifs.VifRequirements:
    return vifs.VifRequirements(requested_properties({}, extra or {}), SETTINGS, kvm, 2, extra or {}, Path("/nowhere"))


def text_of(one: Interface, **more: Any) -> str:
    return xml.device_xml(vifs.spec(one, asked(**more)), "<domain/>")


def place(runner: Runner | None = None, links: Any = None, sysfs: Path = Path("/nowhere"),
          os_vif: OsVif | None = None) -> vifs.PlugContext:
    tools = vifs.PlugTools(OpenVSwitch(runner or Runner()), os_vif or OsVif(), links or Links(), sysfs)
    return vifs.PlugContext(UUID, SETTINGS, tools)


VIRTIO = '<model type="virtio" /><mtu size="1450" />'
CASES = {
    "bridge": (interface("bridge", bridge="brq1"),
               f'<interface type="bridge"><mac address="{MAC}" /><source bridge="brq1" /><target dev="{TAP}" />'
               f'{VIRTIO}</interface>'),
    "ovs": (interface("ovs", details={"bridge_name": "br-int", "port_filter": True}),
            f'<interface type="bridge"><mac address="{MAC}" /><source bridge="br-int" />'
            f'<virtualport type="openvswitch"><parameters interfaceid="{ID}" /></virtualport><target dev="{TAP}" />'
            f'{VIRTIO}</interface>'),
    "ovs, hybrid": (interface("ovs", details={"ovs_hybrid_plug": True}),
                    f'<interface type="bridge"><mac address="{MAC}" /><source bridge="qbrce531f90-19" />'
                    f'<target dev="{TAP}" />{VIRTIO}</interface>'),
    "tap": (interface("tap"), f'<interface type="ethernet"><mac address="{MAC}" /><target dev="{TAP}" />'
                              f'{VIRTIO}</interface>'),
    "macvtap": (interface("macvtap", details={"macvtap_source": "eth2", "macvtap_mode": "bridge"}),
                f'<interface type="direct"><mac address="{MAC}" /><source dev="eth2" mode="bridge" />'
                f'<model type="virtio" /></interface>'),
    "vhostuser": (interface("vhostuser", details={"vhostuser_socket": "/run/vhu1", "vhostuser_mode": "server"}),
                  f'<interface type="vhostuser"><mac address="{MAC}" />'
                  f'<source type="unix" path="/run/vhu1" mode="server" />{VIRTIO}</interface>'),
    "direct": (interface("hw_veb", vnic_type="direct", profile={"pci_slot": PCI}, details={"vlan": "77"}),
               f'<interface type="hostdev" managed="yes"><mac address="{MAC}" />'
               f'<source><address type="pci" domain="0x0000" bus="0x03" slot="0x10" function="0x1" /></source>'
               f'<vlan><tag id="77" /></vlan></interface>'),
    "direct-physical": (interface("hostdev_physical", vnic_type="direct-physical", profile={"pci_slot": PCI}),
                        '<hostdev mode="subsystem" type="pci" managed="yes"><source>'
                        '<address domain="0x0000" bus="0x03" slot="0x10" function="0x1" /></source></hostdev>'),
}


@pytest.mark.parametrize("name", CASES)
def test_interface_of_each_kind_when_libvirt_is_told_then_it_is_this_text(name):
    one, text = CASES[name]
    assert text_of(one) == text


@pytest.mark.parametrize("name", CASES)
def test_interface_of_each_kind_when_it_is_in_a_definition_then_it_is_found_there(name):
    one, text = CASES[name]
    found = xml.find(f"<domain><devices>{text}</devices></domain>", vifs.spec(one, asked()))
    assert found is not None and ET.tostring(found, encoding="unicode") == text
    other = vifs.spec(interface("bridge", bridge="b", mac="fa:16:3e:00:00:00"), asked())
    assert xml.find(f"<domain><devices>{text}</devices></domain>", other) is None


def test_interface_when_the_flavor_limits_it_then_its_tap_is_limited_and_a_device_is_not():
    extra = {"quota:vif_inbound_average": "10"}
    assert '<inbound average="10" />' in text_of(CASES["ovs"][0], extra=extra)
    assert "bandwidth" not in text_of(CASES["direct"][0], extra=extra)


def test_interface_when_the_guests_memory_is_encrypted_then_its_buffers_are_not():
    spec = vifs.spec(CASES["ovs"][0], asked())
    assert '<driver iommu="on" />' in xml.device_xml(spec, "<domain><launchSecurity/></domain>")


# --- the host's side


def test_ovs_when_it_is_plugged_then_os_vif_is_told_of_it_and_of_the_switch_as_it_is():
    runner, links, os_vif = Runner(), Links(), OsVif()
    runner.said = '"netdev"\n'
    one = CASES["ovs"][0]
    vifs.prepare(one, place(runner, links, os_vif=os_vif))
    assert runner.ran == ["br-exists br-int", "get Bridge br-int datapath_type"] and links.made == []
    assert os_vif.plugged == [(VifPort(id=ID, plugin="ovs", device=TAP, bridge="br-int", datapath="netdev", port_id=ID,
                                       mac=MAC, network_id="n", label="net", mtu=1450), UUID)]


def test_ovs_when_the_port_names_the_datapath_then_the_switch_is_not_asked():
    runner, os_vif = Runner(), OsVif()
    vifs.prepare(interface("ovs", details={"datapath_type": "system"}), place(runner, os_vif=os_vif))
    assert runner.ran == ["br-exists br-int"] and os_vif.plugged[0][0].datapath == "system"


def test_ovs_when_the_switch_is_missing_then_the_host_is_refused():
    with pytest.raises(errors.HostRefused, match="br-int"):
        vifs.prepare(CASES["ovs"][0], place(Runner(br_exists=2)))
    with pytest.raises(errors.HostRefused, match="exit 1"):
        vifs.prepare(CASES["ovs"][0], place(Runner(br_exists=1)))


@pytest.mark.parametrize("name", ["ovs", "ovs, hybrid", "neutron's bridge"])
def test_port_when_os_vif_cannot_plug_it_then_the_host_is_refused(name):
    one = {**{name: case[0] for name, case in CASES.items()}, "neutron's bridge": interface("bridge", bridge="b")}[name]
    with pytest.raises(errors.HostRefused, match="no answer"):
        vifs.prepare(one, place(os_vif=OsVif(broken=True)))


def test_hybrid_ovs_when_it_is_plugged_and_unplugged_then_a_bridge_is_between_and_goes_again():
    runner, links, os_vif = Runner(), Links(), OsVif()
    runner.said = "tapother qvoce531f90-19"
    one = CASES["ovs, hybrid"][0]
    vifs.prepare(one, place(runner, links, os_vif=os_vif))
    [(port, _server)] = os_vif.plugged
    assert (port.between, port.bridge, port.device) == ("qbrce531f90-19", "br-int", TAP) and links.made == []
    vifs.unplug(vifs.record(one), place(runner, links, os_vif=os_vif).tools)
    assert [(one.between, one.bridge, one.port_id) for one in os_vif.unplugged] == [("qbrce531f90-19", "br-int", ID)]
    assert [name for call, name in links.made] == [TAP, "qvbce531f90-19", "qbrce531f90-19"]


def test_hybrid_ovs_when_a_killed_run_left_its_cable_outside_the_switch_then_it_is_laid_anew():
    os_vif = OsVif()
    vifs.prepare(CASES["ovs, hybrid"][0], place(os_vif=os_vif))  # the runner lists no port
    assert len(os_vif.plugged) == 2 and len(os_vif.unplugged) == 1


def test_ovs_when_an_older_release_plugged_it_then_its_record_is_enough_to_unplug_it():
    os_vif = OsVif()
    plug = PlugRecord(id=ID, device=TAP, bridge="br-int", kind="ovs", details={"switch": "br-int", "port": TAP})
    vifs.unplug(plug, place(os_vif=os_vif).tools)
    assert os_vif.unplugged == [VifPort(id=ID, plugin="ovs", device=TAP, bridge="br-int")]


def test_bridge_when_the_network_is_neutrons_then_os_vif_makes_it():
    os_vif = OsVif()
    vifs.prepare(interface("bridge", bridge="brq1", should_create_bridge=True), place(os_vif=os_vif))
    [(port, server)] = os_vif.plugged
    assert (port.plugin, port.bridge, port.mtu, server) == ("linux_bridge", "brq1", 1450, UUID)


@pytest.mark.parametrize(("mode", "port"), [("server", "type=dpdkvhostuserclient options:vhost-server-path="
                                                       '"/run/vhu1"'), ("client", "type=dpdkvhostuser")])
def test_vhostuser_when_the_switch_is_ovs_then_its_port_is_the_other_end(mode, port):
    runner = Runner()
    one = interface("vhostuser", bridge="br-int", details={
        "vhostuser_socket": "/run/vhu1", "vhostuser_mode": mode, "vhostuser_ovs_plug": True})
    vifs.prepare(one, place(runner))
    assert "add-port br-int vhu1" in runner.ran[1] and runner.ran[1].endswith(port)
    vifs.unplug(vifs.record(one), place(runner).tools)
    assert runner.ran[-1] == "-- --if-exists del-port br-int vhu1"


def test_macvtap_when_its_device_is_missing_then_the_host_is_refused():
    vifs.prepare(CASES["macvtap"][0], place(links=Links("eth2")))
    with pytest.raises(errors.HostRefused, match="eth2"):
        vifs.prepare(CASES["macvtap"][0], place())


def test_virtual_function_when_it_is_looked_at_then_its_card_and_number_are_known(tmp_path):
    devices = tmp_path / "bus/pci/devices"
    for folder in (f"{PCI}/net/eth5", "0000:03:00.0/net/eth0"):
        (devices / folder).mkdir(parents=True)
    (devices / PCI / "physfn").symlink_to("../0000:03:00.0")
    (devices / "0000:03:00.0/virtfn3").symlink_to(f"../{PCI}")
    assert vfs.device_of(PCI, tmp_path) == "eth5" and vfs.function_of(PCI, tmp_path) == vfs.Function("eth0", 3)
    assert vfs.device_of("0000:09:00.0", tmp_path) is None is vfs.function_of("0000:03:00.0", tmp_path)
    one = interface("hw_veb", vnic_type="macvtap", profile={"pci_slot": "0000:09:00.0"})
    with pytest.raises(errors.HostRefused, match="virtual function"):
        vifs.prepare(one, place(sysfs=tmp_path))


@pytest.mark.parametrize("name", [name for name in CASES if name != "bridge"])
def test_unplug_when_there_is_nothing_left_then_it_is_harmless(name):
    one = CASES[name][0]
    vifs.unplug(vifs.record(one), place().tools)
    vifs.unplug(vifs.record(one), place().tools)


# --- ports whose data do not hang together: their owners can change some of it at any time


INCONSISTENT = [
    interface("ovs", vnic_type="direct"), interface("hw_veb", vnic_type="normal"), interface("binding_failed"),
    interface("unbound"), interface("", vnic_type=""), interface("hw_veb", vnic_type="direct"),
    interface("hw_veb", vnic_type="direct", profile={"pci_slot": "../../etc"}),
    interface("hw_veb", vnic_type="direct", profile={"pci_slot": 7}, details={"vlan": "x"}),
    interface("hw_veb", vnic_type="direct", profile={"pci_slot": PCI}, details={"vlan": "99999"}),
    interface("hostdev_physical", vnic_type="direct-physical", profile={"pci_slot": None}),
    interface("vhostuser"), interface("vhostuser", details={"vhostuser_socket": "/run/../etc/x"}),
    interface("vhostuser", details={"vhostuser_socket": "/run/x", "vhostuser_mode": "both"}),
    interface("macvtap"), interface("macvtap", details={"macvtap_source": "eth2", "macvtap_mode": "loud"}),
    interface("bridge"), interface("bridge", bridge="br1", vnic_type="macvtap")]


@pytest.mark.parametrize("one", INCONSISTENT, ids=repr)
def test_port_when_its_data_do_not_hang_together_then_only_its_own_guest_is_refused(one):
    with pytest.raises(errors.HostRefused):
        vifs.prepare(one, place())
        vifs.spec(one, asked())
    vifs.known_records([one, CASES["ovs"][0]])


def test_records_when_a_port_makes_no_sense_then_the_others_are_known():
    known = vifs.known_records([INCONSISTENT[0], CASES["ovs"][0]])
    assert [plug.kind for plug in known] == ["ovs"]


def test_unplug_when_a_newer_release_plugged_it_then_it_is_told_and_no_error(caplog):
    vifs.unplug(PlugRecord(id=ID, device="x0", bridge="", kind="of-tomorrow"), place().tools)
    assert "of-tomorrow" in caplog.text


# --- at another host


def moved(text: str, wire: InterfaceWire) -> str:
    domain = f"<domain><devices>{text}</devices></domain>"
    there = ET.fromstring(arrival_xml(domain, "/here", ArrivalPaths(folder="/there", wires={MAC: wire})))
    return ET.tostring(there.find("devices")[0], encoding="unicode")  # type: ignore[index]


@pytest.mark.parametrize(("here", "there"), [("bridge", "ovs"), ("ovs", "bridge"), ("ovs", "ovs, hybrid"),
                                             ("ovs, hybrid", "ovs"), ("ovs", "tap"), ("bridge", "vhostuser")])
def test_running_guest_when_its_destination_has_another_switch_then_its_interface_is_that_ones(here, there):
    spec = vifs.spec(CASES[there][0], asked())
    wire = InterfaceWire(type=spec.type, source={"bridge": spec.bridge} if spec.bridge else dict(spec.source),
                         device=spec.device, port_id=spec.port_id)
    found, wanted = ET.fromstring(moved(CASES[here][1], wire)), ET.fromstring(CASES[there][1])
    assert found.attrib == wanted.attrib
    assert {one.tag: ET.tostring(one) for one in found} == {one.tag: ET.tostring(one) for one in wanted}


def test_spec_of_a_macvtap_of_a_function_when_asked_then_its_device_is_found_below_the_given_sysfs(tmp_path):
    (tmp_path / "bus/pci/devices/0000:09:00.1/net/eth9").mkdir(parents=True)
    one = interface("hw_veb", vnic_type="macvtap", profile={"pci_slot": "0000:09:00.1"})
    assert vifs.spec(one, asked()._replace(sysfs=tmp_path)).source == {"dev": "eth9", "mode": "passthrough"}


def test_bridge_when_libvirt_is_the_users_own_then_the_guest_has_a_network_of_qemus_and_no_device_is_made() -> None:
    session = replace(SETTINGS, uri="qemu:///session")
    port = msgspec.structs.replace(interface("bridge", bridge="br100", should_create_bridge=True), status=None)
    vifs.prepare(port, vifs.PlugContext("uuid", session, tools=None))  # tools of None: whatever is made fails
    spec = vifs.spec(port, asked()._replace(settings=session))
    assert (spec.type, spec.mac, spec.bridge, spec.device) == ("user", port.mac, "", "")
