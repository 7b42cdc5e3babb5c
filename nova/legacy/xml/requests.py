"""Conversion of an XML request body to the JSON that handlers accept: by the body's schema, else by the elements' form.

In XML all values are text; the schema defines which are numbers, booleans or null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nova import errors
from nova.legacy.xml.namespaces import ALIASES, EXTENSIONS
from nova.legacy.xml.reader import Element
from nova.model.base import JsonValue
from nova.web.formats import BOOLEANS
from nova.web.schema import SchemaNode
from nova.web.specs import shown

#: Lists without a schema: removed, or free-form.
LISTS = frozenset(("policies", "interfaces", "fixed_ips"))
#: Roots without a counterpart in JSON.
BARE = frozenset(("updates", "service"))
#: Elements with attributes and text -> key of the text.
TEXTS = {"file": "contents"}
#: Values in base64, which XML breaks into lines.
ENCODED = frozenset(("contents", "user_data"))
#: Values that may be a URL, whose last component is the id.
REFERENCES = frozenset(("imageRef", "flavorRef"))
#: Root -> XML name -> JSON key, for keys that differ.
NAMES: dict[str, dict[str, str]] = {
    "server": {"auto_disk_config": "OS-DCF:diskConfig"},
    "rebuild": {"auto_disk_config": "OS-DCF:diskConfig"},
    "resize": {"auto_disk_config": "OS-DCF:diskConfig"},
    "volume": {"displayName": "display_name", "displayDescription": "display_description", "volumeType": "volume_type",
               "availabilityZone": "availability_zone", "snapshotId": "snapshot_id"},
}
HINTS = "scheduler_hints"
_HINTS_TAG = f"{{{EXTENSIONS['OS-SCH-HNT'].namespace}}}{HINTS}"
_HINTS_KEY = f"OS-SCH-HNT:{HINTS}"  # in JSON it is a sibling of the server

_INTEGER, _NUMBER = re.compile(r"-?[0-9]{1,40}"), re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_TEXT_TYPES = frozenset(("string", "any", "integer_like", "number_like", "boolean_like"))
_BLANKS = " \t\r\n"  # white space as XML defines it
_NOTHING = SchemaNode()


def local(tag: str) -> str:
    """Return the name without its namespace, by which requests are matched."""
    return tag.rpartition("}")[2]


def body_of(root: Element, table: SchemaNode | None) -> JsonValue:
    """Return the body in JSON. ``table``: the compiled schema of the operation's body.

    Raises api.UnusableBody for a name that occurs twice but must not.
    """
    table = table or _NOTHING
    name = local(root.tag)
    if name in BARE:
        return _record(root, table)
    body: dict[str, JsonValue] = {}
    for hints in root.findall(_HINTS_TAG):
        body[_HINTS_KEY] = _value(hints, table.node_of(_HINTS_KEY))
        root.remove(hints)
    key = _key(root.tag, table)
    body[key] = _value(root, table.node_of(key))
    return body


def text_of(element: Element) -> str:
    """Return the text without surrounding white space, which is only formatting.

    Metadata values keep their white space: they are data, and a client that reads and writes them must not change them.
    """
    return (element.text or "").strip(_BLANKS)


def _value(element: Element, node: SchemaNode | None) -> JsonValue:
    types = node.spec.types if node else ()
    if not len(element) and not element.attrib:
        text = text_of(element)
        return _plain(local(element.tag), text, node) if text else _empty(types)
    if "array" in types or (node is None and local(element.tag) in LISTS):
        return [_value(child, node.item if node else None) for child in element]
    return _record(element, node)


def _empty(types: tuple[str, ...]) -> JsonValue:
    """Return the value of an empty element: the emptiest value of the allowed types."""
    if "object" in types:
        return {}
    if "array" in types:
        return []
    return None if "null" in types or "any" in types else ""


def _plain(name: str, text: str, node: SchemaNode | None) -> JsonValue:
    """Convert a text to the type that the schema requires."""
    if name in ENCODED:
        return "".join(text.split())
    if name in REFERENCES:
        return text.rstrip("/").rpartition("/")[2]
    types = frozenset(node.spec.types) if node else frozenset(("any",))
    if types & _TEXT_TYPES:  # the schema itself converts numbers and booleans among them
        return text
    if "integer" in types and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text):
        return float(text)
    return BOOLEANS.get(text, text) if "boolean" in types else text


def _record(element: Element, node: SchemaNode | None) -> JsonValue:
    """Return an object of the element's attributes and children. Repeated names become a list if the schema allows one;
    else they are refused, as in JSON."""
    if _is_meta(element):
        return {element.attrib["key"]: element.text or ""}
    node = node or _NOTHING
    made: dict[str, list[JsonValue]] = {}
    for key, value in _pairs(element, node):
        made.setdefault(key, []).append(value)
    for key, values in made.items():
        inner = node.node_of(key)
        if len(values) > 1 and inner is not None and not {"any", "array"} & set(inner.spec.types):
            raise errors.api.UnusableBody(reason=f"'{shown(key)}' occurs more than once.")
    return {key: values if len(values) > 1 else values[0] for key, values in made.items()}


def _pairs(element: Element, node: SchemaNode) -> Iterator[tuple[str, JsonValue]]:
    """Yield keys and values; ``<meta key="k">v</meta>`` is the key k, in any element."""
    name = local(element.tag)
    renamed = NAMES.get(name, {})
    for attribute, text in element.attrib.items():
        key = _key(attribute, node, renamed)
        yield key, _plain(key, text, node.node_of(key))
    for child in element:
        if _is_meta(child):
            yield child.attrib["key"], child.text or ""
        else:
            key = _key(child.tag, node, renamed)
            yield key, _value(child, node.node_of(key))
    if name in TEXTS and (text := text_of(element)):
        yield TEXTS[name], _plain(TEXTS[name], text, None)


def _is_meta(element: Element) -> bool:
    return local(element.tag) == "meta" and list(element.attrib) == ["key"] and not len(element)


def _key(tag: str, node: SchemaNode, renamed: dict[str, str] | None = None) -> str:
    """Return the JSON key of an element or attribute, by its local name, independent of its namespace prefix."""
    name, namespace = local(tag), tag.rpartition("}")[0].removeprefix("{")
    alias = ALIASES.get(namespace) or ("" if "/" in namespace else namespace)
    full = f"{alias}:{name}" if alias else name
    if renamed and name in renamed:
        return renamed[name]
    if full in node.keys or name in node.keys:
        return full if full in node.keys else name
    ours = next((key for key in node.keys if key.endswith(f":{name}")), None)
    return ours or (name if namespace in ALIASES and not node.patterns else full)
