"""Image inspection before any other tool opens the file: an image must match its declared format and be harmless.

Harmful images make a tool read other files of the host (backing files, data files, extents), or hide one format in
another. :mod:`nova.imageinspector` does the inspection. Past attacks: CVE-2015-5162, CVE-2024-32498, CVE-2024-40767.
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
PARTITIONED = frozenset({"gpt"})  # raw disk with a partition table, old (MBR) or new (GPT)

#: Declared disk format -> sets of formats that inspection may find in the file; any other set does not match the
#: declaration. Kernels and boot sectors carry the signature of a partition table, and so does a hybrid ISO.
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
#: Formats whose content the host's tools interpret; other formats are opaque bytes, and need no check of their content.
INTERPRETED = frozenset({"qcow2", "vhd", "vhdx", "vdi", "vmdk"})
CONTAINERS = frozenset({None, "bare", "ami", "ari", "aki"})


class Looked(NamedTuple):
    """The result for an acceptable file. ``virtual_bytes`` is the disk's size as a guest sees it."""

    disk_format: str
    virtual_bytes: int


def inspect_image(path: str, declared: str | None, image_id: str,
                  inspector: Callable[[str], Inspected] | None = None) -> Looked:
    """Check the file ``path`` of an image with the declared format ``declared``. Raises image.Unacceptable with the
    reason. ``inspector``: inspects the file; None: a sandboxed process."""
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
        raise errors.image.Unacceptable(image_id=image_id, reason=found.unsafe or "its size cannot be determined")
    return Looked(declared, found.virtual_bytes)


def inspect_in_sandbox(path: str, runner: CommandRunner | None = None) -> Inspected:
    """Inspect the file in a process that can access only this file. Raises host.CommandFailed if it cannot be
    started."""
    try:
        done = inspection.inspect(runner or PrivateRunner(LONGEST_S), path)
        return decoding.from_json(done.stdout, Inspected)
    except errors.host.CommandTooSlow:
        return Inspected(problem=f"its format could not be determined within {LONGEST_S:g} s")
    except msgspec.MsgspecError:  # the file made it exceed its memory or time limit, or worse
        last = (done.stderr.strip().splitlines() or [""])[-1][:200]
        return Inspected(problem=f"its format could not be determined (exit {exit_code(done.code)} {last})")
