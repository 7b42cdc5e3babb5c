"""A guest as libvirt's domain XML (https://libvirt.org/formatdomain.html)."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nova.virt.libvirt.xml import placement
from nova.virt.libvirt.xml.build import Element, add, text
from nova.virt.libvirt.xml.devices import add_devices
from nova.virt.libvirt.xml.specs import (
    BootSpec,
    CpuSpec,
    EncryptionSpec,
    GuestSpec,
    NoteSpec,
    PlatformSpec,
    SysinfoSpec,
)

#: The namespace of nova's metadata, which monitoring tools read.
NOTES = "http://openstack.org/xmlns/libvirt/nova/1.1"
ET.register_namespace("nova", NOTES)

X86 = frozenset({"x86_64", "i686"})


def domain_xml(spec: GuestSpec) -> str:
    """Return the whole domain, indented; the same text for the same spec."""
    domain = ET.Element("domain", type=spec.virt_type)
    text(domain, "uuid", spec.uuid)
    text(domain, "name", spec.name)
    text(domain, "memory", spec.memory_mib, unit="MiB")
    placement.add_memory_backing(domain, spec.placement)
    placement.add_vcpus(domain, spec.cpu.vcpus, spec.placement)
    _add_notes(domain, spec.note)
    _add_sysinfo(domain, spec.sysinfo)
    _add_boot(domain, spec.boot)
    _add_features(domain, spec.platform, spec.boot)
    placement.add_tuning(domain, spec.cpu.tuning, spec.placement)
    placement.add_numa_tuning(domain, spec.placement)
    _add_clock(domain, spec.platform, spec.boot.arch)
    placement.add_nodes(_add_cpu(domain, spec.cpu), spec.placement)
    for event, answer in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        text(domain, f"on_{event}", answer)
    add_devices(add(domain, "devices"), spec)
    if spec.encryption is not None:
        _add_encryption(domain, spec.encryption)
    ET.indent(domain)
    return ET.tostring(domain, encoding="unicode") + "\n"


def _add_notes(domain: Element, note: NoteSpec) -> None:
    def name(tag: str) -> str:
        return f"{{{NOTES}}}{tag}"
    instance = add(add(domain, "metadata"), name("instance"))
    add(instance, name("package"), version=note.release)
    text(instance, name("name"), note.name)
    text(instance, name("creationTime"), note.created_at)
    flavor = add(instance, name("flavor"), name=note.flavor_name)
    for part, amount in note.flavor:
        text(flavor, name(part), amount)
    owner = add(instance, name("owner"))
    text(owner, name("user"), note.user_id, uuid=note.user_id)
    text(owner, name("project"), note.project_id, uuid=note.project_id)
    if note.image_id:
        add(instance, name("root"), type="image", uuid=note.image_id)


def _add_sysinfo(domain: Element, sysinfo: SysinfoSpec) -> None:
    system = add(add(domain, "sysinfo", type="smbios"), "system")
    entries = {"manufacturer": sysinfo.manufacturer, "product": sysinfo.product, "version": sysinfo.version,
               "serial": sysinfo.serial, "uuid": sysinfo.uuid, "family": sysinfo.family}
    for name, value in entries.items():
        if value is not None:
            text(system, "entry", value, name=name)


def _add_boot(domain: Element, boot: BootSpec) -> None:
    os_ = add(domain, "os", firmware="efi" if boot.efi else None)
    text(os_, "type", "hvm", arch=boot.arch, machine=boot.machine)
    if boot.efi:
        _add_firmware(os_, boot)
    if boot.kernel:
        text(os_, "kernel", boot.kernel)
        if boot.ramdisk:
            text(os_, "initrd", boot.ramdisk)
        if boot.command_line:
            text(os_, "cmdline", boot.command_line)
    if boot.menu:
        add(os_, "bootmenu", enable="yes")
    add(os_, "smbios", mode="sysinfo")


def _add_firmware(os_: Element, boot: BootSpec) -> None:
    """Add the firmware requirements, by which libvirt chooses one of the host's firmwares."""
    firmware = add(os_, "firmware")
    if boot.secure:
        add(firmware, "feature", enabled="yes", name="enrolled-keys")
    add(firmware, "feature", enabled="yes" if boot.secure else "no", name="secure-boot")
    if boot.secure or boot.stateless:
        add(os_, "loader", secure="yes" if boot.secure else None, stateless="yes" if boot.stateless else None)
    if boot.nvram and not boot.stateless:
        text(os_, "nvram", boot.nvram)


def _add_features(domain: Element, platform: PlatformSpec, boot: BootSpec) -> None:
    features = add(domain, "features")
    add(features, "acpi")
    if boot.arch in X86:
        add(features, "apic")
    if boot.secure:
        add(features, "smm", state="on")  # only firmware in SMM may write the variables
    if platform.split_irqchip:
        add(features, "ioapic", driver="qemu")
    if platform.pmu is not None:
        add(features, "pmu", state="on" if platform.pmu else "off")
    if platform.windows and platform.kvm:
        hyperv = add(features, "hyperv")
        add(hyperv, "relaxed", state="on")
        add(hyperv, "vapic", state="on")
        add(hyperv, "spinlocks", state="on", retries="8191")
    if platform.hide_hypervisor:
        add(add(features, "kvm"), "hidden", state="on")


def _add_clock(domain: Element, platform: PlatformSpec, arch: str) -> None:
    clock = add(domain, "clock", offset="localtime" if platform.windows else "utc")
    if arch in X86:
        add(clock, "timer", name="pit", tickpolicy="delay")
        add(clock, "timer", name="rtc", tickpolicy="catchup")
        add(clock, "timer", name="hpet", present="yes" if platform.hpet else "no")
    if platform.windows and platform.kvm:
        add(clock, "timer", name="hypervclock", present="yes")


def _add_cpu(domain: Element, spec: CpuSpec) -> Element:
    mode = None if spec.mode == "none" else spec.mode
    cpu = add(domain, "cpu", mode=mode, match="exact" if mode == "custom" else None)
    if spec.model:
        text(cpu, "model", spec.model, fallback="forbid")
    if spec.address_mode:
        add(cpu, "maxphysaddr", mode=spec.address_mode, bits=spec.address_bits)
    sockets, cores, threads = spec.topology
    add(cpu, "topology", sockets=sockets, cores=cores, threads=threads)
    for policy, name in spec.features:
        add(cpu, "feature", policy=policy, name=name)
    return cpu


def _add_encryption(domain: Element, spec: EncryptionSpec) -> None:
    security = add(domain, "launchSecurity", type_="sev")
    text(security, "cbitpos", spec.cbit)
    text(security, "reducedPhysBits", spec.reduced_bits)
    text(security, "policy", f"0x{spec.policy:04x}")
