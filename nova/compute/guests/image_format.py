"""Looks at an image before any other tool opens it: it must be what it is declared to be, and harmless.

Harmful is what makes a tool read other files of the host (backing files, data files, extents), or what hides one
format in another. The look is :mod:`nova.imageinspector`'s. Past attacks: CVE-2015-5162, CVE-2024-32498,
CVE-2024-40767.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nova import decoding, errors
from nova.imageinspector import Inspected
from nova.privileged import inspection
from nova.privileged.inspection import LONGEST_S
from nova.privileged.runner import CommandRunner, PrivateRunner
from nova.privileged.sandbox import exit_code

RAW = frozenset({"raw"})
PARTITIONED = frozenset({"gpt"})  # a raw disk with a partition table, old (MBR) or new (GPT)

#: Declared disk format -> what the inspectors may find in the file, as whole sets: anything beside is a lie.
#: Kernels and boot sectors carry the signature of a partition table. A hybrid ISO has one too.
ACCEPTED: dict[str, frozenset[frozenset[str]]] = {
    "raw": frozenset({RAW, PARTITIONED}),
    "ami": frozenset({RAW, PARTITIONED}),
    "ari": frozenset({RAW, PARTITIONED}),
    "aki": frozenset({RAW, PARTITIONED}),
    "iso": frozenset({frozenset({"iso"}), frozenset({"iso", "gpt"})}),
    "qcow2": frozenset({frozenset({"qcow2"})}),
    "vhd": frozenset({frozenset({"vhd"})}),
    "vhdx": frozenset({frozenset({"vhdx"})}),
    "vdi": frozenset({frozenset({"vdi"})}),
    "vmdk": frozenset({frozenset({"vmdk"})}),
}
#: Formats whose content the host's tools interpret; the others are bytes to us and need no check inside.
INTERPRETED = frozenset({"qcow2", "vhd", "vhdx", "vdi", "vmdk"})
CONTAINERS = frozenset({None, "bare", "ami", "ari", "aki"})


class Looked(NamedTuple):
    """A file that may be used. ``virtual_bytes`` is the disk's size as a guest sees it."""

    disk_format: str
    virtual_bytes: int


def look(path: str, declared: str | None, image_id: str,
         inspector: Callable[[str], Inspected] | None = None) -> Looked:
    """Check the file ``path`` of an image whose record says it is ``declared``. image.Unacceptable says why it isn't
    used. ``inspector``: who looks into it; None: one in a sandbox."""
    if declared not in ACCEPTED:
        raise errors.image.Unacceptable(image_id=image_id, reason=f"the disk format {declared!r} is not supported here")
    found = (inspector or inspect_in_sandbox)(path)
    if found.problem:
        raise errors.image.Unacceptable(image_id=image_id, reason=found.problem)
    if frozenset(found.formats) not in ACCEPTED[declared]:
        raise errors.image.Unacceptable(image_id=image_id, reason=f"it is declared as {declared}, but its content is "
                                        f"{' and '.join(found.formats) or 'of no known format'}")
    if declared not in INTERPRETED:
        return Looked(declared, os.path.getsize(path))
    if found.unsafe or found.virtual_bytes is None:
        raise errors.image.Unacceptable(image_id=image_id, reason=found.unsafe or "its size cannot be told")
    return Looked(declared, found.virtual_bytes)


def inspect_in_sandbox(path: str, runner: CommandRunner | None = None) -> Inspected:
    """By a process that sees this file alone. host.CommandFailed: it cannot be started."""
    try:
        done = inspection.inspect(runner or PrivateRunner(LONGEST_S), path)
        return decoding.from_json(done.stdout, Inspected)
    except errors.host.CommandTooSlow:
        return Inspected(problem=f"its format cannot be told within {LONGEST_S:g} s")
    except msgspec.MsgspecError:  # the file had it ended, by its bounds of memory and time, or worse
        last = (done.stderr.strip().splitlines() or [""])[-1][:200]
        return Inspected(problem=f"its format cannot be told (exit {exit_code(done.code)} {last})")
