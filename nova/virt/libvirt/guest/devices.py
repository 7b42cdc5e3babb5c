"""A guest's devices except disks and interfaces, and checks that this host supports them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from nova import errors
from nova.virt.libvirt.guest.firmware import check_pcie
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.host.machines import SINCE, is_kind
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.capabilities import DomainCapabilities
from nova.virt.libvirt.xml.specs import GuestDevices, TpmSpec

CONSOLE_LOG = "console.log"
TPM_MODEL = "tpm-crb"  # the default of 2.0; 1.2 supports only tpm-tis
IOMMU_KINDS = {"intel": ("q35",), "virtio": ("q35", "virt"), "smmuv3": ("virt",), "auto": ("q35", "virt")}
AUTO_IOMMU = "virtio"


class MachineDevices(NamedTuple):
    """The devices that libvirt reports for a machine type; if it reports none, all are accepted."""

    field: str
    named: Callable[[DomainCapabilities], Collection[str]]
    what: str


OFFERS = (
    MachineDevices("disk_bus", lambda can: can.disk_buses, "bus"),
    MachineDevices("cdrom_bus", lambda can: can.disk_buses, "bus"),
    MachineDevices("video_model", lambda can: can.video_models, "video device"),
)


def check_offers(asked: RequestedProperties, can: DomainCapabilities, host: HypervisorFacts) -> None:
    """Raise host.NoSuchGuest for the first requested device that this host's QEMU does not have."""
    for offer in OFFERS:
        value, named = getattr(asked, offer.field), offer.named(can)
        if value is not None and named and value not in named:
            raise errors.host.NoSuchGuest(name=asked.name_of(offer.field), value=value,
                                          reason=f"machine type {can.machine or 'used'} does not have the {offer.what}")
    for (field, model), version in SINCE.items():
        if getattr(asked, field) == model and host.version < version:
            raise errors.host.NoSuchGuest(name=asked.name_of(field), value=model,
                                          reason=f"it needs QEMU {version // 1_000_000}.{version // 1000 % 1000}")


def device_spec(asked: RequestedProperties, settings: LibvirtSettings, folder: Path, machine: str | None,
                host: HypervisorFacts,
                server_uuid: str) -> GuestDevices:
    """Return the devices. ``folder``: the guest's, for its console log. ``machine`` None: the default type. Raises
    host.NoSuchGuest if this host does not support a request; image.WrongProperty if the image contradicts itself."""
    spice, can = settings.consoles.spice, host.abilities(machine)
    screen = settings.vnc_listen is not None or spice is not None
    check_offers(asked, can, host)
    return GuestDevices(
        serial_ports=asked.serial_ports, console_log=str(folder / CONSOLE_LOG), vnc_listen=settings.vnc_listen,
        spice=spice,
        video_model=asked.video_model or ("virtio" if screen else None), video_ram_mb=asked.video_ram_mb,
        pointer_bus=_pointer(asked, settings) if screen else None,
        rng_path=settings.rng_path if asked.rng else None, rng_bytes=asked.rng_bytes,
        rng_period_ms=asked.rng_period_ms, balloon_period_s=settings.balloon_period_s,
        watchdog_action=None if asked.watchdog_action == "disabled" else asked.watchdog_action, agent=asked.agent,
        sound_model=asked.sound_model, usb_model=asked.usb_model, scsi_model=asked.scsi_model,
        pcie_ports=settings.pcie_ports if is_kind(machine, "q35") else 0,
        tpm=_tpm(asked, can, host, server_uuid), iommu=_iommu(asked, machine))


def _tpm(asked: RequestedProperties, can: DomainCapabilities, host: HypervisorFacts,
         server_uuid: str) -> TpmSpec | None:
    version = asked.tpm_version
    if version is None:
        return None
    model = asked.tpm_model or (TPM_MODEL if version == "2.0" else "tpm-tis")
    name = asked.name_of("tpm_version")
    if not host.tpm:
        raise errors.host.NoSuchGuest(name=name, value=version,
                                      reason="TPMs are disabled on this host: they need [libvirt]swtpm_enabled, and "
                                      "the packages swtpm and swtpm-tools")
    if can.tpm_versions and version not in can.tpm_versions:
        raise errors.host.NoSuchGuest(name=name, value=version, reason="its TPM emulator does not support the version")
    if can.tpm_models and model not in can.tpm_models:
        raise errors.host.NoSuchGuest(name=asked.name_of("tpm_model"), value=model, reason="its QEMU has no such TPM")
    return TpmSpec(model=model, version=version, secret=server_uuid)


def _iommu(asked: RequestedProperties, machine: str | None) -> str | None:
    if asked.iommu is None:
        return None
    check_pcie(asked, machine, "iommu")
    if not any(is_kind(machine, kind) for kind in IOMMU_KINDS[asked.iommu]):
        raise errors.host.NoSuchGuest(name=asked.name_of("iommu"), value=asked.iommu,
                                      reason=f"machine type {machine} does not support it")
    return AUTO_IOMMU if asked.iommu == "auto" else asked.iommu


def _pointer(asked: RequestedProperties, settings: LibvirtSettings) -> str | None:
    if asked.input_bus:
        return asked.input_bus
    tablet = asked.pointer == "usbtablet" or settings.pointer == "usbtablet"
    return "usb" if tablet and asked.usb_model != "none" else None
