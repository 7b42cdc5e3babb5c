"""NUMA cells, pinned CPUs and pages that a flavor and an image request.

If both may set a value, the flavor decides, and the image may only choose within the flavor's limits. Any contradiction
raises server.ImpossibleRequirement, which names its source and a valid alternative. Source: the public guides on CPU
topologies, huge pages and realtime, and the lists of extra specs and image properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from nova.model.numa.topology import Cpus, GuestCell, GuestTopology
from nova.model.scheduling.requirement_syntax import (
    Said,
    choice,
    countable,
    flag,
    number,
    page_size,
    processors,
    said,
)

SHARED, MIXED, DEDICATED = "shared", "mixed", "dedicated"
STRICTNESS = (SHARED, MIXED, DEDICATED)
ISOLATE, SHARE = "isolate", "share"


class FlavorAndImage(NamedTuple):
    """A flavor's size and extra specs, and an image's properties."""

    vcpus: int
    memory_mb: int
    specs: Mapping[str, str]
    image: Mapping[str, str]


class _Pinning(NamedTuple):
    pinned: frozenset[int] = frozenset()
    realtime: Cpus = ()
    thread_policy: str = ""
    emulator: str = ""


def guest_of(asked: FlavorAndImage) -> GuestTopology | None:
    """Return the guest's topology; None if it has no requirements. Raises server.ImpossibleRequirement."""
    pinning, page = _pinning(asked), _page(asked)
    locked = _locked(asked, page)
    stated = said(asked.specs, "hw:mem_page_size") or said(asked.image, "hw_mem_page_size")
    if stated is not None:
        countable(stated, asked.vcpus)
    cells = _cells(asked)
    numa = cells is not None
    if cells is None:
        if not pinning.pinned and not page:
            return None
        cells = ((tuple(range(asked.vcpus)), asked.memory_mb),)
    return GuestTopology(
        cells=tuple(GuestCell(id=at, vcpus=vcpus, pinned=tuple(cpu for cpu in vcpus if cpu in pinning.pinned),
                              memory_mb=memory_mb) for at, (vcpus, memory_mb) in enumerate(cells)),
        numa=numa, thread_policy=pinning.thread_policy, emulator=pinning.emulator, page=page,
        realtime=pinning.realtime, locked=locked, threads=_threads(asked))


# -- CPUs

def _pinning(asked: FlavorAndImage) -> _Pinning:
    policy = _policy(asked)
    threads = _thread_policy(asked)
    emulator = said(asked.specs, "hw:emulator_threads_policy")
    realtime = said(asked.specs, "hw:cpu_realtime")
    mask = said(asked.specs, "hw:cpu_dedicated_mask")
    choice(emulator, ISOLATE, SHARE)
    if mask is not None and policy != MIXED:
        raise mask.wrong("it requires hw:cpu_policy=mixed")
    if policy == SHARED:
        for one, needs in ((threads, True), (emulator, emulator and emulator.value == ISOLATE),
                           (realtime, flag(realtime))):
            if one is not None and needs:
                raise one.wrong("it requires dedicated CPUs (hw:cpu_policy=dedicated or mixed)")
        return _Pinning()
    stated = said(asked.specs, "hw:cpu_policy") or said(asked.image, "hw_cpu_policy")
    if stated is not None:
        countable(stated, asked.vcpus)
    fast_mask = _realtime_mask(asked) if flag(realtime) else None
    pinned = _mixed(asked, mask, fast_mask) if policy == MIXED else frozenset(range(asked.vcpus))
    fast: frozenset[int] = frozenset()
    if realtime is not None and flag(realtime):
        fast = _realtime(asked, fast_mask or realtime, processors(fast_mask, asked.vcpus) if fast_mask else pinned,
                         emulator)
    return _Pinning(pinned, tuple(sorted(fast)), threads.value if threads else "", emulator.value if emulator else "")


def _policy(asked: FlavorAndImage) -> str:
    """Return the CPU policy. An image may only request as many dedicated CPUs as the flavor allows."""
    mine, its = said(asked.specs, "hw:cpu_policy"), said(asked.image, "hw_cpu_policy")
    flavor, image = choice(mine, *STRICTNESS), choice(its, *STRICTNESS)
    if mine is not None and flavor and its is not None and image \
            and STRICTNESS.index(image) > STRICTNESS.index(flavor):
        raise its.wrong(f"the flavor has {mine.name}={flavor}")
    return flavor or image or SHARED


def _thread_policy(asked: FlavorAndImage) -> Said | None:
    mine, its = said(asked.specs, "hw:cpu_thread_policy"), said(asked.image, "hw_cpu_thread_policy")
    flavor, image = (choice(one, "prefer", "isolate", "require") for one in (mine, its))
    if mine is not None and its is not None and flavor != "prefer" and flavor != image:
        raise its.wrong(f"the flavor has {mine.name}={flavor}")
    return mine or its


def _realtime_mask(asked: FlavorAndImage) -> Said | None:
    return said(asked.image, "hw_cpu_realtime_mask") or said(asked.specs, "hw:cpu_realtime_mask")


def _mixed(asked: FlavorAndImage, mask: Said | None, realtime: Said | None) -> frozenset[int]:
    """Return the dedicated CPUs of a mixed guest: those of its mask. Exactly one mask must be set."""
    if mask is not None and realtime is not None:
        raise mask.wrong(f"{realtime.name} already defines the dedicated CPUs; remove one of them")
    stated = mask or realtime
    if stated is None:
        said_so = said(asked.specs, "hw:cpu_policy") or said(asked.image, "hw_cpu_policy")
        assert said_so is not None
        raise said_so.wrong("it requires hw:cpu_dedicated_mask, or realtime CPUs (hw:cpu_realtime_mask)")
    pinned = processors(stated, asked.vcpus)
    if not 0 < len(pinned) < asked.vcpus:
        raise stated.wrong("a mixed server must have at least one dedicated and one shared CPU")
    return pinned


def _realtime(asked: FlavorAndImage, stated: Said, cpus: frozenset[int], emulator: Said | None) -> frozenset[int]:
    if not cpus:
        raise stated.wrong("no CPU remains for realtime")
    if len(cpus) == asked.vcpus and emulator is None:
        raise stated.wrong("at least one CPU must not be realtime (hw:cpu_realtime_mask), or the emulator "
                           "threads must run elsewhere (hw:emulator_threads_policy)")
    return cpus


def _threads(asked: FlavorAndImage) -> int | None:
    one = said(asked.specs, "hw:cpu_threads") or said(asked.image, "hw_cpu_threads")
    return None if one is None else number(one, 1)


# -- memory

def _page(asked: FlavorAndImage) -> str:
    """Return the page size. An image may only choose if the flavor has any, or among large pages if it has large."""
    mine, its = said(asked.specs, "hw:mem_page_size"), said(asked.image, "hw_mem_page_size")
    flavor, image = page_size(mine) if mine else "", page_size(its) if its else ""
    if its is None or image == flavor:
        return flavor
    if mine is None:
        raise its.wrong("the flavor must allow it: hw:mem_page_size=any or large")
    if flavor == "any" or (flavor == "large" and image not in ("small", "any")):
        return image
    if flavor == "large" and image == "any":
        return flavor
    raise its.wrong(f"the flavor has {mine.name}={mine.value}")


def _locked(asked: FlavorAndImage, page: str) -> bool:
    mine, its = said(asked.specs, "hw:locked_memory"), said(asked.image, "hw_locked_memory")
    flavor, image = flag(mine), flag(its)
    if mine is not None and its is not None and flavor != image:
        raise its.wrong(f"the flavor has {mine.name}={mine.value}")
    stated = mine or its
    if stated is not None and flag(stated) and not page:
        raise stated.wrong("it requires a page size (hw:mem_page_size)")
    return bool(flavor or image)


# -- cells

_OF_NODE = re.compile(r"(hw:numa_|hw_numa_)(cpus|mem)\.([0-9]{1,9})")


class _Numa(NamedTuple):
    """NUMA settings of either the flavor or the image. ``cpus`` and ``mem``: node -> setting."""

    nodes: Said | None
    cpus: Mapping[int, Said]
    mem: Mapping[int, Said]

    def first(self) -> Said | None:
        return self.nodes or next(iter([*self.cpus.values(), *self.mem.values()]), None)


def _cells(asked: FlavorAndImage) -> tuple[tuple[Cpus, int], ...] | None:
    """Return (CPUs, MB) of each cell; None without NUMA settings."""
    flavor, image = _numa(asked.specs, "hw:numa_nodes"), _numa(asked.image, "hw_numa_nodes")
    mine, its = flavor.first(), image.first()
    if mine is not None and its is not None:
        raise its.wrong(f"the flavor has {mine.name}={mine.value}, so the image cannot set NUMA nodes")
    numa, stated = (flavor, mine) if mine is not None else (image, its)
    if stated is None:
        return None
    if numa.nodes is None:
        raise stated.wrong(f"it requires {'hw:numa_nodes' if mine is not None else 'hw_numa_nodes'}")
    count = number(numa.nodes, 1)
    countable(numa.nodes, asked.vcpus)
    if count > asked.vcpus:
        raise numa.nodes.wrong(f"the server only has {asked.vcpus} CPUs")
    if not numa.cpus and not numa.mem:
        return _alike(asked, numa.nodes, count)
    return _stated_cells(asked, numa, numa.nodes, count)


def _numa(given: Mapping[str, str], nodes: str) -> _Numa:
    found: dict[str, dict[int, Said]] = {"cpus": {}, "mem": {}}
    for name in given:
        match = _OF_NODE.fullmatch(name)
        one = said(given, name)
        if match is not None and one is not None and nodes.startswith(match[1]):
            found[match[2]][int(match[3])] = one
    return _Numa(said(given, nodes), **found)


def _alike(asked: FlavorAndImage, nodes: Said, count: int) -> tuple[tuple[Cpus, int], ...]:
    for what, amount in (("CPUs", asked.vcpus), ("MB of memory", asked.memory_mb)):
        if amount % count:
            raise nodes.wrong(f"{amount} {what} cannot be divided evenly: set the share of each node "
                              f"(hw:numa_cpus.0, hw:numa_mem.0 ...)")
    each = asked.vcpus // count
    return tuple((tuple(range(at * each, (at + 1) * each)), asked.memory_mb // count) for at in range(count))


def _stated_cells(asked: FlavorAndImage, numa: _Numa, nodes: Said, count: int) -> tuple[tuple[Cpus, int], ...]:
    """Return the cells of explicit settings, which must assign each CPU once, and all memory."""
    for at, one in (*numa.cpus.items(), *numa.mem.items()):
        if at >= count:
            raise one.wrong(f"there are {count} nodes, numbered from 0")
    if len(numa.cpus) < count or len(numa.mem) < count:
        raise nodes.wrong("set both CPUs and memory for each node, or neither of them")
    cells, seen = [], set[int]()
    for at in range(count):
        mine = processors(numa.cpus[at], asked.vcpus)
        if twice := sorted(mine & seen):
            raise numa.cpus[at].wrong(f"CPU {twice[0]} is already assigned to another node")
        seen |= mine
        if not mine:
            raise numa.cpus[at].wrong("each node must have at least one CPU")
        cells.append((tuple(sorted(mine)), number(numa.mem[at], 1)))
    if missing := sorted(set(range(asked.vcpus)) - seen):
        raise nodes.wrong(f"CPU {missing[0]} is not assigned to a node")
    memory_mb = sum(each for _, each in cells)
    if memory_mb != asked.memory_mb:
        raise nodes.wrong(f"the nodes have {memory_mb} MB of memory in total, but the server has {asked.memory_mb} MB")
    return tuple(cells)


__all__ = ["FlavorAndImage", "guest_of"]
