"""Run by ``test_interfaces_live.py`` inside a room: interfaces plugged into a guest whose system sees them come and
go, gets an address for them and is reached there, and one that is held at its start."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nova import concurrency, errors
from nova.compute.filter.firewall import Firewall
from nova.compute.filter.host_filter import PacketFilters
from nova.compute.filter.packet_rules import RuleOptions
from nova.model.guest.orders import BuildOrder, Disk
from nova.model.image.images import Image
from nova.model.network import security_rules
from nova.model.network.networks import FixedAddress, Interface
from nova.model.network.security_groups import AllowedTraffic, GuestFirewall, HostFirewall
from nova.model.server.states import PowerState
from nova.privileged import links
from nova.privileged.runner import SystemRunner
from tests.contract.driver_conformance import eventually, make_order, unbuild
from tests.contract.driver_hotplug_cases import another, attach, detach, plug_order
from tests.machine.libvirt_cases import BRIDGE, GUEST, LibvirtRig, booting
from tests.machine.serial_line import Serial

concurrency.patch("threads")

SECOND = "br-second"
GUESTS, HOSTS = "10.1.0.2", "10.1.0.1"
PINGS = AllowedTraffic(protocol="icmp", cidr=f"{HOSTS}/32")
STATE = Path("/run/nova")
NETWORKS = "ls /sys/class/net | grep -v -e lo -e sit -e dummy | wc -l"


@pytest.fixture(scope="session")
def rig():
    STATE.mkdir()
    made = LibvirtRig(STATE)
    made.driver.connect()
    if GUEST.exists():
        made.images.add("tiny", GUEST)
    yield made
    made.driver.close()


@pytest.fixture(scope="module")
def living(rig) -> BuildOrder:
    """A guest that boots once for all cases."""
    image = Image(id="tiny", disk_format="qcow2", container_format="bare")
    order = make_order(BRIDGE, image=image, disks=(Disk(kind="root", size_gb=1),), config_drive=False)
    order = msgspec.structs.replace(order, flavor=msgspec.structs.replace(order.flavor, memory_mb=128),
                                    interfaces=(named(order.interfaces[0]),))
    rig.driver.disks.create_disks(order, rig.images)
    rig.driver.interfaces.plug(order)
    rig.driver.lifecycle.start_new(order)
    try:
        with Serial(order.server_uuid) as line:
            line.log_in()
        yield order
    finally:
        unbuild(rig, order)
        assert rig.left_over(order) == []


@pytest.fixture
def serial(living):
    with Serial(living.server_uuid) as line:
        line.log_in()
        yield line


def named(interface: Interface) -> Interface:
    """As nova-network's are."""
    return msgspec.structs.replace(interface, device=f"tap{interface.id[:11]}")


def second() -> Interface:
    return named(msgspec.structs.replace(another(SECOND), addresses=(FixedAddress(address=GUESTS),), dhcp_server=HOSTS))


@contextlib.contextmanager
def addresses_given(mac: str) -> Iterator[None]:
    """As nova-network does on the second bridge. The guest's system asks for one as soon as it sees a card (and takes
    away what anybody gave the card before)."""
    links.ensure_address(SECOND, links.Address(HOSTS, 24))
    server = subprocess.Popen([
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--pid-file=",
        "--bind-interfaces", f"--interface={SECOND}", "--except-interface=lo", f"--dhcp-leasefile={STATE / 'leases'}",
        f"--dhcp-range={GUESTS},static,255.255.255.0,1h", f"--dhcp-host={mac},{GUESTS}"])
    try:
        yield
    finally:
        server.terminate()
        server.wait(10)


class FirewallCalls:
    """What the conductor says of the guest."""

    def __init__(self, order: BuildOrder) -> None:
        self.interfaces, self._order = order.interfaces, order
        self.allowed: tuple[AllowedTraffic, ...] = ()

    def host_firewall(self, host: str) -> HostFirewall:
        order = self._order
        return HostFirewall(host=host, guests=(GuestFirewall(
            server_uuid=order.server_uuid, id=order.id, instance_name=order.instance_name, allowed=self.allowed,
            interfaces=security_rules.guarded(self.interfaces)),))


def answers(address: str) -> bool:
    return subprocess.run(["ping", "-c", "1", "-W", "1", address], capture_output=True, check=False).returncode == 0


def device_of(serial: Serial, mac: str) -> str:
    """What the guest calls the card."""
    return serial.run(f"grep -l {mac} /sys/class/net/*/address | cut -d / -f 5")


@booting
def test_interface_plugged_in_is_seen_by_the_guest_and_is_gone_after_it_was_taken_out(rig, living, serial):
    extra = second()
    assert serial.run(NETWORKS) == "1"
    assert attach(rig.driver, living, extra) == PowerState.RUNNING
    assert extra.id[:11] in " ".join(links.ports(SECOND))
    assert eventually(lambda: serial.run(NETWORKS) == "2", 20)
    name = device_of(serial, extra.mac)
    serial.run(f"ip link set {name} up")
    assert eventually(lambda: serial.run(f"cat /sys/class/net/{name}/carrier") == "1", 20)
    assert detach(rig.driver, living, extra) == PowerState.RUNNING
    assert serial.run(NETWORKS) == "1" and links.ports(SECOND) == ()
    assert not links.exists(f"tap{extra.id[:11]}")


@booting
def test_interface_plugged_in_under_a_packet_filter_gets_its_address_and_is_reached_as_its_rules_allow(rig, living,
                                                                                                       serial):
    calls, extra = FirewallCalls(living), second()
    firewall = Firewall(calls, "host", PacketFilters(SystemRunner(), STATE, RuleOptions(same_net=False)), lambda: ())
    firewall.refresh()
    calls.interfaces, calls.allowed = (*living.interfaces, extra), (PINGS,)
    firewall.guard(plug_order(living, extra, True).build)
    attach(rig.driver, living, extra)
    assert links.ensure_guest_ports([extra.device]) == (extra.device,)
    with addresses_given(extra.mac):
        assert eventually(lambda: answers(GUESTS), 60), serial.run("ip addr; cat /run/nova-guest/net/*.log; true")
    assert f"inet {GUESTS}/24" in serial.run(f"ip addr show {device_of(serial, extra.mac)}")
    serial.run(f"ping -c 1 -W 5 {HOSTS}")
    calls.allowed = ()
    firewall.refresh()
    assert not answers(GUESTS)
    detach(rig.driver, living, extra)
    calls.interfaces = living.interfaces
    firewall.refresh()
    assert firewall.taps() == (living.interfaces[0].device,)


@booting
def test_interface_plugged_in_is_there_after_the_guests_next_start_in_its_place(rig, living):
    extra = second()
    attach(rig.driver, living, extra)
    rig.driver.lifecycle.shut_down(living.server_uuid, 0)
    links.delete(SECOND)  # the host was started anew, say
    rig.driver.interfaces.plug(rig.driver.kept_orders.kept_order(living.server_uuid))
    rig.driver.lifecycle.start(living.server_uuid)
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert line.run(NETWORKS) == "2"
        detach(rig.driver, living, extra)
        assert line.run(NETWORKS) == "1"


@booting
def test_interface_of_a_paused_guest_is_kept_until_it_goes_on(rig, living):
    """It cannot give up anything while it stands still, and has it whole after that."""
    extra = second()
    attach(rig.driver, living, extra)
    tools = rig.driver.tools
    quick = type(rig.driver)(replace(tools.settings, detach_attempts=2, detach_timeout_s=1.0), tools.hypervisor)
    rig.driver.pausing.pause(living.server_uuid)
    with pytest.raises(errors.guest.KeepsInterface):
        detach(quick, living, extra)
    rig.driver.pausing.unpause(living.server_uuid)
    detach(rig.driver, living, extra)
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert eventually(lambda: line.run(NETWORKS) == "1", 20)


@booting
def test_held_guest_has_its_tap_and_has_run_nothing(rig, living):
    rig.driver.lifecycle.shut_down(living.server_uuid, 0)
    assert rig.driver.held_starts.start_held(living.server_uuid) == PowerState.PAUSED
    assert links.exists(f"tap{living.interfaces[0].id[:11]}")
    before = rig.driver.diagnosis.diagnostics(living.server_uuid).cpus[0].time_ns
    time.sleep(1)
    assert rig.driver.diagnosis.diagnostics(living.server_uuid).cpus[0].time_ns == before
    assert rig.driver.pausing.unpause(living.server_uuid) == PowerState.RUNNING
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert line.run(NETWORKS) == "1"
