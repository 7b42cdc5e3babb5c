"""What operators set of a host's processors, memory and devices for fine-grained placement, as one value. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nova import errors
from nova.conf.base import Options
from nova.model.base import Library
from nova.virt import cpu_sets
from nova.virt.pci import specs
from nova.virt.pci.specs import DeviceSpec

SIZE = re.compile(r"(\d+)\s*([kKMGT]?)(?:i?[bB])?")
KIB = {"": 1, "k": 1, "K": 1, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30}
LABEL = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, kw_only=True)
class Placing:
    """``shared`` and ``dedicated``: processors; None where the option is unset. ``reserved_pages``: (cell, size in
    KiB) -> how many. ``pmem``: label -> names of namespaces. ``encrypted_guests`` None: as many as there are keys for.
    """

    shared: frozenset[int] | None = None
    dedicated: frozenset[int] | None = None
    reserved_pages: Mapping[tuple[int, int], int] = field(default_factory=dict)
    devices: tuple[DeviceSpec, ...] = ()
    report_devices: bool = False
    pmem: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    encrypted_guests: int | None = None

    @property
    def sets(self) -> bool:
        """Whether the operator said which processors are for what."""
        return self.shared is not None or self.dedicated is not None


def placing_of(default: Library, libvirt: Options, compute: Options, pci: Options = None) -> Placing:
    """From the groups ``[DEFAULT]``, ``[libvirt]``, ``[compute]`` and ``[pci]``. Invalid names the option."""
    shared = _cpus("[compute]cpu_shared_set", compute.cpu_shared_set)
    dedicated = _cpus("[compute]cpu_dedicated_set", compute.cpu_dedicated_set)
    both = (shared or frozenset()) & (dedicated or frozenset())
    if both:
        raise errors.config.Placing(option="[compute]cpu_dedicated_set",
                                    reason=f"{cpu_sets.spec(both)} is in [compute]cpu_shared_set, too")
    return Placing(
        shared=shared, dedicated=dedicated, reserved_pages=reserved_pages(default.reserved_huge_pages),
        devices=specs.parse(pci.device_spec) if pci is not None else (),
        report_devices=pci.report_in_placement if pci is not None else False,
        pmem=pmem_of(libvirt.pmem_namespaces), encrypted_guests=libvirt.num_memory_encrypted_guests)


def reserved_pages(texts: Iterable[str]) -> Mapping[tuple[int, int], int]:
    """From ``node:0,size:2048,count:64``. config.Placing."""
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
    """From ``LABEL:ns0|ns1``. config.Placing."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        label, _, rest = text.strip().partition(":")
        names = tuple(name.strip() for name in rest.split("|"))
        used = {name for others in found.values() for name in others}
        if not LABEL.fullmatch(label) or not all(names):
            reason = "it must be like LABEL:ns0|ns1, with letters, digits and _ in its label"
        elif label in found:
            reason = "a label is there twice"
        elif len(set(names)) < len(names) or used & set(names):
            reason = "a namespace is there twice"
        else:
            found[label] = names
            continue
        raise errors.config.Placing(option="[libvirt]pmem_namespaces", reason=reason)
    return found


def _cpus(option: str, text: str | None) -> frozenset[int] | None:
    return cpu_sets.parse(option, text) if text else None
