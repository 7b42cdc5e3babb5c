"""The published documents of XML, and what they say in JSON by the tables of layouts."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import yaml
from lxml import etree

from nova.legacy.xml.layouts import GENERIC, Listing, Pairs, Record, singular
from nova.legacy.xml.namespaces import ATOM, EXTENSIONS
from tests.contract.rows import SHARED

LEGACY = SHARED / "legacy"
FOLDER = LEGACY / "xml_samples"
needs_samples = pytest.mark.skipif(not FOLDER.is_dir(), reason="the published samples are not here")

#: Declared in samples, though nothing there has it: servers without volumes.
UNUSED = {EXTENSIONS["os-extended-volumes"].namespace}

_PARSER = etree.XMLParser(resolve_entities=False, remove_blank_text=True, remove_comments=True)


def parsed(content: bytes) -> Any:
    return etree.fromstring(content, _PARSER)


def local(element: Any) -> str:
    return str(etree.QName(element).localname)


@functools.cache
def layouts() -> dict[str, dict[str, Any]]:
    """The layouts of the contract: folder -> ``request`` or ``response`` -> root -> layout."""
    if not FOLDER.is_dir():
        return {}
    found: dict[str, dict[str, Any]] = yaml.safe_load((LEGACY / "xml_v2.yaml").read_text())["layouts"]
    return found


def is_request(path: Path) -> bool:
    """By its name where that says it, else by the table of layouts."""
    if path.stem.endswith("-req") or "-resp" in path.stem:
        return path.stem.endswith("-req")
    folder = path.parent.name if path.parent != FOLDER else "core"
    return local(parsed(path.read_bytes())) in layouts().get(folder, {}).get("request", {})


def documents(requests: bool) -> list[Path]:
    """The samples that have a body."""
    if not FOLDER.is_dir():
        return []
    return [path for path in sorted(FOLDER.rglob("*.xml")) if path.stat().st_size and is_request(path) == requests]


def name_of(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def made_up(tag: str, entry: dict[str, Any]) -> Any:
    """A document as the contract's layout of it says, with one of each."""
    prefixes = {None if name == "default" else name: uri for name, uri in entry.get("xmlns", {}).items()}
    root = etree.Element(_full(tag, prefixes), nsmap=prefixes)
    _fill(root, entry["layout"], prefixes)
    return root


def _fill(element: Any, layout: Any, prefixes: dict[str | None, str]) -> None:
    for name, inner in layout.items() if isinstance(layout, dict) else ():
        if name == "@":
            for attribute in inner:
                element.set(_full(attribute, prefixes, None), "x")
        elif name == "text":
            element.text = "x"
        else:
            _fill(etree.SubElement(element, _full(name.rstrip("*"), prefixes)), inner, prefixes)


def _full(name: str, prefixes: dict[str | None, str], default: Any = ...) -> str:
    prefix, colon, rest = name.partition(":")
    namespace = prefixes[prefix] if colon else prefixes.get(None) if default is ... else default
    return f"{{{namespace}}}{rest or prefix}" if namespace else rest or prefix


# from XML to JSON: what a layout says the other way round


def value_of(element: Any, layout: Record | Listing | Pairs) -> Any:
    if isinstance(layout, Listing):
        return [value_of(child, layout.of) for child in element if not _is_link(child)]
    if isinstance(layout, Pairs):
        return dict(pair(child, layout) for child in element)
    return _object(element, layout)


def pair(element: Any, layout: Pairs) -> tuple[str, Any]:
    key = element.get(layout.key)
    if layout.value:
        return key, element.get(layout.value)
    if layout.of:
        assert isinstance(layout.of, Listing)
        return key, value_of(element, layout.of)
    return key, element.text or ""


def _object(element: Any, layout: Record) -> Any:
    if layout == GENERIC and not element.attrib:
        names = {local(child) for child in element}
        if not names:
            return element.text or ""
        if names in ({singular(local(element))}, {"item"}):
            return [value_of(child, GENERIC) for child in element]
    keys = {name: key for key, name in layout.names.items()}
    made: dict[str, Any] = {keys.get(name, name): value for name, value in _attributes(element)}
    for child in element:
        name = _prefixed(child, child.tag)
        flat = next((key for key, inner in layout.inside.items()
                     if not isinstance(inner, Record) and inner.flat and inner.item == name), None)
        if _is_link(child):
            made.setdefault("links", []).append(dict(child.attrib))
        elif flat:
            inner = layout.inside[flat]
            if isinstance(inner, Listing):
                made.setdefault(flat, []).append(value_of(child, inner.of))
            else:
                assert isinstance(inner, Pairs)
                made.setdefault(flat, {}).update([pair(child, inner)])
        else:
            key = keys.get(name, name)
            made[key] = value_of(child, layout.inside.get(key, GENERIC))
    return made


def _attributes(element: Any) -> list[tuple[str, str]]:
    return [(_prefixed(element, name), value) for name, value in element.attrib.items()]


def _prefixed(element: Any, tag: str) -> str:
    name = etree.QName(tag)
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items() if prefix}
    return f"{prefixes[name.namespace]}:{name.localname}" if name.namespace in prefixes else str(name.localname)


def _is_link(element: Any) -> bool:
    return bool(element.tag == f"{{{ATOM}}}link")


# what two documents are compared by


def kind_of(text: str | None) -> str:
    """The type that a text has, by its spelling."""
    text = (text or "").strip()
    if text in ("True", "False", "None", ""):
        return {"True": "boolean", "False": "boolean"}.get(text, "nothing")
    return "number" if text.lstrip("-").replace(".", "", 1).isdecimal() else "text"


def shape(element: Any) -> Any:
    """Names with namespaces, attributes and children, in any order, and types of values."""
    attributes = sorted((name, kind_of(value)) for name, value in element.attrib.items())
    children = sorted((shape(child) for child in element), key=repr)
    return element.tag, attributes, children, "" if len(element) else kind_of(element.text)


def names(element: Any, above: str = "") -> set[str]:
    """Paths of all elements and attributes."""
    path = f"{above}/{element.tag}"
    own = {path, *(f"{path}@{name}" for name in element.attrib)}
    return own.union(*(names(child, path) for child in element))


def last(path: str) -> str:
    """The local name at the end of one of those paths."""
    return path.rpartition("@")[2].rpartition("}")[2].rpartition("/")[2]
