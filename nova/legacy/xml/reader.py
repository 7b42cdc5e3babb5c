"""Parser of XML request bodies: bounded, UTF-8 only, and without document types.

The features that attacks need are refused, not only disabled: document types, entities, notations, external references.
No other module of the API parses XML; modules that handle elements import their class from here.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element as Element
from xml.etree.ElementTree import ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from nova import errors, failures
from nova.web.bodies import MAX_DEPTH

MOST_ELEMENTS = 10_000  # more than a valid body of the maximum size has
MOST_ATTRIBUTES = 100  # per element
_ENCODING = re.compile(r"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = ("utf-8", "us-ascii")


class _TooMuch(Exception):
    """A limit is exceeded; the text names it."""


class _Bounded(TreeBuilder):
    """A tree builder that stops at the limits, so that no larger tree is ever in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = self.elements = 0

    def start(self, tag: str, attrs: dict[str, str]) -> Element:
        self.depth, self.elements = self.depth + 1, self.elements + 1
        if self.depth > MAX_DEPTH:
            raise _TooMuch(f"It is nested too deeply: at most {MAX_DEPTH} levels.")
        if self.elements > MOST_ELEMENTS or len(attrs) > MOST_ATTRIBUTES:
            raise _TooMuch(f"It is too large: at most {MOST_ELEMENTS} elements of {MOST_ATTRIBUTES} attributes.")
        return super().start(tag, attrs)

    def end(self, tag: str) -> Element:
        self.depth -= 1
        return super().end(tag)


def read(raw: bytes) -> Element:
    """Parse a body; return the root element.

    Raises api.MalformedXml if it is not well-formed XML in UTF-8, or uses a refused feature; api.UnusableBody if it
    exceeds a limit.
    """
    text = _decoded(raw)
    parser = DefusedXMLParser(target=_Bounded(), forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        parser.feed(text)
        root: Element = parser.close()
    except _TooMuch as error:
        raise errors.api.UnusableBody(reason=str(error)) from None
    except DefusedXmlException:
        raise errors.api.MalformedXml(reason="Document types, entities and notations are not allowed.") from None
    except (ParseError, ValueError) as error:
        raise errors.api.MalformedXml(reason=f"{error}.") from None
    return root


def _decoded(raw: bytes) -> str:
    """Decode the text, which must be UTF-8 and must not declare another encoding."""
    with failures.replaced(UnicodeDecodeError, lambda _: errors.api.MalformedXml(reason="It is not encoded in UTF-8.")):
        text = raw.decode("utf-8-sig")
    declared = _ENCODING.match(text.lstrip())
    if "\0" in text or (declared and declared[1].lower() not in _ENCODINGS):
        raise errors.api.MalformedXml(reason="It is not encoded in UTF-8, or contains a NUL character.")
    return text
