"""Run by ``test_interfaces_live.py`` inside a room: interfaces plugged into a guest whose system sees them come and
go, and one that is held at its start."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nova import concurrency
from nova.model.images import Image
from nova.model.networks import FixedAddress, Interface
from nova.model.orders import BuildOrder, Disk
from nova.model.states import PowerState
from nova.privileged import links
from nova.virt.libvirt.hotplug import KeepsInterface
from tests.contract.driver_conformance import IMAGE_ID, eventually, make_order, unbuild
from tests.contract.driver_hotplug_cases import another, attach, detach
from tests.machine.libvirt_cases import BRIDGE, GUEST, Cached, LibvirtRig, booting
from tests.machine.serial_line import Serial

concurrency.patch("threads")

SECOND = "br-second"
GUESTS = "10.1.0.2"
STATE = Path("/run/nova")
NETWORKS = "ls /sys/class/net | grep -v -e lo -e sit -e dummy | wc -l"


@pytest.fixture(scope="session")
def rig():
    STATE.mkdir()
    made = LibvirtRig(STATE)
    made.driver.connect()
    paths = {"tiny": STATE / "tiny.qcow2", IMAGE_ID: STATE / "base"}
    if GUEST.exists():
        shutil.copyfile(GUEST, paths["tiny"])
    for path in paths.values():
        if path.exists():
            path.chmod(0o644)
    made.images = Cached(**{name.replace("-", "_"): path for name, path in paths.items()})
    yield made
    made.driver.close()


@pytest.fixture(scope="module")
def living(rig) -> BuildOrder:
    """A guest that boots once for all cases."""
    image = Image(id="tiny", disk_format="qcow2", container_format="bare")
    order = make_order(BRIDGE, image=image, disks=(Disk(kind="root", size_gb=1),), config_drive=False)
    order = msgspec.structs.replace(order, flavor=msgspec.structs.replace(order.flavor, memory_mb=128))
    rig.driver.create_disks(order, rig.images)
    rig.driver.plug(order)
    rig.driver.start_new(order)
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


def second() -> Interface:
    return msgspec.structs.replace(another(SECOND), addresses=(FixedAddress(address=GUESTS),))


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
def test_interface_plugged_in_is_there_after_the_guests_next_start_in_its_place(rig, living):
    extra = second()
    attach(rig.driver, living, extra)
    rig.driver.shut_down(living.server_uuid, 0)
    rig.driver.start(living.server_uuid)
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert line.run(NETWORKS) == "2"
        detach(rig.driver, living, extra)
        assert line.run(NETWORKS) == "1"


@booting
def test_interface_of_a_paused_guest_is_kept_until_it_goes_on(rig, living):
    """It can not give up anything while it stands still, and has it whole after that."""
    extra = second()
    attach(rig.driver, living, extra)
    tools = rig.driver._tools
    quick = type(rig.driver)(replace(tools.settings, detach_attempts=2, detach_timeout_s=1.0), tools.hypervisor)
    rig.driver.pause(living.server_uuid)
    with pytest.raises(KeepsInterface):
        detach(quick, living, extra)
    rig.driver.unpause(living.server_uuid)
    detach(rig.driver, living, extra)
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert eventually(lambda: line.run(NETWORKS) == "1", 20)


@booting
def test_held_guest_has_its_tap_and_has_run_nothing(rig, living):
    rig.driver.shut_down(living.server_uuid, 0)
    assert rig.driver.start_held(living.server_uuid) == PowerState.PAUSED
    assert links.exists(f"tap{living.interfaces[0].id[:11]}")
    before = rig.driver.diagnostics(living.server_uuid).cpus[0].time_ns
    time.sleep(1)
    assert rig.driver.diagnostics(living.server_uuid).cpus[0].time_ns == before
    assert rig.driver.unpause(living.server_uuid) == PowerState.RUNNING
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert line.run(NETWORKS) == "1"
