"""Decoding of services' answers to structs, which ignore members that nova does not use."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import requests

from nova import decoding

NULL = msgspec.Raw(b"null")

T = TypeVar("T")


class PageLink(msgspec.Struct, frozen=True):
    """A link of a page."""

    rel: str = ""
    href: str = ""


class UnreadableError(ValueError):
    """Error for an answer that is not JSON, or not of the expected type."""


def decoded(answer: requests.Response | msgspec.Raw, kind: type[T]) -> T:
    """Decode the content of an answer, or a member of one, as ``kind``. Raises UnreadableError."""
    raw = answer if isinstance(answer, msgspec.Raw) else answer.content
    try:
        return decoding.from_json(raw, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(str(error)) from None


def converted(value: object, kind: type[T]) -> T:
    """Convert decoded JSON to ``kind``. Raises UnreadableError."""
    try:
        return decoding.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UnreadableError(str(error)) from None


def decoded_list(raw: msgspec.Raw, kind: type[T]) -> list[T]:
    """Decode a member as a list of ``kind``. Raises UnreadableError."""
    return decoded(raw, list[kind])  # type: ignore[valid-type]


def links_of(raw: msgspec.Raw) -> list[PageLink]:
    """Decode the links of a page; empty if they are null. Raises UnreadableError."""
    return [] if bytes(raw) == b"null" else decoded_list(raw, PageLink)
