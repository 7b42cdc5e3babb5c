"""Says what an option's type accepts, in words, as the library's own errors repeat the value."""

from __future__ import annotations

from collections.abc import Callable

from oslo_config import cfg, types

from nova.conf._span import TimeSpan
from nova.conf._urls import Url


def wanted(kind: object) -> str:
    """What a value must be: completes "it must be"."""
    for known, words in _WORDS:
        if isinstance(kind, known):
            return words(kind)
    return f"a {getattr(kind, 'type_name', 'value of its type')}"


def problem(option: cfg.Opt, value: object) -> str:
    """What is wrong with a value that the option's type rejects; our own types say it without the value."""
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
        return f"a text of the form {kind.regex.pattern}"
    return f"a text of {kind.max_length} characters at most" if kind.max_length else "a text"


def _uri(kind: types.URI) -> str:
    return f"a URL that begins with {', '.join(f'{scheme}://' for scheme in kind.schemes)}" if kind.schemes else "a URL"


#: What comes first counts: a type may be a special form of one below.
_WORDS: tuple[tuple[type, Callable[..., str]], ...] = (
    (Url, lambda kind: f"a URL, like {kind.example}"),
    (TimeSpan, lambda kind: "a length of time: a number of days, or a number with s, m, h or d"),
    (types.Port, lambda kind: f"a port's number, from {kind.min or 0} to {kind.max or 65535}"),
    (types.Number, _integer), (types.String, _string), (types.URI, _uri),
    (types.Boolean, lambda kind: "true or false"),
    (types.List, lambda kind: f"a list, with commas, in which each is {wanted(kind.item_type)}"),
    (types.Dict, lambda kind: "a list of NAME:VALUE, with commas"),
    (types.Range, lambda kind: "a number, or two with a dash"),
    (types.IPAddress, lambda kind: "an IP address"),
    (types.Hostname, lambda kind: "a host's name"),
    (types.HostAddress, lambda kind: "a host's name or IP address"))
