"""CPU sets in the syntax of operators ("4-12,^8,15") and of libvirt. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nova import errors

PART = re.compile(r"(\^?)(\d{1,5})(?:-(\d{1,5}))?")


def parse(option: str, text: str) -> frozenset[int]:
    """Return the CPUs that ``text`` names: numbers and inclusive ranges, without those after a ^. Raises config.CpuSet,
    with the ``option``."""
    found: dict[bool, set[int]] = {False: set(), True: set()}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        match = PART.fullmatch(part)
        if match is None:
            raise errors.config.CpuSet(option=option, reason=f"its part {number} is not a CPU (7), a range "
                                       "(4-12), or an exclusion (^8)")
        first, last = int(match[2]), int(match[3] or match[2])
        if last < first:
            raise errors.config.CpuSet(option=option, reason=f"the range in its part {number} is reversed")
        found[bool(match[1])] |= set(range(first, last + 1))
    left = frozenset(found[False] - found[True])
    if not left:
        raise errors.config.CpuSet(option=option, reason="it contains no CPU")
    return left


def spec(cpus: Iterable[int]) -> str:
    """Format CPUs as a set, such as "0-3,8"."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
