"""Conditional and range requests for objects."""

from __future__ import annotations

import contextlib
import email.utils
import re
from collections.abc import Mapping
from typing import NamedTuple

from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectRecord


class Span(NamedTuple):
    """A byte range of an object. ``is_part``: the request has a Range header."""

    start: int
    size: int
    is_part: bool


def is_unchanged(headers: Mapping[str, str], record: ObjectRecord) -> bool:
    """Return whether the client already has this object (304). ``headers``: with lower-case names.

    Raises S3Error: PreconditionFailed.
    """
    if "if-match" in headers:
        if not _names(headers["if-match"], record.etag):
            raise S3Error("PreconditionFailed")
    elif (before := _time(headers.get("if-unmodified-since"))) is not None and int(record.modified) > before:
        raise S3Error("PreconditionFailed")
    if "if-none-match" in headers:
        return _names(headers["if-none-match"], record.etag)
    since = _time(headers.get("if-modified-since"))
    return since is not None and int(record.modified) <= since


def _names(header: str, etag: str) -> bool:
    listed = [one.strip().removeprefix("W/").strip('"') for one in header.split(",")]
    return "*" in listed or etag in listed


def _time(text: str | None) -> float | None:
    """Parse an HTTP date, in seconds since 1970; None if it is missing or invalid, which means no condition."""
    with contextlib.suppress(ValueError, OverflowError, TypeError):
        return email.utils.parsedate_to_datetime(text).timestamp() if text else None
    return None


def span_of(header: str | None, size: int) -> Span:
    """Return the span of a Range header; the whole object for several ranges or other units.

    Raises S3Error: InvalidRange.
    """
    match = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", (header or "").strip(), re.ASCII)
    if match is None or match.groups() == ("", ""):
        return Span(0, size, False)
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if first and last and int(last) < start:
        return Span(0, size, False)
    if start >= size:
        raise S3Error("InvalidRange")
    return Span(start, end - start, True)
