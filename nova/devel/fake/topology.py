"""Parser of a simulated topology of CPUs, memory and devices, given in a short text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nova import errors
from nova.model.numa.topology import Cpus, HostCell, HostTopology, Pages, PciDevice
from nova.model.placement.providers import ClassInventory

CELLS = re.compile(r"(\d+) cells? x (\d+) cpus? x (\d+) MB")
#: Comma-separated options -> the setting of each.
MORE: dict[str, re.Pattern[str]] = {
    "dedicated": re.compile(r"(\d+) dedicated"), "threads": re.compile(r"(\d+) threads?"),
    "pages": re.compile(r"(\d+) x (\d+) KB pages?"), "devices": re.compile(r"(\d+) devices?")}
VENDOR, PRODUCT = "1af4", "1110"
MOST_DEVICES = 1024


@dataclass(frozen=True, kw_only=True)
class Made:
    topology: HostTopology
    vcpus: int
    memory_mb: int
    inventories: tuple[ClassInventory, ...] = ()
    traits: tuple[str, ...] = ()


def parse(text: str) -> Made:
    """Parse a topology such as "2 cells x 4 cpus x 8192 MB, 2 dedicated, 2 threads, 64 x 2048 KB pages, 2 devices".
    Raises config.FakeTopology."""
    first, *rest = (" ".join(part.split()) for part in text.split(","))
    start, said = CELLS.fullmatch(first), _said(rest)
    if start is None:
        raise errors.config.FakeTopology(reason="it must begin in the form 2 cells x 4 cpus x 8192 MB")
    count, cpus, memory_mb = (int(part) for part in start.groups())
    dedicated = said["dedicated"][0][0] if said["dedicated"] else (cpus + 1) // 2
    threads = said["threads"][0][0] if said["threads"] else 1
    devices = said["devices"][0][0] if said["devices"] else 0
    for wrong, reason in ((not count or not cpus or not memory_mb, "each number must be at least 1"),
                          (dedicated > cpus, f"a cell of {cpus} CPUs cannot have {dedicated} dedicated ones"),
                          (not threads or cpus % threads, f"{cpus} CPUs cannot form cores of {threads} threads"),
                          (devices > MOST_DEVICES, f"the maximum is {MOST_DEVICES} devices"),
                          (sum(n * kb for n, kb in said["pages"]) > memory_mb * 1024,
                           "the pages exceed a cell's memory")):
        if wrong:
            raise errors.config.FakeTopology(reason=reason)

    def cell(number: int) -> HostCell:
        own = tuple(range(number * cpus, (number + 1) * cpus))
        cores = tuple(own[at:at + threads] for at in range(0, cpus, threads)) if threads > 1 else ()
        return HostCell(id=number, shared=own[:cpus - dedicated], dedicated=own[cpus - dedicated:], siblings=cores,
                        memory_mb=memory_mb, socket=number, pages=_pages(memory_mb, said["pages"]),
                        distances={other: 10 if other == number else 20 for other in range(count)})
    cells = tuple(cell(number) for number in range(count))
    return Made(
        topology=HostTopology(cells=cells, devices=_devices(devices, count)), vcpus=count * (cpus - dedicated),
        memory_mb=count * memory_mb, inventories=_pcpus(count * dedicated),
        traits=("HW_CPU_HYPERTHREADING",) if threads > 1 else ())


def _said(parts: list[str]) -> dict[str, list[Cpus]]:
    found: dict[str, list[Cpus]] = {word: [] for word in MORE}
    for number, part in enumerate(parts, 2):
        word, match = next(((word, match) for word, pattern in MORE.items() if (match := pattern.fullmatch(part))),
                           ("", None))
        if match is None:
            raise errors.config.FakeTopology(reason=f"part {number} is unknown (valid are: 2 dedicated, 2 "
                                             "threads, 64 x 2048 KB pages, 2 devices)")
        found[word].append(tuple(int(group) for group in match.groups()))
    return found


def _pages(memory_mb: int, huge: list[Cpus]) -> tuple[Pages, ...]:
    small_kb = memory_mb * 1024 - sum(count * size for count, size in huge)
    return (Pages(size_kb=4, total=small_kb // 4),
            *(Pages(size_kb=size, total=count) for count, size in sorted(huge, key=lambda pair: pair[1])))


def _pcpus(count: int) -> tuple[ClassInventory, ...]:
    return (ClassInventory(resource_class="PCPU", total=count, max_unit=count),) if count else ()


def _devices(count: int, cells: int) -> tuple[PciDevice, ...]:
    """Return devices that alternate between the cells: bus 1 at cell 0, bus 2 at cell 1."""
    return tuple(PciDevice(address=f"0000:{number % cells + 1:02x}:{number // cells // 8:02x}.{number // cells % 8}",
                           vendor_id=VENDOR, product_id=PRODUCT, cell=number % cells) for number in range(count))
