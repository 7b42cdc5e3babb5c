"""Definition of payloads: a name, a version, and rows with the source of each field."""

from __future__ import annotations

import datetime
import enum
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

NAMESPACE = "nova"


class PayloadField(NamedTuple):
    """A field. ``source``: an attribute of the payload's subject (dots for nested ones), or a function of the
    subject."""

    name: str
    source: str | Callable[[Any], Any]


class Payload:
    """A payload class: a call with its subject returns the wire format; None for a subject that is None."""

    def __init__(self, name: str, version: str, *fields: PayloadField) -> None:
        self.name, self.version, self.fields = name, version, fields
        self._getters = [(one.name, operator.attrgetter(one.source) if isinstance(one.source, str) else one.source)
                         for one in fields]
        twice = [one.name for one in fields if [other.name for other in fields].count(one.name) > 1]
        if twice:
            raise TypeError(f"{name} has {twice[0]} twice")

    def __call__(self, subject: object) -> dict[str, object] | None:
        return None if subject is None else wire(self.name, self.version,
                                                 {name: plain(get(subject)) for name, get in self._getters})


def wire(name: str, version: str, data: Mapping[str, object]) -> dict[str, object]:
    """Return an object in the wire format of consumers."""
    return {"nova_object.name": name, "nova_object.namespace": NAMESPACE, "nova_object.version": version,
            "nova_object.data": dict(data)}


def plain(value: object) -> object:
    """Return a value as JSON data: times in UTC, to the second."""
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    return value


def fields(*names: str, of: str = "") -> tuple[PayloadField, ...]:
    """Return rows of fields with the names of their sources (attributes of the subject's attribute ``of``)."""
    return tuple(PayloadField(name, f"{of}.{name}" if of else name) for name in names)
