"""An order that is the same each time, for golden texts."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from nova.distribution import Distribution
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import BuildOrder, Disk, Fence
from nova.model.image.images import Image
from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.capabilities import DomainCapabilities

UUID = "5f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11"
IMAGE_ID = "70a599e0-31e7-49b7-b260-868f441e862b"
FOLDER = Path("/var/lib/nova/instances") / UUID
BASE = "/var/lib/nova/instances/_base/0b5e"

DISKS = (
    DiskRecord(kind="root", name="disk", format="qcow2", size_bytes=1 << 30, backing=BASE, backing_format="raw"),
    DiskRecord(kind="ephemeral", name="disk.eph0", format="qcow2", size_bytes=1 << 30),
    DiskRecord(kind="swap", name="disk.swap", format="qcow2", size_bytes=1 << 29),
    DiskRecord(kind="config", name="disk.config", format="raw", size_bytes=1 << 20, device="cdrom"),
)


def flavor(**changes: Any) -> Flavor:
    return Flavor(**{"flavorid": "1", "name": "m1.tiny", "memory_mb": 512, "vcpus": 2, "root_gb": 1, "ephemeral_gb": 1,
                     "swap_mb": 512, **changes})


def image(**properties: str) -> Image:
    return Image(id=IMAGE_ID, disk_format="qcow2", container_format="bare", properties=properties)


def order(**changes: Any) -> BuildOrder:
    vif = Interface(id="aa2d4a0c-9a1f-4a43-8c5b-2f6a4e1b7c88", mac="fa:16:3e:11:22:33", network_id="n", label="private",
                    bridge="br100", mtu=1400)
    return BuildOrder(**{
        "server_uuid": UUID, "id": 1, "instance_name": "instance-00000001", "name": "web <1>", "hostname": "web-1",
        "project_id": "a" * 32, "user_id": "b" * 32, "fence": Fence(operation_id=7, epoch=2), "flavor": flavor(),
        "image": image(), "interfaces": (vif,), "created_at": datetime.datetime(2025, 3, 4, 5, 6, 7),
        "disks": (Disk(kind="root", size_gb=1), Disk(kind="ephemeral", size_gb=1), Disk(kind="swap", size_mb=512)),
        **changes})


def facts(**changes: Any) -> HypervisorFacts:
    return HypervisorFacts(**{"virt_type": "qemu", "arch": "x86_64", "serial_of": lambda uuid: uuid,
                              **changes})


def abilities(machine: str | None, **changes: Any) -> DomainCapabilities:
    """Of a host with Debian's packages ovmf and swtpm."""
    q35 = "q35" in (machine or "")
    buses = ("fdc", "scsi", "virtio", "usb", "sata") + (() if q35 else ("ide",))
    return DomainCapabilities(**{
        "emulator": "/usr/bin/qemu-system-x86_64", "machine": "pc-q35-7.2" if q35 else "pc-i440fx-7.2", "efi": True,
        "secure_boot": q35, "disk_buses": buses, "rng_models": ("virtio",),
        "video_models": ("vga", "cirrus", "vmvga", "qxl", "virtio", "none", "bochs", "ramfb"),
        "tpm_models": ("tpm-tis", "tpm-crb"), "tpm_backends": ("emulator",), "tpm_versions": ("1.2", "2.0"),
        "cpu_models": ("Haswell", "Nehalem"), **changes})


def able(**changes: Any) -> HypervisorFacts:
    """A host that has all that Debian's packages give."""
    return facts(**{"abilities": abilities, "version": 7_002_022, "tpm": True, "stateless_firmware": True,
                    "address_bits": 48,
                    "machines": frozenset({"pc", "q35", "pc-q35-7.2", "pc-i440fx-7.2"}), **changes})


def settings(tmp_path: Path = Path("/var/lib/nova"), **changes: Any) -> LibvirtSettings:
    return LibvirtSettings(**{"instances_path": tmp_path / "instances", "state_path": tmp_path, "virt_type": "qemu",
                              "distribution": Distribution(version="1.0"), **changes})
