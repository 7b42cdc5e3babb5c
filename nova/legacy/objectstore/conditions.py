"""What a client asks of an object that it may have already, or wants a part of."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from typing import NamedTuple

from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectRecord


class Span(NamedTuple):
    """Bytes of an object. ``is_part``: a range was asked for."""

    start: int
    size: int
    is_part: bool


def is_unchanged(headers: Mapping[str, str], record: ObjectRecord) -> bool:
    """Whether the client has this very object (304). ``headers``: by names in lower case. S3Error:
    PreconditionFailed."""
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
    """What is no date is no condition."""
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError, TypeError):
        return None


def span_of(header: str | None, size: int) -> Span:
    """Of a Range header; several ranges, and other units, are the whole. S3Error: InvalidRange."""
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
