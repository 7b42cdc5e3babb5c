"""From an order to the guest that libvirt is told to make: what was asked for, and this host's answer to it. Pure.

Its parts: :mod:`~nova.virt.libvirt.guest.firmware` (machine and boot), :mod:`~nova.virt.libvirt.guest.processor`,
:mod:`~nova.virt.libvirt.guest.devices`, :mod:`~nova.virt.libvirt.disks.xml`, :mod:`~nova.virt.libvirt.vifs`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nova.model.orders import BuildOrder
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks import xml as disk_xml
from nova.virt.libvirt.disks.folders import DiskRecord
from nova.virt.libvirt.guest import numa_requirements
from nova.virt.libvirt.guest.devices import CONSOLE_LOG as CONSOLE_LOG
from nova.virt.libvirt.guest.devices import device_spec
from nova.virt.libvirt.guest.encryption import encryption_of
from nova.virt.libvirt.guest.firmware import COMMAND_LINE as COMMAND_LINE
from nova.virt.libvirt.guest.firmware import KERNEL as KERNEL
from nova.virt.libvirt.guest.firmware import RAMDISK as RAMDISK
from nova.virt.libvirt.guest.firmware import boot_spec, is_kind, machine_of
from nova.virt.libvirt.guest.firmware import runnable as runnable
from nova.virt.libvirt.guest.numa_placement import devices_of, placement_of
from nova.virt.libvirt.guest.processor import cpu_spec
from nova.virt.libvirt.guest.properties import Wishes, wishes
from nova.virt.libvirt.host.facts import HostFacts as HostFacts
from nova.virt.libvirt.settings import Settings
from nova.virt.libvirt.xml import specs

MANUFACTURER, PRODUCT, FAMILY = "OpenStack Foundation", "OpenStack Nova", "Virtual Machine"
CDROM_BUSES = {"q35": "sata", "virt": "scsi"}


def guest_spec(order: BuildOrder, disks: tuple[DiskRecord, ...], folder: Path, host: HostFacts,
               settings: Settings) -> specs.GuestSpec:
    """The whole guest. Invalid: the image or flavor asks for nonsense; HostRefused: for what isn't here."""
    extra = order.flavor.extra_specs
    properties = order.image.properties if order.image else {}
    asked = wishes(properties, extra)
    numa_requirements.check(properties, extra, order.packing)
    machine = machine_of(asked, settings, host)
    boot = boot_spec(order, asked, machine, folder, host)
    placement, encryption = placement_of(order, host), encryption_of(properties, extra, machine, boot.efi, host)
    if encryption is not None:  # nothing could be read back from a swap
        placement = replace(placement, locked=True)
    devices = device_spec(asked, settings, folder, machine, host, order.server_uuid)
    kvm, storage = host.virt_type == "kvm", disk_xml.Storage.of(settings, host.cache_mode)
    interfaces = vif_specs(order, asked, settings, kvm)
    if any(one.type == "vhostuser" for one in interfaces):
        placement = replace(placement, shared_memory=True)
    cdrom_bus = asked.cdrom_bus or next((bus for kind, bus in CDROM_BUSES.items() if is_kind(machine, kind)), "ide")
    return specs.GuestSpec(
        virt_type=host.virt_type, name=order.instance_name, uuid=order.server_uuid,
        memory_mib=order.flavor.memory_mb, cpu=cpu_spec(order, asked, settings, host, host.abilities(machine)),
        boot=boot, placement=placement, host_devices=devices_of(order), encryption=encryption,
        sysinfo=specs.SysinfoSpec(manufacturer=MANUFACTURER, product=PRODUCT, version=host.release,
                                  serial=host.serial_of(order.server_uuid), uuid=order.server_uuid, family=FAMILY),
        note=_note(order, host.release), devices=devices,
        platform=specs.PlatformSpec(windows=asked.os_type == "windows", kvm=kvm, hpet=asked.hpet, pmu=asked.pmu,
                                    hide_hypervisor=asked.hide_hypervisor,
                                    split_irqchip=devices.iommu == "intel"),
        disks=disk_xml.disk_specs(disks, folder, asked, cdrom_bus, storage, extra),
        vifs=interfaces)


def vif_specs(order: BuildOrder, asked: Wishes, settings: Settings, kvm: bool) -> tuple[specs.VifSpec, ...]:
    """HostRefused: one that this host has no way to plug."""
    facts = vifs.Asked(asked, settings, kvm, order.flavor.vcpus, order.flavor.extra_specs)
    return tuple(vifs.spec(one, facts) for one in order.interfaces)


def _note(order: BuildOrder, release: str) -> specs.NoteSpec:
    flavor = order.flavor
    return specs.NoteSpec(
        release=release, name=order.name, flavor_name=flavor.name, user_id=order.user_id, project_id=order.project_id,
        created_at=f"{order.created_at:%Y-%m-%d %H:%M:%S}" if order.created_at else "",
        flavor=(("memory", flavor.memory_mb), ("disk", flavor.root_gb), ("swap", flavor.swap_mb),
                ("ephemeral", flavor.ephemeral_gb), ("vcpus", flavor.vcpus)),
        image_id=order.image.id if order.image else None)
