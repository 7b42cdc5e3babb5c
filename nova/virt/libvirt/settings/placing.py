"""Operators' settings of a host's processors, memory and devices for NUMA and PCI placement. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nova import errors
from nova.conf._options import Options
from nova.conf.compute_section import ComputeOptions
from nova.conf.libvirt import LibvirtOptions
from nova.conf.pci import PciOptions
from nova.virt import cpu_sets
from nova.virt.pci import specs
from nova.virt.pci.specs import DeviceSpec

SIZE = re.compile(r"(\d+)\s*([kKMGT]?)(?:i?[bB])?")
KIB = {"": 1, "k": 1, "K": 1, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}
LABEL = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, kw_only=True)
class Placing:
    """Placement settings. ``shared`` and ``dedicated``: processors; None if the option is unset. ``reserved_pages``:
    (cell, size in KiB) -> count. ``pmem``: label -> namespace names. ``encrypted_guests`` None: as many as there are
    keys."""

    shared: frozenset[int] | None = None
    dedicated: frozenset[int] | None = None
    reserved_pages: Mapping[tuple[int, int], int] = field(default_factory=dict)
    devices: tuple[DeviceSpec, ...] = ()
    report_devices: bool = False
    pmem: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    encrypted_guests: int | None = None

    @property
    def sets(self) -> bool:
        """Return whether the operator configured shared or dedicated processors."""
        return self.shared is not None or self.dedicated is not None


def placing_of(default: Options, libvirt: LibvirtOptions, compute: ComputeOptions, pci: PciOptions | None = None
               ) -> Placing:
    """Return the settings from ``[DEFAULT]``, ``[libvirt]``, ``[compute]`` and ``[pci]``. Raises Invalid with the
    option."""
    shared = _cpus("[compute]cpu_shared_set", compute.cpu_shared_set)
    dedicated = _cpus("[compute]cpu_dedicated_set", compute.cpu_dedicated_set)
    both = (shared or frozenset()) & (dedicated or frozenset())
    if both:
        raise errors.config.Placing(option="[compute]cpu_dedicated_set",
                                    reason=f"{cpu_sets.spec(both)} is also in [compute]cpu_shared_set")
    return Placing(
        shared=shared, dedicated=dedicated, reserved_pages=reserved_pages(default.reserved_huge_pages),
        devices=specs.parse(pci.device_spec) if pci is not None else (),
        report_devices=pci.report_in_placement if pci is not None else False,
        pmem=pmem_of(libvirt.pmem_namespaces), encrypted_guests=libvirt.num_memory_encrypted_guests)


def reserved_pages(texts: Iterable[str]) -> Mapping[tuple[int, int], int]:
    """Parse ``node:0,size:2048,count:64``. Raises config.Placing."""
    found: dict[tuple[int, int], int] = {}
    for text in texts:
        given = {name.strip(): value.strip() for name, _, value in
                 (part.partition(":") for part in text.split(","))}
        size = SIZE.fullmatch(given.get("size", ""))
        if set(given) != {"node", "size", "count"} or size is None or not (
                given["node"].isdecimal() and given["count"].isdecimal()):
            raise errors.config.Placing(option="[DEFAULT]reserved_huge_pages",
                                        reason="it must be like node:0,size:2048,count:64")
        found[int(given["node"]), int(size[1]) * KIB[size[2]]] = int(given["count"])
    return found


def pmem_of(texts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Parse ``LABEL:ns0|ns1``. Raises config.Placing."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        label, _, rest = text.strip().partition(":")
        names = tuple(name.strip() for name in rest.split("|"))
        used = {name for others in found.values() for name in others}
        if not LABEL.fullmatch(label) or not all(names):
            reason = "it must be like LABEL:ns0|ns1, with letters, digits and _ in the label"
        elif label in found:
            reason = "it contains a label twice"
        elif len(set(names)) < len(names) or used & set(names):
            reason = "it contains a namespace twice"
        else:
            found[label] = names
            continue
        raise errors.config.Placing(option="[libvirt]pmem_namespaces", reason=reason)
    return found


def _cpus(option: str, text: str | None) -> frozenset[int] | None:
    return cpu_sets.parse(option, text) if text else None
