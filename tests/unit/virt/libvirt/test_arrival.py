"""A guest's XML at its destination, and what is done to a migration as time goes by. Nothing but values."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from nova import errors
from nova.virt.libvirt.moves.watch import GIB, Act, Due, MigrationWatch, downtimes
from nova.virt.libvirt.settings.moves import MoveSettings
from nova.virt.libvirt.xml.arrival import ArrivalPaths, arrival_xml, copied_disks, cpu_of
from nova.virt.libvirt.xml.specs import NodeSpec, PlacementSpec

HERE, THERE = "/srv/a/5f1c2d0a", "/srv/b/5f1c2d0a"
RUNNING = f"""
<domain type="qemu" id="7"><name>instance-00000001</name><uuid>5f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11</uuid>
  <os firmware="efi"><type arch="x86_64" machine="pc-q35-7.2">hvm</type><kernel>{HERE}/kernel</kernel>
    <nvram>{HERE}/nvram.fd</nvram></os>
  <cpu mode="custom" match="exact" check="full"><model fallback="forbid">qemu64</model>
    <feature policy="require" name="hypervisor"/></cpu>
  <devices>
    <disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file="{HERE}/disk" index="2"/>
      <backingStore type="file" index="3"><format type="qcow2"/><source file="/srv/a/_base/0b5e.qcow2"/><backingStore/>
      </backingStore><target dev="vda" bus="virtio"/></disk>
    <disk type="file" device="disk"><source file="{HERE}/disk.swap"/><backingStore/><target dev="vdb"/></disk>
    <disk type="file" device="cdrom"><source file="{HERE}/disk.config"/><target dev="sda" bus="sata"/><readonly/></disk>
    <disk type="file" device="cdrom"><target dev="sdb" bus="sata"/><readonly/></disk>
    <interface type="bridge"><mac address="fa:16:3e:00:00:01"/><source bridge="br100"/><target dev="tap1"/></interface>
    <interface type="bridge"><mac address="fa:16:3e:00:00:02"/><source bridge="br200"/><target dev="tap2"/></interface>
    <serial type="pty"><log file="{HERE}/console.log" append="off"/></serial>
    <graphics type="vnc" port="5900" autoport="yes" listen="10.0.0.1"><listen type="address" address="10.0.0.1"/>
    </graphics>
    <rng model="virtio"><backend model="random">/dev/urandom</backend></rng>
  </devices>
</domain>"""
PLACES = ArrivalPaths(folder=THERE, vnc_listen="10.0.0.2", bases={"disk": ("/srv/b/_base/0b5e", "raw")},
                      vifs={"fa:16:3e:00:00:01": ("br9", "tap9")})


def test_arrival_when_all_differs_then_paths_and_devices_are_the_destinations():
    text = arrival_xml(RUNNING, HERE, PLACES)
    domain = ET.fromstring(text)
    assert "/srv/a" not in text
    assert [one.get("file") for one in domain.iterfind("devices/disk/source")] == \
        [f"{THERE}/disk", f"{THERE}/disk.swap", f"{THERE}/disk.config"]
    backing = domain.find("devices/disk/backingStore")
    assert (backing.find("source").get("file"), backing.find("format").get("type")) == ("/srv/b/_base/0b5e", "raw")
    assert domain.findtext("os/kernel") == f"{THERE}/kernel" and domain.findtext("os/nvram") == f"{THERE}/nvram.fd"
    assert domain.find("devices/serial/log").get("file") == f"{THERE}/console.log"
    assert [(one.find("source").get("bridge"), one.find("target").get("dev"))
            for one in domain.iterfind("devices/interface")] == [("br9", "tap9"), ("br200", "tap2")]
    graphics = domain.find("devices/graphics")
    assert graphics.get("listen") == graphics.find("listen").get("address") == "10.0.0.2"
    assert domain.findtext("devices/rng/backend") == "/dev/urandom"


HELD = """<memoryBacking><hugepages><page size="2048" unit="KiB" nodeset="0"/></hugepages></memoryBacking>
  <vcpu placement="static" cpuset="0-1">2</vcpu>
  <cputune><shares>2048</shares><vcpupin vcpu="0" cpuset="4"/><vcpupin vcpu="1" cpuset="5"/>
    <emulatorpin cpuset="4-5"/><vcpusched vcpus="1" scheduler="fifo" priority="1"/></cputune>
  <numatune><memory mode="strict" nodeset="1"/><memnode cellid="0" mode="strict" nodeset="1"/></numatune>"""
PINNED = RUNNING.replace("<os firmware", f"{HELD}<os firmware").replace(
    'check="full">', 'check="full"><numa><cell id="0" cpus="0-1" memory="512"/></numa>')


def place(page_kb: int | None = 2048, numa: bool = True) -> PlacementSpec:
    return PlacementSpec(nodes=(NodeSpec(0, (0, 1), 512, 0, page_kb),), numa=numa, pins={0: (2,), 1: (3,)},
                         emulator=(2, 3), realtime=(1,))


def test_arrival_when_the_guest_is_pinned_then_its_place_is_the_destinations():
    domain = ET.fromstring(arrival_xml(PINNED, HERE, ArrivalPaths(folder=HERE, placement=place())))
    tuning, numa = domain.find("cputune"), domain.find("numatune")
    assert [(pin.get("vcpu"), pin.get("cpuset")) for pin in tuning.iterfind("vcpupin")] == [("0", "2"), ("1", "3")]
    assert tuning.find("emulatorpin").get("cpuset") == "2,3" and tuning.findtext("shares") == "2048"
    assert tuning.find("vcpusched") is not None and domain.find("vcpu").get("cpuset") is None
    assert numa.find("memory").get("nodeset") == "0" and numa.find("memnode").get("nodeset") == "0" and len(numa) == 2


def test_arrival_when_the_guest_floats_then_it_is_on_the_processors_that_are_shared_there():
    text = RUNNING.replace("<os firmware", "<vcpu cpuset='7'>2</vcpu><os firmware")
    domain = ET.fromstring(arrival_xml(text, HERE, ArrivalPaths(folder=HERE, placement=PlacementSpec(cpuset=(0, 1)))))
    assert domain.find("vcpu").get("cpuset") == "0,1" and domain.find("cputune") is None is domain.find("numatune")


@pytest.mark.parametrize("there", [None, place(page_kb=1048576), place(page_kb=None), place(numa=False),
                                   PlacementSpec()])
def test_arrival_when_the_place_there_cannot_be_the_guests_then_it_is_refused(there):
    with pytest.raises(errors.move.UnlikePlace) as caught:
        arrival_xml(PINNED, HERE, ArrivalPaths(folder=HERE, placement=there))
    assert caught.value.code == "move.unlike_place"


def test_arrival_when_nothing_differs_then_the_guest_is_the_same():
    same = arrival_xml(RUNNING, HERE, ArrivalPaths(folder=HERE))
    assert ET.canonicalize(same) == ET.canonicalize(RUNNING)


def test_copied_disks_when_some_are_only_read_then_those_stay_out():
    assert copied_disks(RUNNING) == ("vda", "vdb")


def test_cpu_when_the_guest_runs_then_its_flags_are_told():
    cpu, arch, machine, virt_type = cpu_of(RUNNING)
    assert (arch, machine, virt_type) == ("x86_64", "pc-q35-7.2", "qemu") and 'name="hypervisor"' in cpu


def test_downtimes_when_stepped_then_they_grow_to_the_most():
    steps = downtimes(MoveSettings(downtime_ms=500, downtime_steps=10, downtime_delay_s=75), 3)
    assert steps[0] == (0, 50) and steps[-1] == (10 * 75 * 3, 500) and len(steps) == 11
    assert [ms for _, ms in steps] == sorted({ms for _, ms in steps})


@pytest.mark.parametrize(("force", "act"), [(False, Act.ABORT), (True, Act.FORCE)])
def test_watch_when_the_time_is_over_then_once_what_the_operator_said(force, act):
    watch = MigrationWatch(MoveSettings(completion_s=100, force_at_timeout=force), 5 * GIB)
    assert watch.due(0) == Due(Act.DOWNTIME, 50) and watch.due(1) is None
    assert watch.due(499) == Due(Act.DOWNTIME, 63) and watch.due(500) == Due(act) and watch.due(501) is None


def test_watch_when_forced_or_without_a_bound_then_nothing_ends_it():
    forced = MigrationWatch(MoveSettings(completion_s=10), GIB)
    forced.forced = True
    for watch in (forced, MigrationWatch(MoveSettings(completion_s=0), GIB)):
        assert all(due is None or due.act == Act.DOWNTIME for due in map(watch.due, range(0, 9999, 7)))
