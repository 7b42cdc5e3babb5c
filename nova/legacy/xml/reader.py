"""A request body in XML, from bytes to a tree of elements: bounded, in UTF-8, and without what a document type may do.

What an attack needs is refused, not only made harmless: document types, entities, notations, external references.
Nothing else of the API parses XML; what works on the elements takes their class from here.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element as Element
from xml.etree.ElementTree import ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from nova import errors
from nova.model.base import Json
from nova.web.bodies import MAX_DEPTH

MOST_ELEMENTS = 10_000  # a body of the largest size, of what the API knows, has fewer
MOST_ATTRIBUTES = 100  # of one element
_ENCODING = re.compile(r"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = ("utf-8", "us-ascii")


class _TooMuch(Exception):
    """A bound is passed; the text says which."""


class _Bounded(TreeBuilder):
    """Builds the tree while it is within the bounds, so that nothing larger ever is in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = self.elements = 0

    def start(self, tag: Json, attrs: dict[Json, Json]) -> Element:
        self.depth, self.elements = self.depth + 1, self.elements + 1
        if self.depth > MAX_DEPTH:
            raise _TooMuch(f"It is nested too deeply: at most {MAX_DEPTH} levels.")
        if self.elements > MOST_ELEMENTS or len(attrs) > MOST_ATTRIBUTES:
            raise _TooMuch(f"It has too much: at most {MOST_ELEMENTS} elements of {MOST_ATTRIBUTES} attributes.")
        return super().start(tag, attrs)

    def end(self, tag: str) -> Element:
        self.depth -= 1
        return super().end(tag)


def read(raw: bytes) -> Element:
    """The root element. api.MalformedXml for what is no XML, is not in UTF-8, or is not meant well; api.UnusableBody
    for what passes a bound."""
    text = _decoded(raw)
    parser = DefusedXMLParser(target=_Bounded(), forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        parser.feed(text)
        root: Element = parser.close()
    except _TooMuch as error:
        raise errors.api.UnusableBody(reason=str(error)) from None
    except DefusedXmlException:
        raise errors.api.MalformedXml(reason="Document types, entities and notations are not taken.") from None
    except (ParseError, ValueError) as error:
        raise errors.api.MalformedXml(reason=f"{error}.") from None
    return root


def _decoded(raw: bytes) -> str:
    """The text, which must be in UTF-8 and not say otherwise."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise errors.api.MalformedXml(reason="It is not encoded in UTF-8.") from None
    declared = _ENCODING.match(text.lstrip())
    if "\0" in text or (declared and declared[1].lower() not in _ENCODINGS):
        raise errors.api.MalformedXml(reason="It is not encoded in UTF-8, or holds a NUL character.")
    return text
