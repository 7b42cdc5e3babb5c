"""What a host is and can, as far as its guests' machines depend on it. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nova.virt.libvirt.xml.capabilities import DomainCapabilities


def _unknown(machine: str | None) -> DomainCapabilities:
    return DomainCapabilities(emulator="", efi=False)


@dataclass(frozen=True, kw_only=True)
class HypervisorFacts:
    """``virt_type`` is decided, ``serial`` as the operator wants guests to see it, ``version`` QEMU's (see Hypervisor).

    ``abilities``: from a machine type (None: libvirt's default) to what its guests may have. ``machines``: the machine
    types there are; empty when that is not known.
    """

    virt_type: str
    arch: str
    serial_of: Callable[[str], str | None]  # from a server's uuid
    cache_mode: str = "none"
    version: int = 0
    machines: frozenset[str] = frozenset()
    abilities: Callable[[str | None], DomainCapabilities] = _unknown
    tpm: bool = False  # the operator lets guests have one, and the emulator is installed
    stateless_firmware: bool = False
    floating: tuple[int, ...] = ()  # processors for guests that are not pinned; () where they may run on all
    page_kb: int = 4  # a small page's size
    qemu_owner: tuple[int, int] = (0, 0)  # the user and group that guests' programs run as
    address_bits: int = 0  # of the processor's physical addresses; 0: libvirt neither tells nor sets them (before 8.7)
    cpu_features: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by model
