"""How a value of JSON is laid out in XML: three kinds of layouts, of which tables are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Record:
    """An object. ``attributes``: its plain values are attributes, but for those named in ``elements``; else all are
    child elements. ``names``: JSON's key -> XML's name. ``inside``: the layouts of children that need one. ``order``:
    children that come first, in this order. ``always``: children that are there, empty, when JSON has none. ``data``:
    its keys are a user's, so that no name among them means anything.
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
    """A list: an element with one ``item`` each; ``flat``: the items alone, without an element around them."""

    item: str
    of: Record | Listing | Pairs = field(default_factory=Record)
    flat: bool = False


@dataclass(frozen=True)
class Pairs:
    """An object whose keys are data: an ``item`` each with the key as attribute ``key``, and the value as text, or as
    attribute ``value``, or as what ``of`` makes of it."""

    item: str = "meta"
    key: str = "key"
    value: str | None = None
    of: Record | Listing | Pairs | None = None
    flat: bool = False


@dataclass(frozen=True)
class Root:
    """A root element. ``prefixes``: those that are declared whether something has them or not."""

    layout: Record | Listing | Pairs
    namespace: str | None = None
    prefixes: tuple[str, ...] = ()


GENERIC, ATTRIBUTES, META, DATA = Record(), Record(attributes=True), Pairs(), Record(data=True)

#: Times without a zone: JSON has ``2012-12-04T12:04:30.245284``, XML has a blank for the T, and no fraction of zeros.
TIMES = frozenset((
    "OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at", "createdAt", "created_at", "deleted_at", "ended_at",
    "finish_time", "start", "start_time", "started_at", "stop", "updated_at"))

#: Names of a list's items that are not the list's without its last letter.
SINGULARS = {"policies": "policy", "dns_entries": "dns_entry", "domain_entries": "domain_entry",
             "addresses": "address", "hosts_not_run": "item"}


def singular(name: str) -> str:
    """What an item of the list ``name`` is called where no layout says it."""
    return SINGULARS.get(name) or (name[:-1] if len(name) > 1 and name.endswith("s") else "item")
