"""Checked access to the members of requests."""

from __future__ import annotations

from collections.abc import Mapping

from nova.devel.service import FakeError
from nova.model.base import JsonValue


def object_of(given: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    """Return an object. Raises 400, which names the member."""
    found = given.get(name)
    if not isinstance(found, dict):
        raise FakeError(400, f"'{name}' is a required property: an object.")
    return found


def text_of(given: Mapping[str, JsonValue], name: str) -> str:
    """Return a string. Raises 400, which names the member."""
    found = given.get(name)
    if not isinstance(found, str):
        raise FakeError(400, f"'{name}' is a required property: a string.")
    return found
