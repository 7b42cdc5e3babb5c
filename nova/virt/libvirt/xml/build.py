"""Helpers that build XML trees."""

from __future__ import annotations

import xml.etree.ElementTree as ET

Element = ET.Element


def add(parent: Element, tag: str, **attributes: object) -> Element:
    """Append a child and return it. Attributes that are None are omitted; ``type_`` and similar lose the underscore."""
    return ET.SubElement(parent, tag, {name.rstrip("_"): str(value) for name, value in attributes.items()
                                       if value is not None})


def text(parent: Element, tag: str, content: object, **attributes: object) -> Element:
    """Append a child with text and return it; characters that XML does not allow are omitted."""
    child = add(parent, tag, **attributes)
    child.text = "".join(char for char in str(content) if _sayable(ord(char)))
    return child


def _sayable(code: int) -> bool:
    return code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code > 0xFFFF
