"""What an image's file is: headers read in Python, nothing else opened (``oslo_utils.imageutils.format_inspector``).

``python -m nova.imageinspector FILE`` prints it as JSON. That is how nova-compute asks, in a process that sees this one
file and nothing else: its word is checked by type, and no more believed than a tool's.
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
    """``formats``: what the file may be, each by its name. ``virtual_bytes``: of a disk with a format of its own, as a
    guest sees it; None where it is not told. ``unsafe``: why it may not be opened; ``problem``: why nothing is told.
    Whoever says so may have been taken over by the file: it is bounded, or it would fill messages and rows."""

    formats: Formats = ()
    virtual_bytes: Bytes | None = None
    unsafe: Reason = ""
    problem: Reason = ""


def inspect(path: str) -> Inspected:
    """The look itself, in this process. OSError."""
    with open(path, "rb") as source:
        wrapper = format_inspector.InspectWrapper(source)
        try:
            while wrapper.formats is None and wrapper.read(CHUNK_BYTES):
                pass
            if wrapper.formats is None:
                wrapper.close()
            found = list(wrapper.formats or [])
        except Exception as error:  # an inspector that chokes on a file has looked at a harmful one
            return Inspected(problem=f"its format cannot be told ({error})"[:LONGEST_REASON])
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
    except Exception as error:
        return Inspected(formats=names, unsafe=f"its size cannot be told ({error})"[:LONGEST_REASON])
