"""Decoding of request bodies, to values that all later layers can store.

JSON permits values that databases and messages cannot store, and texts that two parsers may read differently. Such
bodies are refused here, for all operations: duplicate keys, integers beyond 64 bits, NUL characters, and deeper nesting
than any operation needs. The decoder itself refuses lone surrogates, NaN and numbers beyond a double.
"""

from __future__ import annotations

import collections
import contextlib
import json
from collections.abc import Iterator

import msgspec
import webob

from nova import errors
from nova.model.base import JsonValue
from nova.web.specs import MAX_INTEGER

JSON = "application/json"
WITH_BODY = ("POST", "PUT")
MAX_DEPTH = 50  # the deepest body of the API, scheduler hints aside, has 6 levels
DIGITS = 18  # an integer with so many digits always fits into 64 bits


def read(http: webob.Request, media_types: tuple[str, ...] = (JSON,)) -> JsonValue:
    """Return the decoded body of a POST or PUT; None without a body. Raises api.MediaType, api.MalformedBody or
    api.UnusableBody."""
    if http.method not in WITH_BODY:
        return None
    raw = http.body
    if not raw:
        return None
    kind = (http.environ.get("CONTENT_TYPE") or "").split(";")[0].strip().lower()
    if kind not in media_types:
        raise errors.api.MediaType(content_type=kind)
    return decode(raw)


def decode(raw: bytes) -> JsonValue:
    """Return the value of a JSON text. Raises api.MalformedBody and api.UnusableBody."""
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise errors.api.UnusableBody(reason=_TOO_DEEP) from None
    except (UnicodeDecodeError, msgspec.DecodeError) as error:  # of text that is not UTF-8, releases raise either
        reason = f"{error}." if _is_utf8(raw) else "It is not encoded in UTF-8."
        raise errors.api.MalformedBody(reason=reason) from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    if _has_long_integer(raw) or b"\\u0000" in raw:
        _check_scalars(value)
    return value


def _is_utf8(raw: bytes) -> bool:
    with contextlib.suppress(UnicodeDecodeError):
        raw.decode()
        return True
    return False


_TOO_DEEP = f"It is nested too deeply: at most {MAX_DEPTH} levels."


def _check_depth(value: object) -> None:
    """Check the nesting level by level, without recursion."""
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            raise errors.api.UnusableBody(reason=_TOO_DEEP)
        level = [child for one in level for _, child in _children(one) if isinstance(child, (dict, list))]
        depth += 1


def _children(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield f"[{index}]", item


def _has_long_integer(raw: bytes) -> bool:
    """Return whether an integer may exceed 64 bits. Raises api.UnusableBody for a duplicate key in an object, whose
    value would be ambiguous. (The library's reader shows both; the other one, which created the value, is ten times as
    fast.)
    """
    long: list[str] = []
    json.loads(raw, object_pairs_hook=_object, parse_int=lambda text: long.append(text) if len(text) > DIGITS else None)
    return bool(long)


def _object(pairs: list[tuple[str, object]]) -> None:
    seen = collections.Counter(name for name, _ in pairs)
    if len(seen) < len(pairs):
        twice = next(name for name, times in seen.items() if times > 1)
        raise errors.api.UnusableBody(reason=f"The key '{_cut(twice)}' is there more than once in one object.")


def _check_scalars(body: object) -> None:
    """Raise api.UnusableBody, which names the place, for a NUL character (also in a key) or an integer beyond 64
    bits."""
    waiting = [("", body)]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, str) and "\0" in value:
            raise errors.api.UnusableBody(reason=f"{where or 'The body'} holds a NUL character.")
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            raise errors.api.UnusableBody(reason=f"{where or 'The body'} is an integer beyond 64 bits: it must lie "
                                          f"between -{MAX_INTEGER} and {MAX_INTEGER}.")
        for name, child in _children(value):
            if "\0" in name:
                raise errors.api.UnusableBody(reason=f"A key in {where or 'the body'} holds a NUL character.")
            step = name if not where or name.startswith("[") else f".{name}"
            waiting.append((f"{where}{_cut(step)}", child))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
