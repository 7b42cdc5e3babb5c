"""Standard traits that a host reports to the scheduler for its guests. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.host.machines import SINCE, is_kind
from nova.virt.libvirt.host.processors import traits_of
from nova.virt.libvirt.xml.capabilities import DomainCapabilities

#: Machine types to query in addition to the default one.
MACHINES = ("pc", "q35", "virt")
ARCHES = {"x86_64": "X86_64", "aarch64": "AARCH64", "i686": "I686", "ppc64le": "PPC64LE", "s390x": "S390X",
          "riscv64": "RISCV64"}
EMULATED = frozenset({"X86_64", "AARCH64", "PPC64LE", "S390X", "RISCV64"})  # that COMPUTE_ARCH_ has
ALWAYS = (
    "COMPUTE_NODE", "COMPUTE_NET_VIRTIO_PACKED", "COMPUTE_USB_MODEL_QEMU_XHCI", "COMPUTE_USB_MODEL_NEC_XHCI",
    *(f"COMPUTE_IMAGE_TYPE_{name}" for name in ("AKI", "AMI", "ARI", "ISO", "QCOW2", "RAW", "VDI", "VHD", "VHDX",
                                                "VMDK")),
    *(f"COMPUTE_NET_VIF_MODEL_{name}" for name in ("E1000", "E1000E", "NE2K_PCI", "PCNET", "RTL8139", "VIRTIO",
                                                   "VMXNET3")),
)
X86 = ("COMPUTE_FIRMWARE_BIOS", *(f"COMPUTE_SOUND_MODEL_{name}" for name in ("SB16", "ES1370", "PCSPK", "AC97", "ICH6",
                                                                             "ICH9", "USB")))
NEWER = {("sound_model", "virtio"): "COMPUTE_SOUND_MODEL_VIRTIO", ("vif_model", "igb"): "COMPUTE_NET_VIF_MODEL_IGB"}
BUSES = {"fdc": "FDC", "ide": "IDE", "sata": "SATA", "scsi": "SCSI", "usb": "USB", "virtio": "VIRTIO"}
VIDEOS = {"bochs": "BOCHS", "cirrus": "CIRRUS", "none": "NONE", "qxl": "QXL", "vga": "VGA", "virtio": "VIRTIO",
          "vmvga": "VMVGA"}
TPM_VERSIONS = {"1.2": "1_2", "2.0": "2_0"}
TPM_MODELS = {"tpm-tis": "TIS", "tpm-crb": "CRB"}
IOMMUS = {"q35": ("INTEL", "VIRTIO", "AUTO"), "virt": ("SMMUV3", "VIRTIO", "AUTO")}


def traits(host: HypervisorFacts, features: Iterable[str], machines: Collection[DomainCapabilities]) -> tuple[str, ...]:
    """Return the traits of a host with these machine types; a trait is set if one of them has it. ``features``: the
    possible features of guests' processors."""
    found = {*ALWAYS, *traits_of(features), *_by_name("COMPUTE_STORAGE_BUS", BUSES, machines, "disk_buses"),
             *_by_name("COMPUTE_GRAPHICS_MODEL", VIDEOS, machines, "video_models"),
             *(trait for what, trait in NEWER.items() if host.version >= SINCE[what]), *_arch(host.arch)}
    if host.arch in ("x86_64", "i686"):
        found |= set(X86)
    if any(can.efi for can in machines):
        found.add("COMPUTE_FIRMWARE_UEFI")
    if any(can.secure_boot for can in machines):
        found.add("COMPUTE_SECURITY_UEFI_SECURE_BOOT")
    if host.stateless_firmware:
        found.add("COMPUTE_SECURITY_STATELESS_FIRMWARE")
    if host.tpm:
        found |= {"COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST",
                  *_by_name("COMPUTE_SECURITY_TPM", TPM_VERSIONS, machines, "tpm_versions"),
                  *_by_name("COMPUTE_SECURITY_TPM", TPM_MODELS, machines, "tpm_models")}
    found |= {f"COMPUTE_VIOMMU_MODEL_{model}" for kind, models in IOMMUS.items()
              if any(is_kind(can.machine, kind) for can in machines) for model in models}
    return tuple(sorted(found))


def _by_name(prefix: str, names: dict[str, str], machines: Iterable[DomainCapabilities], field: str) -> Iterator[str]:
    for can in machines:
        yield from (f"{prefix}_{names[value]}" for value in getattr(can, field) if value in names)


def _arch(arch: str) -> Iterator[str]:
    if name := ARCHES.get(arch):
        yield f"HW_ARCH_{name}"
        if name in EMULATED:
            yield f"COMPUTE_ARCH_{name}"
