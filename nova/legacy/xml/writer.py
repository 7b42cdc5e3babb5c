"""Serialization of responses to XML, from their JSON form and the tables of layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatch

from nova.legacy.xml.answers import Answer, Laid, laid
from nova.legacy.xml.layouts import DATA, GENERIC, TIMES, Listing, Pairs, Record, singular
from nova.legacy.xml.namespaces import PREFIXES
from nova.model.base import JsonValue

DECLARATION = "<?xml version='1.0' encoding='UTF-8'?>\n"
LINKS = "links"
#: A valid element name. Reserved prefixes are excluded: a user's key must not begin with one.
_NAME = re.compile(r"(?:(?!xml|atom:)[A-Z_][\w.-]*:)?[A-Z_][\w.-]*", re.ASCII | re.IGNORECASE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{6})?)", re.ASCII)
_NO_TEXT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not representable in XML 1.0
#: Characters that are markup, or that parsers normalize.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_ATTRIBUTES = _ESCAPES | str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


@dataclass
class XMLElement:
    """An element to write. ``tag`` and the names of attributes include the prefix. ``keys``: the value's keys in JSON,
    whose prefixes are declared even if unused, for example for an empty list."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    inside: list[XMLElement] = field(default_factory=list)
    text: str = ""
    keys: tuple[str, ...] = ()

    def prefixes(self) -> Iterator[str]:
        """Yield the prefixes of all names in the element."""
        for name in (self.tag, *self.attributes):
            yield name.partition(":")[0] if ":" in name else ""
        yield from (prefix for prefix in (key.partition(":")[0] for key in self.keys) if prefix in PREFIXES)
        for node in self.inside:
            yield from node.prefixes()

    def written(self) -> str:
        """Return the element as text."""
        opened = f"<{self.tag}" + "".join(f' {name}="{_clean(value).translate(_IN_ATTRIBUTES)}"'
                                          for name, value in self.attributes.items())
        content = _clean(self.text).translate(_ESCAPES) + "".join(node.written() for node in self.inside)
        return f"{opened}>{content}</{self.tag}>" if content else f"{opened}/>"


def write(answer: Answer, operation: str | None = None) -> bytes:
    """Return the XML document for a response. ``operation``: a route's id; None for documents without an operation."""
    return document(laid(answer, operation))


def document(what: Laid) -> bytes:
    """Return the document with this root."""
    [node] = _nodes(what.root.layout, what.tag, what.value)
    node.inside += [_link(link) for link in what.links]
    return rendered(node, what.root.namespace, what.root.prefixes)


def rendered(root: XMLElement, namespace: str | None, prefixes: tuple[str, ...] = ()) -> bytes:
    """Return the document of a root in a default namespace. ``prefixes``: prefixes that are always declared."""
    used = dict.fromkeys((*prefixes, *filter(None, root.prefixes())))
    declared = {f"xmlns:{prefix}": PREFIXES.get(prefix, prefix) for prefix in used}
    if namespace:
        declared["xmlns"] = namespace
    root.attributes = {**declared, **root.attributes}
    return (DECLARATION + root.written()).encode()


def text_of(value: object) -> str:
    """Return a scalar as text: None, True and False as in Python."""
    return value if isinstance(value, str) else str(value)


def _clean(text: str) -> str:
    return _NO_TEXT.sub("\ufffd", text)


def _is_plain(value: object) -> bool:
    return not isinstance(value, (dict, list))


def _link(link: Mapping[str, JsonValue]) -> XMLElement:
    return XMLElement("atom:link", {name: text_of(value) for name, value in link.items() if value is not None})


@singledispatch
def _nodes(layout: object, tag: str, value: JsonValue) -> list[XMLElement]:
    raise TypeError(f"{layout} is not a layout")


@_nodes.register
def _record(layout: Record, tag: str, value: JsonValue) -> list[XMLElement]:
    if isinstance(value, list):
        return _nodes(Listing(singular(tag)), tag, value)
    if not isinstance(value, dict):
        return [XMLElement(tag, text=text_of(value))]
    node = XMLElement(tag, keys=tuple(key for key in value if ":" in key))
    for key in _in_order(layout, value):
        name, inner = layout.names.get(key, key), _spelled(key, value.get(key, ""), layout)
        if key == LINKS and isinstance(inner, list):
            node.inside += [_link(link) for link in inner if isinstance(link, dict)]
        elif layout.attributes and _is_plain(inner) and key not in (*layout.elements, *layout.always):
            node.attributes[name] = text_of(inner)
        elif _NAME.fullmatch(name):
            node.inside += _nodes(layout.inside.get(key, DATA if layout.data or key == "metadata" else GENERIC), name,
                                  inner)
        else:  # not a valid XML name: write it as a metadata item
            [made] = _nodes(GENERIC, "meta", inner)
            node.inside.append(XMLElement("meta", {"key": key}, made.inside, made.text))
    return [node]


def _spelled(key: str, value: JsonValue, layout: Record) -> JsonValue:
    """Return a time in XML's format; other values unchanged."""
    if layout.data or key not in TIMES or not isinstance(value, str):
        return value
    time = _TIME.fullmatch(value)
    return value if time is None else f"{time[1]} {time[2]}".removesuffix(".000000")


def _in_order(layout: Record, value: Mapping[str, JsonValue]) -> list[str]:
    """Return the keys in the layout's order; by default links come last."""
    first = [key for key in layout.order if key in value or key in layout.always]
    rest = [key for key in (*value, *layout.always) if key not in (*layout.order, *layout.hidden)]
    return list(dict.fromkeys((*first, *sorted(rest, key=lambda key: key == LINKS))))


@_nodes.register
def _listing(layout: Listing, tag: str, value: JsonValue) -> list[XMLElement]:
    if not isinstance(value, list):
        return [XMLElement(tag, text=text_of(value))] if value else [] if layout.flat else [XMLElement(tag)]
    items = [node for item in value for node in _nodes(layout.of, layout.item, _unwrapped(layout.item, item))]
    return items if layout.flat else [XMLElement(tag, inside=items)]


def _unwrapped(name: str, item: JsonValue) -> JsonValue:
    """Return the inner object of a wrapped list item, such as ``{"keypair": {...}}`` in a list of keypairs."""
    return item[name] if isinstance(item, dict) and list(item) == [name] else item


@_nodes.register
def _pairs(layout: Pairs, tag: str, value: JsonValue) -> list[XMLElement]:
    if not isinstance(value, dict):
        return [XMLElement(tag, text=text_of(value or ""))]
    items = [_pair(layout, key, item) for key, item in value.items()]
    return items if layout.flat else [XMLElement(tag, inside=items)]


def _pair(layout: Pairs, key: str, value: JsonValue) -> XMLElement:
    node = XMLElement(layout.item, {layout.key: key})
    if layout.value:
        node.attributes[layout.value] = text_of(value)
    elif layout.of:
        node.inside = _nodes(layout.of, layout.item, value)
    else:
        node.text = text_of(value)
    return node
