"""Layouts of JSON values in XML: three types, which the tables of roots are composed of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Record:
    """The layout of an object.

    ``attributes``: scalar values are attributes, except those in ``elements``; otherwise all are child elements.
    ``names``: JSON key -> XML name. ``inside``: layouts of children. ``order``: children that come first, in this
    order. ``always``: children that are present, empty, if JSON has none. ``data``: the keys are user data, so that no
    key has a special meaning.
    """

    attributes: bool = False
    elements: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Record | Listing | Pairs] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    data: bool = False


@dataclass(frozen=True)
class Listing:
    """The layout of a list: an element with one ``item`` for each value; ``flat``: the items without that element."""

    item: str
    of: Record | Listing | Pairs = field(default_factory=Record)
    flat: bool = False


@dataclass(frozen=True)
class Pairs:
    """The layout of an object whose keys are data: one ``item`` per key, with the key as attribute ``key``. The value
    is the item's text, its attribute ``value``, or its content by the layout ``of``."""

    item: str = "meta"
    key: str = "key"
    value: str | None = None
    of: Record | Listing | Pairs | None = None
    flat: bool = False


@dataclass(frozen=True)
class Root:
    """The layout of a root element. ``prefixes``: namespace prefixes that are always declared."""

    layout: Record | Listing | Pairs
    namespace: str | None = None
    prefixes: tuple[str, ...] = ()


GENERIC, ATTRIBUTES, META, DATA = Record(), Record(attributes=True), Pairs(), Record(data=True)

#: Times without a zone: ``2012-12-04T12:04:30.245284`` in JSON; XML has a space for the T, and omits a zero fraction.
TIMES = frozenset((
    "OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at", "createdAt", "created_at", "deleted_at", "ended_at",
    "finish_time", "start", "start_time", "started_at", "stop", "updated_at"))

#: List name -> item name, if it is not the list's name without its last letter.
SINGULARS = {"policies": "policy", "dns_entries": "dns_entry", "domain_entries": "domain_entry",
             "addresses": "address", "hosts_not_run": "item"}


def singular(name: str) -> str:
    """Return the default name of an item of the list ``name``."""
    return SINGULARS.get(name) or (name[:-1] if len(name) > 1 and name.endswith("s") else "item")
