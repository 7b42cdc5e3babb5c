"""What a guest's machine is and how it boots: machine type, BIOS or UEFI, secure boot, a kernel of its own. Pure."""

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
#: The firmware's variables, beside the guest. Those of a guest with secure boot begin with the enrolled keys: a guest
#: that gets it later must not go on with variables that have none.
NVRAM, SECURE_NVRAM = "nvram.fd", "nvram.secure.fd"
PCIE = {"x86_64": "q35", "i686": "q35", "aarch64": "virt"}


def arch_of(asked: RequestedProperties, host: HypervisorFacts) -> str:
    """The architecture that the image asks for, else the host's own. host.NoSuchGuest: this host cannot run it."""
    arch = asked.architecture or host.arch
    if arch not in runnable(host.arch):
        raise errors.host.NoSuchGuest(name="hw_architecture", value=arch, reason=f"its processors are {host.arch}")
    return arch


def machine_of(asked: RequestedProperties, settings: LibvirtSettings, host: HypervisorFacts) -> str | None:
    """The image's, else the operator's, else one that can have what is asked for; None is libvirt's choice."""
    if asked.machine and host.machines and asked.machine not in host.machines:
        raise errors.host.NoSuchGuest(name="hw_machine_type", value=asked.machine,
                                      reason="its QEMU has no such machine type")
    arch = asked.architecture or host.arch
    machine = asked.machine or settings.machine_types.get(arch)
    if machine is None and (asked.iommu or asked.secure_boot == "required"):
        machine = PCIE.get(arch)
    return machine


def check_pcie(asked: RequestedProperties, machine: str | None, field: str) -> None:
    """That the machine has PCI Express. image.WrongProperty when the image says it hasn't, host.NoSuchGuest when the
    operator does."""
    if not any(is_kind(machine, kind) for kind in ("q35", "virt")):
        raise (errors.image.WrongProperty if asked.machine else errors.host.NoSuchGuest)(
            name=asked.name_of(field), value=getattr(asked, field),
            reason=f"it needs machine type q35 or virt, and this is {machine or 'the default one'}")


def boot_spec(order: BuildOrder, asked: RequestedProperties, machine: str | None, folder: Path,
              host: HypervisorFacts) -> BootSpec:
    """Invalid: what no host can; HostRefused: what this one can't."""
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
    """Whether the guest boots securely: asked for, or (optional) possible with the UEFI it has anyway."""
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
                                      reason=f"no firmware for machine type {machine} has secure boot")
    return True


def _check_stateless(asked: RequestedProperties, efi: bool, host: HypervisorFacts) -> None:
    if not asked.stateless:
        return
    name = asked.name_of("stateless")
    if not efi:
        raise errors.image.WrongProperty(name=name, value="yes",
                                         reason="it is of UEFI firmware alone (hw_firmware_type=uefi)")
    if not host.stateless_firmware:
        raise errors.host.NoSuchGuest(name=name, value="yes", reason="no firmware without variables is installed")
