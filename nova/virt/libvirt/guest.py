"""From an order to the guest that libvirt is told to make: what was asked for, and this host's answer to it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nova.model.orders import BuildOrder
from nova.virt.libvirt.disks import xml as disk_xml
from nova.virt.libvirt.folders import DiskRecord
from nova.virt.libvirt.properties import NotHere, Wishes, WrongValue, wishes
from nova.virt.libvirt.settings import Settings
from nova.virt.libvirt.topology import topology
from nova.virt.libvirt.vifs import bridge
from nova.virt.libvirt.xml import specs

MANUFACTURER, PRODUCT, FAMILY = "OpenStack Foundation", "OpenStack Nova", "Virtual Machine"
CONSOLE_LOG, KERNEL, RAMDISK = "console.log", "kernel", "ramdisk"
COMMAND_LINE = "root=/dev/vda console=tty0 console=ttyS0"
CDROM_BUSES = {"q35": "sata", "virt": "scsi"}
RUNNABLE = {"x86_64": frozenset({"x86_64", "i686"})}
TUNING = {"quota:cpu_shares": "shares", "quota:cpu_period": "period", "quota:cpu_quota": "quota"}


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """What the host is: ``virt_type`` decided, ``serial`` as the operator wants guests to see it."""

    virt_type: str
    arch: str
    release: str
    serial_of: Callable[[str], str | None]  # from a server's uuid
    cache_mode: str = "none"
    efi: bool = False


def guest_spec(order: BuildOrder, disks: tuple[DiskRecord, ...], folder: Path, host: HostFacts,
               settings: Settings) -> specs.GuestSpec:
    """The whole guest. Invalid: the image or flavor asks for nonsense; HostRefused: for what isn't here."""
    extra = order.flavor.extra_specs
    asked = wishes(order.image.properties if order.image else {}, extra)
    arch, machine = _arch(asked, host), _machine(asked, settings, host)
    kvm = host.virt_type == "kvm"
    cdrom_bus = asked.cdrom_bus or next((bus for kind, bus in CDROM_BUSES.items() if _is(machine, kind)), "ide")
    return specs.GuestSpec(
        virt_type=host.virt_type, name=order.instance_name, uuid=order.server_uuid,
        memory_mib=order.flavor.memory_mb, cpu=_cpu(order, asked, settings, kvm),
        boot=_boot(order, asked, arch, machine, folder, host),
        sysinfo=specs.SysinfoSpec(manufacturer=MANUFACTURER, product=PRODUCT, version=host.release,
                                  serial=host.serial_of(order.server_uuid), uuid=order.server_uuid, family=FAMILY),
        note=_note(order, host.release), devices=_devices(asked, settings, folder, machine),
        platform=specs.PlatformSpec(windows=asked.os_type == "windows", kvm=kvm, hpet=asked.hpet, pmu=asked.pmu,
                                    hide_hypervisor=asked.hide_hypervisor),
        disks=disk_xml.disk_specs(disks, folder, asked, cdrom_bus, host.cache_mode, settings.discard, extra),
        vifs=tuple(bridge.spec(one, asked, settings, kvm, order.flavor.vcpus, extra) for one in order.interfaces))


def runnable(arch: str) -> frozenset[str]:
    """Architectures of guests that a host of ``arch`` runs."""
    return RUNNABLE.get(arch, frozenset({arch}))


def _arch(asked: Wishes, host: HostFacts) -> str:
    arch = asked.architecture or host.arch
    if arch not in runnable(host.arch):
        raise NotHere(name="hw_architecture", value=arch, reason=f"its processors are {host.arch}")
    return arch


def _machine(asked: Wishes, settings: Settings, host: HostFacts) -> str | None:
    return asked.machine or settings.machine_types.get(asked.architecture or host.arch)


def _is(machine: str | None, kind: str) -> bool:
    """Whether a machine type (q35, pc-q35-7.2, virt, virt-7.2) is of a kind."""
    return machine is not None and (machine == kind or machine.startswith((f"{kind}-", f"pc-{kind}-")))


def _cpu(order: BuildOrder, asked: Wishes, settings: Settings, kvm: bool) -> specs.CpuSpec:
    mode = settings.cpu_mode or ("host-model" if kvm else "none")
    if not kvm and mode == "host-passthrough":
        mode = "none"  # without KVM there is no host's processor to pass through
    flags = () if mode == "none" else settings.cpu_flags
    return specs.CpuSpec(
        vcpus=order.flavor.vcpus, topology=topology(order.flavor.vcpus, asked), mode=mode, model=settings.cpu_model,
        features=tuple(("disable" if flag.startswith("-") else "require", flag.lstrip("+-")) for flag in flags),
        tuning=tuple((element, _number(name, order.flavor.extra_specs[name])) for name, element in TUNING.items()
                     if name in order.flavor.extra_specs))


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WrongValue(name=name, value=text, reason="it is no number") from None


def _boot(order: BuildOrder, asked: Wishes, arch: str, machine: str | None, folder: Path,
          host: HostFacts) -> specs.BootSpec:
    if asked.efi and not host.efi:
        raise NotHere(name="hw_firmware_type", value="uefi", reason="no UEFI firmware (package ovmf) is installed")
    direct = order.kernel is not None
    return specs.BootSpec(
        arch=arch, machine=machine, menu=asked.boot_menu, efi=asked.efi,
        kernel=str(folder / KERNEL) if direct else None,
        ramdisk=str(folder / RAMDISK) if direct and order.ramdisk is not None else None,
        command_line=(asked.command_line or COMMAND_LINE) if direct else None)


def _devices(asked: Wishes, settings: Settings, folder: Path, machine: str | None) -> specs.DeviceSpec:
    screen = settings.vnc_listen is not None
    return specs.DeviceSpec(
        serial_ports=asked.serial_ports, console_log=str(folder / CONSOLE_LOG), vnc_listen=settings.vnc_listen,
        video_model=asked.video_model or ("virtio" if screen else None), video_ram_mb=_video_ram(asked),
        pointer_bus=_pointer(asked, settings) if screen else None,
        rng_path=settings.rng_path if asked.rng else None, rng_bytes=asked.rng_bytes,
        rng_period_ms=asked.rng_period_ms, balloon_period_s=settings.balloon_period_s,
        watchdog_action=None if asked.watchdog_action == "disabled" else asked.watchdog_action, agent=asked.agent,
        sound_model=asked.sound_model, usb_model=asked.usb_model, scsi_model=asked.scsi_model,
        pcie_ports=settings.pcie_ports if _is(machine, "q35") else 0)


def _video_ram(asked: Wishes) -> int | None:
    if asked.video_ram_mb and asked.video_ram_mb > asked.video_ram_max_mb:
        raise WrongValue(name="hw_video_ram", value=asked.video_ram_mb,
                         reason=f"the flavor allows {asked.video_ram_max_mb} MB (hw_video:ram_max_mb)")
    return asked.video_ram_mb


def _pointer(asked: Wishes, settings: Settings) -> str | None:
    if asked.input_bus:
        return asked.input_bus
    tablet = asked.pointer == "usbtablet" or settings.pointer == "usbtablet"
    return "usb" if tablet and asked.usb_model != "none" else None


def _note(order: BuildOrder, release: str) -> specs.NoteSpec:
    flavor = order.flavor
    return specs.NoteSpec(
        release=release, name=order.name, flavor_name=flavor.name, user_id=order.user_id, project_id=order.project_id,
        created_at=f"{order.created_at:%Y-%m-%d %H:%M:%S}" if order.created_at else "",
        flavor=(("memory", flavor.memory_mb), ("disk", flavor.root_gb), ("swap", flavor.swap_mb),
                ("ephemeral", flavor.ephemeral_gb), ("vcpus", flavor.vcpus)),
        image_id=order.image.id if order.image else None)
