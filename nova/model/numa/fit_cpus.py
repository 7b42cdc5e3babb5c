"""Host CPUs of a cell that a guest is pinned to, by its thread policy.

prefer: threads of the same core if possible; require: only cores with several threads, and at most one virtual CPU (of
an odd number) without a sibling of the same guest; isolate: one whole core each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nova.model.numa.fit_free import Core
from nova.model.numa.topology import Cpus

PREFER, REQUIRE, ISOLATE = "prefer", "require", "isolate"


class Pinned(NamedTuple):
    """Pinned CPUs. ``groups``: the host CPUs, grouped by core. ``idle``: sibling threads that no guest may use."""

    groups: tuple[Cpus, ...]
    emulator: Cpus = ()
    idle: Cpus = ()


def choose(cores: Sequence[Core], count: int, policy: str, emulator: bool = False) -> Pinned | None:
    """Return ``count`` CPUs, and one more for the emulator threads if requested; None if there are too few."""
    if policy == ISOLATE:
        return _isolated(cores, count, emulator)
    usable = [core for core in cores if core.threads > 1] if policy == REQUIRE else list(cores)
    groups = _fill(usable, count, policy == REQUIRE)
    if groups is None:
        return None
    if not emulator:
        return Pinned(groups)
    taken = {cpu for group in groups for cpu in group}
    left = [tuple(cpu for cpu in core.free if cpu not in taken) for core in cores]
    smallest = min((cpus for cpus in left if cpus), key=lambda cpus: (len(cpus), cpus), default=None)
    return Pinned(groups, smallest[:1]) if smallest else None


def _isolated(cores: Sequence[Core], count: int, emulator: bool) -> Pinned | None:
    """Choose whole cores, those with few threads first, which leaves fewer threads idle."""
    whole = sorted((core for core in cores if core.whole), key=lambda core: (core.threads, core.free))
    if len(whole) < count + emulator:
        return None
    mine, extra = whole[:count], whole[count:count + emulator]
    return Pinned(tuple(core.free[:1] for core in mine), tuple(core.free[0] for core in extra),
                  tuple(sorted(cpu for core in (*mine, *extra) for cpu in core.free[1:])))


def _fill(cores: Sequence[Core], count: int, in_company: bool) -> tuple[Cpus, ...] | None:
    """Fill whole cores, the largest first; the rest goes to the tightest-fitting core, which keeps whole cores free.
    ``in_company``: at most one CPU may be alone on its core."""
    if sum(len(core.free) for core in cores) < count:
        return None
    by_size: dict[int, list[Cpus]] = {}
    for core in sorted(cores, reverse=True):
        by_size.setdefault(len(core.free), []).append(core.free)
    groups = []
    while count:
        fitting = [size for size, left in by_size.items() if size >= count and left]
        size = min(fitting) if fitting else max(size for size, left in by_size.items() if left)
        if in_company and size == 1 and count > 1:
            return None
        groups.append(by_size[size].pop()[:count])
        count -= len(groups[-1])
    return tuple(sorted(groups, key=lambda group: (-len(group), group)))


__all__ = ["ISOLATE", "PREFER", "REQUIRE", "Pinned", "choose"]
