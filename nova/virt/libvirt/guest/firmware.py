"""A guest's machine type and boot: BIOS or UEFI, secure boot, direct kernel boot. Pure."""

from __future__ import annotations

from pathlib import Path

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.virt.libvirt.disks.plan import KERNEL, RAMDISK
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.host.machines import is_kind, runnable
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.specs import BootSpec

COMMAND_LINE = "root=/dev/vda console=tty0 console=ttyS0"
#: The firmware's variables, in the guest's folder. Secure boot has its own file, which begins with the enrolled keys: a
#: guest that gets secure boot later must not use variables without them.
NVRAM, SECURE_NVRAM = "nvram.fd", "nvram.secure.fd"
PCIE = {"x86_64": "q35", "i686": "q35", "aarch64": "virt"}


def arch_of(asked: RequestedProperties, host: HypervisorFacts) -> str:
    """Return the image's architecture, else the host's own. Raises host.NoSuchGuest if this host cannot run it."""
    arch = asked.architecture or host.arch
    if arch not in runnable(host.arch):
        raise errors.host.NoSuchGuest(name="hw_architecture", value=arch, reason=f"its processors are {host.arch}")
    return arch


def machine_of(asked: RequestedProperties, settings: LibvirtSettings, host: HypervisorFacts) -> str | None:
    """Return the image's machine type, else the operator's, else one with the requested features; None: libvirt's
    default."""
    if asked.machine and host.machines and asked.machine not in host.machines:
        raise errors.host.NoSuchGuest(name="hw_machine_type", value=asked.machine,
                                      reason="its QEMU does not have the machine type")
    arch = asked.architecture or host.arch
    machine = asked.machine or settings.machine_types.get(arch)
    if machine is None and (asked.iommu or asked.secure_boot == "required"):
        machine = PCIE.get(arch)
    return machine


def check_pcie(asked: RequestedProperties, machine: str | None, field: str) -> None:
    """Check that the machine has PCI Express. Raises image.WrongProperty if the image's machine type has not,
    host.NoSuchGuest if the operator's has not."""
    if not any(is_kind(machine, kind) for kind in ("q35", "virt")):
        raise (errors.image.WrongProperty if asked.machine else errors.host.NoSuchGuest)(
            name=asked.name_of(field), value=getattr(asked, field),
            reason=f"it needs machine type q35 or virt, but the type is {machine or 'the default one'}")


def boot_spec(order: BuildOrder, asked: RequestedProperties, machine: str | None, folder: Path,
              host: HypervisorFacts) -> BootSpec:
    """Return the boot spec. Raises Invalid if no host can support it, HostRefused if this host cannot."""
    direct = order.kernel is not None
    secure = _secure(asked, machine, host)
    efi = secure or bool(asked.efi)
    if efi and not host.abilities(machine).efi:
        raise errors.host.NoSuchGuest(name=asked.name_of("efi"), value="uefi",
                                      reason="no UEFI firmware (package ovmf) is installed")
    _check_stateless(asked, efi, host)
    return BootSpec(
        arch=arch_of(asked, host), machine=machine, menu=asked.boot_menu, efi=efi, secure=secure,
        stateless=asked.stateless, nvram=str(folder / (SECURE_NVRAM if secure else NVRAM)) if efi else None,
        kernel=str(folder / KERNEL) if direct else None,
        ramdisk=str(folder / RAMDISK) if direct and order.ramdisk is not None else None,
        command_line=(asked.command_line or COMMAND_LINE) if direct else None)


def _secure(asked: RequestedProperties, machine: str | None, host: HypervisorFacts) -> bool:
    """Return whether the guest boots securely: required, or (optional) supported by the UEFI firmware that it uses."""
    possible = host.abilities(machine).secure_boot
    if asked.secure_boot == "optional":
        return bool(asked.efi) and possible
    if asked.secure_boot != "required":
        return False
    name = asked.name_of("secure_boot")
    if asked.efi is False:
        raise errors.image.WrongProperty(name=name, value="required", reason="hw_firmware_type is bios")
    if not is_kind(machine, "virt"):
        check_pcie(asked, machine, "secure_boot")
    if not possible:
        raise errors.host.NoSuchGuest(name=name, value="required",
                                      reason=f"no firmware for machine type {machine} supports secure boot")
    return True


def _check_stateless(asked: RequestedProperties, efi: bool, host: HypervisorFacts) -> None:
    if not asked.stateless:
        return
    name = asked.name_of("stateless")
    if not efi:
        raise errors.image.WrongProperty(name=name, value="yes",
                                         reason="it needs UEFI firmware (hw_firmware_type=uefi)")
    if not host.stateless_firmware:
        raise errors.host.NoSuchGuest(name=name, value="yes", reason="no stateless firmware is installed")
