"""Shorthand for making XML trees."""

from __future__ import annotations

import xml.etree.ElementTree as ET

Element = ET.Element


def add(parent: Element, tag: str, **attributes: object) -> Element:
    """A new last child; attributes that are None are left out. ``type_`` and the like lose the underscore."""
    return ET.SubElement(parent, tag, {name.rstrip("_"): str(value) for name, value in attributes.items()
                                       if value is not None})


def text(parent: Element, tag: str, content: object, **attributes: object) -> Element:
    """A new last child with text in it; characters that XML has no way to say are left out."""
    child = add(parent, tag, **attributes)
    child.text = "".join(char for char in str(content) if _sayable(ord(char)))
    return child


def _sayable(code: int) -> bool:
    return code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code > 0xFFFF
