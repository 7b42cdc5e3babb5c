"""Run by ``test_ovs_guests.py`` inside a room: guests on ports of Neutron's on Open vSwitch, one plugged into the
switch by libvirt, the other over a bridge of its own (hybrid), and what is left when they go."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import msgspec
import pytest

from nova import concurrency, errors
from nova.model.guest.orders import BuildOrder, Disk
from nova.model.image.images import Image
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState
from nova.privileged import links
from nova.virt.libvirt import LibvirtDriver, LibvirtSettings
from tests.contract.driver_conformance import eventually, make_order, unbuild
from tests.contract.driver_hotplug_cases import attach, detach
from tests.machine import open_vswitch
from tests.machine.libvirt_cases import GUEST, CachedImages, booting
from tests.machine.serial_line import Serial

concurrency.patch("threads")

STATE = Path("/run/nova")
DATAPATH = {"bridge_name": "br-int", "datapath_type": "netdev", "port_filter": True}
IMAGE = Image(id="tiny", disk_format="qcow2", container_format="bare")
ADDRESSES = ("10.7.0.1", "10.7.0.2")


class OvsRig:
    """``driver``, and ``another()``: one that starts after it, as a restarted nova-compute's."""

    def __init__(self) -> None:
        self.images = CachedImages(STATE / "images")
        self.images.folder.mkdir(parents=True)
        if GUEST.exists():
            self.images.add("tiny", GUEST)
        self.driver = self.another()

    def another(self) -> LibvirtDriver:
        driver = LibvirtDriver(LibvirtSettings(instances_path=STATE / "instances", state_path=STATE, virt_type="qemu",
                                               shutdown_retry_s=2))
        driver.connect()
        return driver


@pytest.fixture(scope="session", autouse=True)
def open_vswitch_runs():
    with open_vswitch.switch("br-int"):
        yield


@pytest.fixture(scope="session")
def rig(open_vswitch_runs):
    made = OvsRig()
    yield made
    made.driver.close()


def port(**details: object) -> Interface:
    """As Neutron's agent's mechanism driver binds one."""
    octets = ":".join(f"{byte:02x}" for byte in uuid.uuid4().bytes[:3])
    return Interface(id=str(uuid.uuid4()), mac=f"fa:16:3e:{octets}", network_id=str(uuid.uuid4()), label="private",
                     type="ovs", bridge="br-int", status="DOWN", mtu=1450, details={**DATAPATH, **details})


def order_with(one: Interface) -> BuildOrder:
    order = make_order(image=IMAGE, disks=(Disk(kind="root", size_gb=1),), config_drive=False, interfaces=(one,))
    return msgspec.structs.replace(order, flavor=msgspec.structs.replace(order.flavor, memory_mb=128))


def tap(one: Interface) -> str:
    return f"tap{one.id[:11]}"


@pytest.fixture(scope="module")
def pair(rig):
    """Two guests with addresses, that boot once for all cases."""
    orders = order_with(port()), order_with(port(ovs_hybrid_plug=True))
    for order in orders:
        rig.driver.disks.create_disks(order, rig.images)
        rig.driver.interfaces.plug(order)
        rig.driver.lifecycle.start_new(order)
    try:
        for order, address in zip(orders, ADDRESSES, strict=True):
            with Serial(order.server_uuid) as line:
                line.log_in()
                name = line.run(f"grep -l {order.interfaces[0].mac} /sys/class/net/*/address | cut -d / -f 5")
                line.run(f"ip address add {address}/24 dev {name}; ip link set {name} up")
        yield orders
    finally:
        for order in orders:
            unbuild(rig, order)
        assert open_vswitch.ports() == []


@booting
def test_guests_on_a_switch_without_kernel_module_reach_each_other(pair):
    with Serial(pair[0].server_uuid) as line:
        line.log_in()
        assert eventually(lambda: " 0% packet loss" in line.run(f"ping -c 2 -W 2 {ADDRESSES[1]} || true"), 30)
        assert " 0% packet loss" in line.run(f"ping -c 3 -s 1400 {ADDRESSES[1]}")


@booting
def test_ports_tell_the_agent_whose_they_are(pair):
    plain, hybrid = (order.interfaces[0] for order in pair)
    ids = open_vswitch.external_ids(tap(plain))  # libvirt's own
    assert (ids["iface-id"], ids["attached-mac"], ids["vm-id"]) == (plain.id, plain.mac, pair[0].server_uuid)
    ids = open_vswitch.external_ids(f"qvo{hybrid.id[:11]}")
    assert ids == {"iface-id": hybrid.id, "attached-mac": hybrid.mac, "vm-uuid": pair[1].server_uuid,
                   "iface-status": "active"}
    assert set(open_vswitch.ports()) == {tap(plain), f"qvo{hybrid.id[:11]}"}
    assert set(links.ports(f"qbr{hybrid.id[:11]}")) == {tap(hybrid), f"qvb{hybrid.id[:11]}"}
    assert open_vswitch.vsctl("get", "bridge", "br-int", "datapath_type") == "netdev"


@booting
def test_nova_compute_that_starts_again_leaves_ports_as_they_are(rig, pair):
    def rows() -> str:
        return open_vswitch.vsctl("--columns=_uuid,name", "list", "Port")

    def start_again() -> None:
        driver = rig.another()
        for order in pair:
            driver.interfaces.plug(order)
        driver.close()

    before, pool = rows(), concurrency.WorkerPool(1, "restart")
    with Serial(pair[0].server_uuid) as line:
        line.log_in()
        restart = pool.submit(start_again)
        assert " 0% packet loss" in line.run(f"ping -c 40 -i 0.1 {ADDRESSES[1]}")
    restart.result(30)
    pool.shutdown()
    assert rows() == before


@booting
def test_port_plugged_into_a_running_guest_is_seen_there_and_is_gone_after_it_was_taken_out(rig, pair):
    extra = port()
    with Serial(pair[0].server_uuid) as line:
        line.log_in()
        assert attach(rig.driver, pair[0], extra) == PowerState.RUNNING
        assert tap(extra) in open_vswitch.ports()
        assert open_vswitch.external_ids(tap(extra))["iface-id"] == extra.id
        assert eventually(lambda: line.run(f"grep -l {extra.mac} /sys/class/net/*/address || true") != "", 20)
        assert detach(rig.driver, pair[0], extra) == PowerState.RUNNING
    assert tap(extra) not in open_vswitch.ports() and not links.exists(tap(extra))


@booting
@pytest.mark.parametrize("hybrid", [False, True])
def test_guest_that_is_deleted_leaves_nothing_at_the_switch(rig, pair, hybrid):
    """Its ports of before stay."""
    before = open_vswitch.ports()
    order = order_with(port(ovs_hybrid_plug=hybrid))
    rig.driver.disks.create_disks(order, rig.images)
    rig.driver.interfaces.plug(order)
    rig.driver.lifecycle.start_new(order)
    assert len(open_vswitch.ports()) == len(before) + 1
    unbuild(rig, order, known=False)
    unbuild(rig, order, known=False)
    assert open_vswitch.ports() == before
    assert not [name for name in os.listdir("/sys/class/net") if order.interfaces[0].id[:11] in name]


def test_hybrid_port_that_was_laid_half_is_whole_after_the_next_try(rig):
    one = port(ovs_hybrid_plug=True)
    order, qvo = order_with(one), f"qvo{one.id[:11]}"
    rig.driver.interfaces.plug(order)
    open_vswitch.vsctl("del-port", qvo)  # as if nova-compute had died between the cable and its port
    rig.driver.interfaces.plug(order)
    assert qvo in open_vswitch.ports() and open_vswitch.external_ids(qvo)["vm-uuid"] == order.server_uuid
    unbuild(rig, order)
    assert qvo not in open_vswitch.ports() and not links.exists(qvo) and not links.exists(f"qbr{one.id[:11]}")


def test_port_on_a_switch_that_is_not_there_is_refused_and_makes_none(rig):
    order = order_with(port(bridge_name="br-other"))
    with pytest.raises(errors.host.NoBridge):
        rig.driver.interfaces.plug(msgspec.structs.replace(order, interfaces=(
            msgspec.structs.replace(order.interfaces[0], bridge="br-other"),)))
    assert open_vswitch.vsctl("list-br") == "br-int"
    unbuild(rig, order, known=False)


def test_port_with_an_id_os_vif_cannot_take_is_that_guests_error(rig):
    order = order_with(msgspec.structs.replace(port(ovs_hybrid_plug=True), mac="no mac"))
    with pytest.raises(errors.host.NotPlugged):
        rig.driver.interfaces.plug(order)
    unbuild(rig, order, known=False)


def test_bridge_of_neutrons_is_made_by_os_vif(rig):
    one = Interface(id=str(uuid.uuid4()), mac="fa:16:3e:00:00:09", network_id=str(uuid.uuid4()), label="private",
                    type="bridge", bridge="brq01234567-89", should_create_bridge=True, status="DOWN", mtu=1450)
    order = order_with(one)
    for _ in range(2):
        rig.driver.interfaces.plug(order)
    assert links.exists("brq01234567-89")
    unbuild(rig, order)
