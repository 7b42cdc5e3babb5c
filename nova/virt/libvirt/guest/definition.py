"""Build the spec of a guest from its order: the requested properties, applied to this host. Pure.

Its parts: :mod:`~nova.virt.libvirt.guest.firmware` (machine and boot), :mod:`~nova.virt.libvirt.guest.processor`,
:mod:`~nova.virt.libvirt.guest.devices`, :mod:`~nova.virt.libvirt.guest.disk_devices`, :mod:`~nova.virt.libvirt.vifs`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.model.volumes import BlockDevice
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks.records import DiskRecord, VolumeRecord
from nova.virt.libvirt.guest import disk_devices, numa_requirements, volume_devices
from nova.virt.libvirt.guest.devices import device_spec
from nova.virt.libvirt.guest.firmware import boot_spec, machine_of
from nova.virt.libvirt.guest.numa_placement import devices_of, placement_of
from nova.virt.libvirt.guest.processor import cpu_spec
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.host.machines import is_kind
from nova.virt.libvirt.properties import NO, RequestedProperties, requested_properties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml import specs

FAMILY = "Virtual Machine"
CDROM_BUSES = {"q35": "sata", "virt": "scsi"}

#: Encrypted memory (AMD SEV, https://libvirt.org/kbase/launch_security_sev.html).
ASKING = ("hw:mem_encryption", "hw_mem_encryption")
MODELS = ("hw:mem_encryption_model", "hw_mem_encryption_model")
#: No debugging, no key sharing, no migration to another platform, only with SEV; SEV-ES also encrypts registers.
POLICIES = {"amd-sev": 0x33, "amd-sev-es": 0x37}


def guest_spec(order: BuildOrder, disks: tuple[DiskRecord, ...], folder: Path, host: HypervisorFacts,
               settings: LibvirtSettings, volumes: tuple[VolumeRecord, ...] = ()) -> specs.GuestSpec:
    """Return the complete guest. ``volumes``: the connected ones. Raises Invalid for invalid properties of image or
    flavor, HostRefused for properties that this host does not support."""
    extra = order.flavor.extra_specs
    properties = order.image.properties if order.image else {}
    asked = requested_properties(properties, extra)
    numa_requirements.check(properties, extra, order.packing)
    machine = machine_of(asked, settings, host)
    boot = boot_spec(order, asked, machine, folder, host)
    placement, encryption = placement_of(order, host), encryption_of(properties, extra, machine, boot.efi, host)
    if encryption is not None:  # swapped-out encrypted memory could not be read back
        placement = replace(placement, locked=True)
    devices = device_spec(asked, settings, folder, machine, host, order.server_uuid)
    kvm, made = host.virt_type == "kvm", settings.distribution
    interfaces = vif_specs(order, asked, settings, kvm)
    if any(one.type == "vhostuser" for one in interfaces):
        placement = replace(placement, shared_memory=True)
    return specs.GuestSpec(
        virt_type=host.virt_type, name=order.instance_name, uuid=order.server_uuid,
        memory_mib=order.flavor.memory_mb, cpu=cpu_spec(order, asked, settings, host, host.abilities(machine)),
        boot=boot, placement=placement, host_devices=devices_of(order), encryption=encryption,
        sysinfo=specs.SysinfoSpec(manufacturer=made.vendor, product=made.product, version=made.version,
                                  serial=host.serial_of(order.server_uuid), uuid=order.server_uuid, family=FAMILY),
        note=_note(order, made.version), devices=devices,
        platform=specs.PlatformSpec(windows=asked.os_type == "windows", kvm=kvm, hpet=asked.hpet, pmu=asked.pmu,
                                    hide_hypervisor=asked.hide_hypervisor,
                                    split_irqchip=devices.iommu == "intel"),
        disks=all_disk_specs(order, disks, folder, volumes,
                             DiskContext(asked, machine, host, settings)),
        vifs=interfaces)


class DiskContext(NamedTuple):
    """The properties and host facts that determine a guest's disks."""

    asked: RequestedProperties
    machine: str | None
    host: HypervisorFacts
    settings: LibvirtSettings

    @property
    def cdrom_bus(self) -> str:
        """Return the bus of CD drives."""
        usual = next((bus for kind, bus in CDROM_BUSES.items() if is_kind(self.machine, kind)), "ide")
        return self.asked.cdrom_bus or usual


def all_disk_specs(order: BuildOrder, disks: tuple[DiskRecord, ...], folder: Path,
                   volumes: tuple[VolumeRecord, ...], context: DiskContext) -> tuple[specs.DiskSpec, ...]:
    """Return all disks. A root volume comes first, like a root disk, and the other volumes last. (The rescue disk of a
    guest that boots from a volume always has its own place.) Raises host.VolumeNotConnected, host.VolumeData; the
    errors of ``disk_specs``."""
    asked, settings, slots = context.asked, context.settings, disk_devices.Slots()
    storage = disk_devices.Storage.of(settings, context.host.cache_mode)
    rescued = any(disk.kind == "rescue" for disk in disks)

    def of_volumes(root: bool) -> tuple[specs.DiskSpec, ...]:
        devices = [one.device for one in order.volumes if (one.device.boot_index == 0) == root]
        chosen = volume_devices.VolumeContext(order.server_uuid, asked, context.cdrom_bus, settings, not rescued)
        return volume_devices.volume_specs(devices, {one.volume_id: one for one in volumes}, chosen, slots)
    first = of_volumes(root=True)
    local = disk_devices.disk_specs(disks, folder, asked, context.cdrom_bus, storage, order.flavor.extra_specs, slots)
    return (*first, *local, *of_volumes(root=False))


def volume_spec(order: BuildOrder, device: BlockDevice, record: VolumeRecord, host: HypervisorFacts,
                settings: LibvirtSettings, used: Collection[str]) -> specs.DiskSpec:
    """Return the spec of a volume for a guest that already has the ``used`` names. Raises as ``all_disk_specs``."""
    asked = requested_properties(order.image.properties if order.image else {}, order.flavor.extra_specs)
    context = DiskContext(asked, machine_of(asked, settings, host), host, settings)
    chosen = volume_devices.VolumeContext(order.server_uuid, asked, context.cdrom_bus, settings, False)
    [spec] = volume_devices.volume_specs([device], {record.volume_id: record}, chosen, disk_devices.Slots(used))
    return spec


def encryption_of(image: Mapping[str, str], extra_specs: Mapping[str, str], machine: str | None, efi: bool,
                  host: HypervisorFacts) -> specs.EncryptionSpec | None:
    """Return the memory encryption; None if not requested. Raises host.NoSuchGuest with the missing requirement."""
    given = {**image, **extra_specs}
    name = next((one for one in ASKING if given.get(one, "no").strip().lower() not in NO), None)
    if name is None:
        return None
    model_name = next((one for one in MODELS if one in given), "")
    model, can = given.get(model_name, "amd-sev"), host.abilities(machine)
    reason = ""
    if model not in POLICIES:
        raise errors.host.NoSuchGuest(name=model_name, value=model, reason="this release has amd-sev and amd-sev-es")
    if not can.sev or host.virt_type != "kvm":
        reason = "its processor, kernel and QEMU do not support memory encryption (AMD SEV)"
    elif model == "amd-sev-es" and not can.sev_es_guests:
        reason = "its processor has no keys for SEV-ES"
    elif not efi or not is_kind(machine, "q35"):
        reason = "such a guest needs UEFI and machine type q35 (hw_firmware_type=uefi, hw_machine_type=q35)"
    if reason:
        raise errors.host.NoSuchGuest(name=name, value=given[name], reason=reason)
    return specs.EncryptionSpec(can.sev_cbit, can.sev_reduced_bits, POLICIES[model])


def vif_specs(order: BuildOrder, asked: RequestedProperties, settings: LibvirtSettings,
              kvm: bool) -> tuple[specs.VifSpec, ...]:
    """Return the interfaces. Raises HostRefused if this host cannot plug an interface."""
    facts = vifs.VifRequirements(asked, settings, kvm, order.flavor.vcpus, order.flavor.extra_specs)
    return tuple(vifs.spec(one, facts) for one in order.interfaces)


def _note(order: BuildOrder, release: str) -> specs.NoteSpec:
    flavor = order.flavor
    return specs.NoteSpec(
        release=release, name=order.name, flavor_name=flavor.name, user_id=order.user_id, project_id=order.project_id,
        created_at=f"{order.created_at:%Y-%m-%d %H:%M:%S}" if order.created_at else "",
        flavor=(("memory", flavor.memory_mb), ("disk", flavor.root_gb), ("swap", flavor.swap_mb),
                ("ephemeral", flavor.ephemeral_gb), ("vcpus", flavor.vcpus)),
        image_id=order.image.id if order.image else None)
