"""Serialization of responses and errors to XML. A response is a tree: a dictionary is an element's children in order,
a tuple or list is its ``<item>``s, and booleans, numbers, times and strings are its text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from urllib.parse import quote

#: Child element -> value. None: no value; old clients get an empty element for it.
Tree = Mapping[str, object]

#: Characters that XML cannot represent, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = re.compile("[-\\w .:,/+=]*", re.ASCII)  # text that needs no escaping
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def answer(action: str, version: str, request_id: str, body: Tree, empty_unset: bool) -> bytes:
    """Return the document ``<{action}Response>``. ``empty_unset``: None becomes an empty element, else no element."""
    namespace = f"http://ec2.amazonaws.com/doc/{quote(version, errors='replace')}/"  # client's text, in an attribute
    out = [_HEAD, f'<{action}Response xmlns="{namespace}"><requestId>',
           escaped(request_id), "</requestId>"]
    _children(out, body, empty_unset)
    out.append(f"</{action}Response>")
    return "".join(out).encode("utf-8", "replace")


def error(code: str, message: str, request_id: str) -> bytes:
    """Return the document of one error, in the shape that all clients parse."""
    return (f"{_HEAD}<Response><Errors><Error><Code>{escaped(code)}</Code><Message>{escaped(message)}</Message></Error>"
            f"</Errors><RequestID>{escaped(request_id)}</RequestID></Response>").encode("utf-8", "replace")


def escaped(text: str) -> str:
    """Escape text for an element; characters that XML cannot represent become U+FFFD."""
    if _PLAIN.fullmatch(text):
        return text
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text).translate(_ESCAPES)


def shown(value: object) -> str:
    """Return a value as text: booleans in lower case, times in UTC with milliseconds."""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return f"{value.isoformat(timespec='milliseconds')}Z"
    return str(value)


def _children(out: list[str], body: Tree, empty_unset: bool) -> None:
    for name, value in body.items():
        if isinstance(value, str):
            out.append(f"<{name}>{escaped(value)}</{name}>")
        elif value is None:
            if empty_unset:
                out.append(f"<{name}/>")
        elif isinstance(value, (dict, Mapping)):  # Mapping's check is ten times slower than dict's
            out.append(f"<{name}>")
            _children(out, value, empty_unset)
            out.append(f"</{name}>")
        elif isinstance(value, (tuple, list)):
            if value:
                out.append(f"<{name}>")
                for one in value:
                    _children(out, {"item": one}, empty_unset)
                out.append(f"</{name}>")
            else:
                out.append(f"<{name}/>")
        else:
            out.append(f"<{name}>{escaped(shown(value))}</{name}>")
