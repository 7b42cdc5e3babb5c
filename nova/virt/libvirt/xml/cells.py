"""The NUMA topology of a host's processors and memory, read from libvirt's capabilities
(https://libvirt.org/formatcaps.html). Pure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field

KIB_OF = {"b": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1 << 20}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A NUMA cell. ``cpus``: online ones. ``siblings``: the threads of each core that has more than one. ``pages``:
    size in KiB -> how many the cell has."""

    id: int
    cpus: tuple[int, ...]
    siblings: tuple[tuple[int, ...], ...] = ()
    memory_mb: int = 0
    pages: Mapping[int, int] = field(default_factory=dict)
    socket: int | None = None
    distances: Mapping[int, int] = field(default_factory=dict)


def cells(capabilities: str, cpus: int, memory_mb: int) -> tuple[Cell, ...]:
    """Return the cells of a host with these totals; a single cell if libvirt reports no topology. Cells without memory
    and online processors are omitted."""
    found = [_cell(one) for one in ET.fromstring(capabilities).iterfind("host/topology/cells/cell")]
    reported = tuple(one for one in found if one.cpus or one.memory_mb)
    if not any(one.cpus for one in reported):
        pages = reported[0].pages if len(reported) == 1 else {}
        return (Cell(id=reported[0].id if reported else 0, cpus=tuple(range(cpus)), memory_mb=memory_mb, pages=pages),)
    return reported


def _cell(cell: ET.Element) -> Cell:
    listed = cell.findall("cpus/cpu")
    described = [one for one in listed if one.get("siblings")]
    on = described or listed  # of an offline processor, libvirt reports only the number
    cores = {expand(one.get("siblings", "")) for one in described}
    sockets = {one.get("socket_id") for one in on if one.get("socket_id") is not None}
    memory = cell.find("memory")
    return Cell(
        id=int(cell.get("id", "0")), cpus=tuple(sorted(int(one.get("id", "0")) for one in on)),
        siblings=tuple(sorted(core for core in cores if len(core) > 1)),
        memory_mb=int(_kib(memory) / 1024) if memory is not None else 0,
        pages={int(int(one.get("size", "0")) * KIB_OF.get(one.get("unit", "KiB"), 1)): int(one.text or "0")
               for one in cell.iterfind("pages")},
        socket=int(sockets.pop() or "0") if len(sockets) == 1 else None,
        distances={int(one.get("id", "0")): int(one.get("value", "0")) for one in cell.iterfind("distances/sibling")})


def _kib(memory: ET.Element) -> float:
    return int(memory.text or "0") * KIB_OF.get(memory.get("unit", "KiB"), 1)


def expand(text: str) -> tuple[int, ...]:
    """Expand "0-1,8" to numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))
