"""Diagnostics of what libvirt counts: the names are those that libvirt 9 gave for a small guest."""

from __future__ import annotations

from nova.model.server.diagnostics import CpuUse, NicUse
from nova.model.server.states import PowerState
from nova.virt.libvirt.guest.diagnostics import diagnostics_of

RUNS = {
    "balloon.current": 65536, "balloon.maximum": 65536, "balloon.rss": 41384,
    "block.0.name": "vda", "block.0.rd.bytes": 11, "block.0.rd.reqs": 2, "block.0.wr.bytes": 33, "block.0.wr.reqs": 4,
    "block.0.backingIndex": 4, "block.1.name": "hda", "block.count": 2,
    "net.0.name": "tap5ad0b8a9-70", "net.0.rx.bytes": 110, "net.0.rx.drop": 0, "net.0.rx.errs": 5, "net.0.rx.pkts": 1,
    "net.0.tx.bytes": 7, "net.0.tx.drop": 8, "net.0.tx.errs": 9, "net.0.tx.pkts": 10, "net.count": 1,
    "vcpu.0.state": 1, "vcpu.0.time": 42, "vcpu.current": 1, "vcpu.maximum": 2}
OFF = {"balloon.maximum": 65536, "block.0.name": "vda", "block.count": 1, "vcpu.current": 2, "vcpu.maximum": 2}
MACS = {"tap5ad0b8a9-70": "fa:16:3e:00:00:01"}


def test_guest_that_runs():
    diagnostics = diagnostics_of(RUNS, PowerState.RUNNING, "kvm", MACS)
    assert diagnostics.cpus == (CpuUse(id=0, time_ns=42),) and (diagnostics.memory_max_mb,
                                                                diagnostics.memory_used_mb) == (64, 40)
    assert diagnostics.nics == (NicUse(device="tap5ad0b8a9-70", mac="fa:16:3e:00:00:01", rx_octets=110, rx_packets=1,
                                       rx_errors=5, rx_drop=0, tx_octets=7, tx_packets=10, tx_errors=9, tx_drop=8),)
    disk, drive = diagnostics.disks
    assert (disk.device, disk.read_bytes, disk.read_requests, disk.write_bytes, disk.write_requests) == (
        "vda", 11, 2, 33, 4)
    assert drive.device == "hda" and drive.read_bytes is None
    assert (diagnostics.driver, diagnostics.hypervisor, diagnostics.power_state) == ("libvirt", "kvm",
                                                                                     PowerState.RUNNING)


def test_guest_that_is_off_has_devices_and_counts_nothing():
    diagnostics = diagnostics_of(OFF, PowerState.SHUTDOWN, "qemu", MACS)
    assert [cpu.time_ns for cpu in diagnostics.cpus] == [None, None] and diagnostics.memory_used_mb is None
    assert diagnostics.nics == (NicUse(device="tap5ad0b8a9-70", mac="fa:16:3e:00:00:01"),)
    assert [disk.read_bytes for disk in diagnostics.disks] == [None]


def test_guest_that_says_what_it_uses_is_believed():
    diagnostics = diagnostics_of({**RUNS, "balloon.available": 60000, "balloon.unused": 29280}, PowerState.RUNNING,
                                 "kvm", {})
    assert diagnostics.memory_used_mb == 30 and diagnostics.nics[0].mac is None


def test_guest_that_went_while_it_was_asked_about():
    diagnostics = diagnostics_of({}, PowerState.RUNNING, "kvm", {})
    assert diagnostics.cpus == diagnostics.nics == diagnostics.disks == () and diagnostics.memory_max_mb is None
