"""How a guest's CPUs are arranged in sockets, cores and threads."""

from __future__ import annotations

from collections.abc import Iterator

from nova import errors
from nova.virt.libvirt.guest.properties import Wishes
from nova.virt.libvirt.xml.specs import Topology

MANY = 1 << 16


def topology(vcpus: int, wishes: Wishes) -> Topology:
    """The arrangement of exactly ``vcpus`` that meets most wishes within the limits; else as many sockets as can be.

    image.WrongProperty when the limits leave no arrangement.
    """
    limits = (wishes.max_sockets or MANY, wishes.max_cores or MANY, wishes.max_threads or MANY)
    fitting = [one for one in _arrangements(vcpus) if all(n <= limit for n, limit in zip(one, limits, strict=True))]
    if not fitting:
        raise errors.image.WrongProperty(name="the flavor's vcpus", value=vcpus,
                                         reason="no arrangement keeps within hw_cpu_max_sockets, _cores and _threads")
    wished = (wishes.sockets, wishes.cores, wishes.threads)

    def rank(one: Topology) -> tuple[int, int, int]:
        met = sum(wish == n for wish, n in zip(wished, one, strict=True) if wish is not None)
        return met, one.sockets, one.cores
    return max(fitting, key=rank)


def _arrangements(vcpus: int) -> Iterator[Topology]:
    for threads in range(1, vcpus + 1):
        if vcpus % threads:
            continue
        for cores in range(1, vcpus // threads + 1):
            if vcpus // threads % cores == 0:
                yield Topology(vcpus // threads // cores, cores, threads)
