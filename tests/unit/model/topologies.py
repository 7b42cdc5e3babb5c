"""Hosts and guests for tests of packing: some as real machines are, some made up."""

from __future__ import annotations

from hypothesis import strategies as st

from nova.model.numa.topology import (
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    Pages,
    PciDevice,
    PciRequest,
    PciSpec,
    Wanted,
)


def cell(id: int = 0, cpus: range = range(8), shared: tuple[int, ...] = (), threads: int = 1, memory_mb: int = 4096,
         pages: dict[int, int] | None = None, **fields: object) -> HostCell:
    """A cell whose processors are to be pinned but for the ``shared`` ones; neighbours are ``threads`` of a core. Of
    ``pages`` (KB -> how many) it has these, the rest of the memory being in small ones."""
    numbers = tuple(cpus)
    siblings = tuple(numbers[at:at + threads] for at in range(0, len(numbers), threads)) if threads > 1 else ()
    huge = tuple(Pages(size_kb=size, total=count) for size, count in (pages or {}).items())
    rest = memory_mb * 1024 - sum(one.size_kb * one.total for one in huge)
    return HostCell(id=id, shared=shared, dedicated=tuple(cpu for cpu in numbers if cpu not in shared),
                    siblings=siblings, memory_mb=memory_mb, pages=(Pages(size_kb=4, total=rest // 4), *huge), **fields)


def large_host(cells: int = 4, cpus: int = 64, threads: int = 2, pages: int = 32) -> HostTopology:
    """As two sockets of a processor with several cells each, threads of a core next to each other."""
    return HostTopology(cells=tuple(cell(
        at, range(at * cpus, (at + 1) * cpus), tuple(range(at * cpus, at * cpus + 8)), threads, 131072,
        {2048: 8192, 1048576: pages}, socket=at * 2 // cells,
        distances={other: 10 if other == at else 12 if other * 2 // cells == at * 2 // cells else 32
                   for other in range(cells)}) for at in range(cells)))


def nics(cell: int | None = 0, functions: int = 4, bus: str = "81", **fields: object) -> tuple[PciDevice, ...]:
    """A physical function and its virtual ones."""
    parent = f"0000:{bus}:00.0"
    return (PciDevice(address=parent, vendor_id="8086", product_id="1583", kind="type-PF", cell=cell, **fields),
            *(PciDevice(address=f"0000:{bus}:02.{at}", vendor_id="8086", product_id="154c", kind="type-VF", cell=cell,
                        parent=parent, **fields) for at in range(functions)))


VF = PciSpec(vendor_id="8086", product_id="154c", kind="type-VF")
PF = PciSpec(vendor_id="8086", product_id="1583", kind="type-PF")


def guest(*cells: tuple[int, int, int], **fields: object) -> Wanted:
    """Of (processors, of those the last so many pinned, MB) a cell; ``devices`` beside."""
    devices = fields.pop("devices", ())
    made, first = [], 0
    for at, (vcpus, pinned, memory_mb) in enumerate(cells):
        numbers = tuple(range(first, first + vcpus))
        made.append(GuestCell(id=at, vcpus=numbers, pinned=numbers[vcpus - pinned:], memory_mb=memory_mb))
        first += vcpus
    return Wanted(guest=GuestTopology(cells=tuple(made), **fields), devices=devices)


def request(count: int = 1, *specs: PciSpec, **fields: object) -> PciRequest:
    return PciRequest(count=count, specs=specs or (VF,), alias="nic", **fields)


@st.composite
def hosts(draw: st.DrawFn) -> HostTopology:
    made = []
    threads, cpus = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([4, 8, 12]))
    for at in range(draw(st.integers(1, 4))):
        numbers = range(at * cpus, (at + 1) * cpus)
        shared = tuple(numbers[:draw(st.integers(0, 4))])
        made.append(cell(at, numbers, shared, threads, 4096, {2048: draw(st.sampled_from([0, 256, 512])),
                                                             1048576: draw(st.integers(0, 2))}, socket=at // 2))
    devices = tuple(one for at in range(draw(st.integers(0, 3))) for one in nics(
        draw(st.sampled_from([None, *range(len(made))])), draw(st.integers(1, 3)), f"8{at}"))
    return HostTopology(cells=tuple(made), devices=devices, cpu_ratio=draw(st.sampled_from([1.0, 1.5, 4.0])),
                        memory_ratio=draw(st.sampled_from([1.0, 1.5])))


@st.composite
def requirements(draw: st.DrawFn) -> Wanted:
    requests = draw(st.lists(st.builds(
        request, st.integers(1, 3), st.sampled_from([VF, PF]),
        numa_policy=st.sampled_from(["required", "preferred", "legacy", "socket"])), max_size=2))
    if requests and draw(st.booleans()):
        return Wanted(devices=tuple(requests))
    cells = []
    for _ in range(draw(st.integers(1, 3))):
        vcpus = draw(st.integers(1, 5))
        pinned = draw(st.sampled_from([0, vcpus, vcpus // 2]))
        cells.append((vcpus, pinned, draw(st.sampled_from([256, 512, 513, 1024, 2048]))))
    pinned = any(one[1] for one in cells)
    return guest(*cells, devices=tuple(requests),
                 thread_policy=draw(st.sampled_from(["", "prefer", "require", "isolate"])) if pinned else "",
                 emulator=draw(st.sampled_from(["", "share", "isolate"])) if pinned else "",
                 page=draw(st.sampled_from(["", "", "small", "large", "any", "2048", "1048576"])))
