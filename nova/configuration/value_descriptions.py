"""Descriptions of the values that an option's type accepts, because the library's own errors repeat the value."""

from __future__ import annotations

from collections.abc import Callable

from oslo_config import cfg, types

from nova.conf._span import TimeSpan
from nova.conf._urls import Url


def wanted(kind: object) -> str:
    """Return a description of valid values; completes "it must be"."""
    for known, words in _WORDS:
        if isinstance(kind, known):
            return words(kind)
    return f"a {getattr(kind, 'type_name', 'value of its type')}"


def problem(option: cfg.Opt, value: object) -> str:
    """Return the problem with a value that the option's type rejects. nova's own types describe it without the
    value."""
    if isinstance(option.type, Url):
        try:
            option.type(value)
        except ValueError as error:
            return f"{error}. Write it like {option.type.example}"
    return f"it must be {wanted(option.type)}"


def _integer(kind: types.Number) -> str:
    noun = "a whole number" if isinstance(kind, types.Integer) else "a number"
    if kind.choices:
        return f"one of {', '.join(str(choice) for choice in kind.choices)}"
    if kind.min is not None and kind.max is not None:
        return f"{noun} from {kind.min} to {kind.max}"
    if kind.min is not None:
        return f"{noun}, {kind.min} or above"
    return noun if kind.max is None else f"{noun}, {kind.max} or below"


def _string(kind: types.String) -> str:
    if kind.choices:
        return f"one of {', '.join(str(choice) or 'nothing' for choice in kind.choices)}"
    if kind.regex is not None:
        return f"a text that matches {kind.regex.pattern}"
    return f"a text of at most {kind.max_length} characters" if kind.max_length else "a text"


def _uri(kind: types.URI) -> str:
    return f"a URL that begins with {', '.join(f'{scheme}://' for scheme in kind.schemes)}" if kind.schemes else "a URL"


#: The first match counts: a type may be a subclass of a later one.
_WORDS: tuple[tuple[type, Callable[..., str]], ...] = (
    (Url, lambda kind: f"a URL, like {kind.example}"),
    (TimeSpan, lambda kind: "a duration: a number of days, or a number with s, m, h or d"),
    (types.Port, lambda kind: f"a port number from {kind.min or 0} to {kind.max or 65535}"),
    (types.Number, _integer), (types.String, _string), (types.URI, _uri),
    (types.Boolean, lambda kind: "true or false"),
    (types.List, lambda kind: f"a list separated by commas, in which each item is {wanted(kind.item_type)}"),
    (types.Dict, lambda kind: "a list of NAME:VALUE, separated by commas"),
    (types.Range, lambda kind: "a number, or a range with a dash"),
    (types.IPAddress, lambda kind: "an IP address"),
    (types.Hostname, lambda kind: "a host name"),
    (types.HostAddress, lambda kind: "a host name or IP address"))
