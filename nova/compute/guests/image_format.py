"""Looks at an image before any other tool opens it: it must be what it is declared to be, and harmless.

Harmful is what makes a tool read other files of the host (backing files, data files, extents), or what hides one
format in another. The look is ``oslo_utils.imageutils.format_inspector``'s, which parses headers in Python and opens
nothing else. Past attacks: CVE-2015-5162, CVE-2024-32498, CVE-2024-40767.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from oslo_utils.imageutils import format_inspector

from nova import errors

CHUNK_BYTES = 1 << 16
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


def look(path: str, declared: str | None, image_id: str) -> Looked:
    """Check the file ``path`` of an image whose record says it is ``declared``. image.Unacceptable says why it isn't
    used."""
    if declared not in ACCEPTED:
        raise errors.image.Unacceptable(image_id=image_id, reason=f"the disk format {declared!r} is not supported here")
    inspectors = _inspect(path, image_id)
    found = frozenset(str(inspector) for inspector in inspectors)
    if found not in ACCEPTED[declared]:
        raise errors.image.Unacceptable(image_id=image_id, reason=f"it is declared as {declared}, but its content is "
                                        f"{' and '.join(sorted(found)) or 'of no known format'}")
    if declared not in INTERPRETED:
        return Looked(declared, os.path.getsize(path))
    (inspector,) = inspectors
    _check_inside(inspector, image_id)
    return Looked(declared, _virtual_bytes(inspector, image_id))


def _inspect(path: str, image_id: str) -> list[format_inspector.FileInspector]:
    with open(path, "rb") as source:
        wrapper = format_inspector.InspectWrapper(source)
        try:
            while wrapper.read(CHUNK_BYTES):
                if (found := wrapper.formats) is not None:
                    return found
            wrapper.close()
            return wrapper.formats or []
        except Exception as error:  # an inspector that chokes on a file has looked at a harmful one
            raise errors.image.Unacceptable(image_id=image_id,
                                            reason=f"its format can not be told ({error})") from error


def _check_inside(inspector: format_inspector.FileInspector, image_id: str) -> None:
    try:
        inspector.safety_check()
    except format_inspector.SafetyCheckFailed as error:
        reasons = "; ".join(str(failure) for failure in error.failures.values())
        raise errors.image.Unacceptable(image_id=image_id,
                                        reason=f"it may not be opened safely ({reasons or error})") from error
    except format_inspector.ImageFormatError as error:
        raise errors.image.Unacceptable(image_id=image_id, reason=f"its header is damaged ({error})") from error


def _virtual_bytes(inspector: format_inspector.FileInspector, image_id: str) -> int:
    try:
        return int(inspector.virtual_size)
    except Exception as error:
        raise errors.image.Unacceptable(image_id=image_id, reason=f"its size can not be told ({error})") from error
