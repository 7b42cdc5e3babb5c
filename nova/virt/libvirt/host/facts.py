"""Facts of a host on which its guests' machines depend. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nova.virt.libvirt.xml.capabilities import DomainCapabilities


def _unknown(machine: str | None) -> DomainCapabilities:
    return DomainCapabilities(emulator="", efi=False)


@dataclass(frozen=True, kw_only=True)
class HypervisorFacts:
    """Facts of the hypervisor. ``virt_type`` is resolved, ``serial_of`` follows the operator's setting, ``version`` is
    QEMU's (see LibvirtHypervisor).

    ``abilities``: a machine type (None: libvirt's default) -> the capabilities of its guests. ``machines``: the known
    machine types; empty if unknown.
    """

    virt_type: str
    arch: str
    serial_of: Callable[[str], str | None]  # from a server's uuid
    cache_mode: str = "none"
    version: int = 0
    machines: frozenset[str] = frozenset()
    abilities: Callable[[str | None], DomainCapabilities] = _unknown
    tpm: bool = False  # enabled by the operator, and the emulator is installed
    stateless_firmware: bool = False
    floating: tuple[int, ...] = ()  # processors for guests without pins; () if they may use all
    page_kb: int = 4  # the size of a small page
    qemu_owner: tuple[int, int] = (0, 0)  # the user and group of QEMU processes
    address_bits: int = 0  # of the processor's physical addresses; 0: unknown to libvirt and not settable (before 8.7)
    cpu_features: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by model
