"""Properties of image and flavor about the host's own processors, memory and devices, which only the order's claim can
satisfy. An order with such a property and without a matching claim is refused, never silently reduced. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nova import errors
from nova.model.numa.topology import TopologyClaim
from nova.virt.libvirt.properties import NO


class NumaProperty(NamedTuple):
    """A property: values that request nothing, and a check of the claim for the others."""

    harmless: frozenset[str]
    kept: Callable[[TopologyClaim, str], bool]


def _policy(packing: TopologyClaim, value: str) -> bool:
    pinned = sum(len(cell.pins) for cell in packing.cells)
    return pinned == sum(len(cell.vcpus) for cell in packing.cells) if value == "dedicated" else pinned > 0


def _pages(packing: TopologyClaim, value: str) -> bool:
    return bool(packing.cells) and all(cell.page_kb for cell in packing.cells)


def _nodes(packing: TopologyClaim, value: str) -> bool:
    return packing.numa and str(len(packing.cells)) == value


_POLICY = NumaProperty(frozenset({"shared"}), _policy)
_PAGES = NumaProperty(frozenset({"small", "any"}), _pages)
_NODES = NumaProperty(frozenset(), _nodes)
_LOCKED = NumaProperty(NO, lambda packing, value: packing.locked)

PROMISES: dict[str, NumaProperty] = {
    "hw:cpu_policy": _POLICY, "hw_cpu_policy": _POLICY,
    "hw:cpu_realtime": NumaProperty(NO, lambda packing, value: bool(packing.realtime)),
    "hw:mem_page_size": _PAGES, "hw_mem_page_size": _PAGES,
    "hw:numa_nodes": _NODES, "hw_numa_nodes": _NODES,
    "hw:locked_memory": _LOCKED, "hw_locked_memory": _LOCKED,
    "pci_passthrough:alias": NumaProperty(frozenset(), lambda packing, value: bool(packing.devices)),
}


def check(image: Mapping[str, str], extra_specs: Mapping[str, str], packing: TopologyClaim | None) -> None:
    """Raise host.NoSuchGuest for the first property that the claim does not satisfy. A flavor's property overrides its
    image's."""
    overridden = {name.replace("hw:", "hw_", 1) for name in extra_specs if name in PROMISES}
    given = [*((name, value) for name, value in image.items() if name not in overridden), *extra_specs.items()]
    for name, value in given:
        promise, plain = PROMISES.get(name), value.strip().lower()
        if promise is not None and plain not in promise.harmless and (
                packing is None or not promise.kept(packing, plain)):
            raise errors.host.NoSuchGuest(name=name, value=value,
                                          reason="the order has no claim of its processors, memory or "
                                          "devices that satisfies it")
