"""Detection of image formats: reads headers in Python, and opens no other file
(``oslo_utils.imageutils.format_inspector``).

``python -m nova.imageinspector FILE`` prints the result as JSON. nova-compute runs it in a process with access to this
one file only. It checks the types of the output, and trusts it no more than that of any tool.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from oslo_utils.imageutils import format_inspector

CHUNK_BYTES = 1 << 16
LONGEST_REASON = 1000  # characters

Reason = Annotated[str, Meta(max_length=LONGEST_REASON)]
Formats = Annotated[tuple[Annotated[str, Meta(max_length=32)], ...], Meta(max_length=32)]
Bytes = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Inspected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Result of an inspection. ``formats``: the possible formats of the file, by name. ``virtual_bytes``: the size of a
    formatted disk as seen by a guest; None if unknown. ``unsafe``: why it must not be opened; ``problem``: why the
    inspection failed. The file may have taken control of the inspector, so all fields are bounded: else they could fill
    messages and rows."""

    formats: Formats = ()
    virtual_bytes: Bytes | None = None
    unsafe: Reason = ""
    problem: Reason = ""


def inspect(path: str) -> Inspected:
    """Inspect the file in this process. Raises OSError."""
    with open(path, "rb") as source:
        wrapper = format_inspector.InspectWrapper(source)
        try:
            while wrapper.formats is None and wrapper.read(CHUNK_BYTES):
                pass
            if wrapper.formats is None:
                wrapper.close()
            found = list(wrapper.formats or [])
        except Exception as error:  # a file that makes an inspector fail is harmful
            return Inspected(problem=f"its format cannot be detected ({error})"[:LONGEST_REASON])
    names = tuple(sorted({str(one) for one in found}))
    return _inside(found[0], names) if len(found) == 1 else Inspected(formats=names)


def _inside(inspector: format_inspector.FileInspector, names: tuple[str, ...]) -> Inspected:
    try:
        inspector.safety_check()
    except format_inspector.SafetyCheckFailed as error:
        reasons = "; ".join(str(failure) for failure in error.failures.values())
        return Inspected(formats=names, unsafe=f"it may not be opened safely ({reasons or error})"[:LONGEST_REASON])
    except format_inspector.ImageFormatError as error:
        return Inspected(formats=names, unsafe=f"its header is damaged ({error})"[:LONGEST_REASON])
    try:
        return Inspected(formats=names, virtual_bytes=int(inspector.virtual_size))
    except Exception as error:  # a file that makes an inspector fail is harmful
        return Inspected(formats=names, unsafe=f"its size cannot be determined ({error})"[:LONGEST_REASON])
