"""Request bodies and query strings as tables of fields, and the small validator they are compiled to, per version.

A row names a path: ``server.networks[].uuid`` steps into an object by ``.``, into a list's items by ``[]``;
``/regex/`` stands for every key that matches. Rows hold from ``since`` to ``until``; at one version a path has at most
one row. What comes out is a converted copy: spellings of booleans are bool, numbers given as text are numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nova import errors
from nova.api import versions
from nova.api.formats import BOOLEANS, FORMATS

REFUSE, ACCEPT = "refuse", "accept"  # what to do with keys that no row names
BODY = "(body)"


class BadInput(errors.Invalid):
    code = "api.bad_input"
    message = "Invalid input for field/attribute {field}. Value: {value}. {reason}"


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What one value may be. ``type``: a JSON type's name or several, ``any``, ``boolean_like``, ``integer_like``
    and ``number_like`` (numbers, or text of them; the result is a number). ``one_of``: other shapes, one must fit.
    """

    type: str | tuple[str, ...] = "any"
    allowed: tuple[Any, ...] = ()
    pattern: str | None = None
    format: str | None = None
    min: float | None = None
    max: float | None = None
    above: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_keys: int | None = None
    max_keys: int | None = None
    items: Spec | None = None
    one_of: tuple[Spec, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        return (self.type,) if isinstance(self.type, str) else self.type


@dataclass(frozen=True)
class Field:
    """One row of a table of fields."""

    path: str
    spec: Spec
    required: bool = False
    since: str | None = None
    until: str | None = None
    unknown: str = REFUSE
    or_: tuple[Spec, ...] = ()


def row(path: str, type: str | tuple[str, ...] = "any", *, required: bool = False, since: str | None = None,
        until: str | None = None, unknown: str = REFUSE, or_: tuple[Spec, ...] = (), **rules: Any) -> Field:
    """A row of a table; ``rules`` are :class:`Spec`'s."""
    return Field(path, Spec(type=type, **rules), required, since, until, unknown, or_)


NAME: dict[str, Any] = {"min_length": 1, "max_length": 255, "format": "name"}
LOOSE_NAME: dict[str, Any] = {**NAME, "format": "name_with_leading_trailing_spaces"}
MAX_INT = 0x7FFFFFFF


@functools.cache
def expression(pattern: str) -> re.Pattern[str]:
    """A pattern of the contract, compiled. ``$`` is the very end there; Python's lets one more line end follow."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


_SEGMENT = re.compile(r"/(?:[^/\\]|\\.)+/(?![^.\[])|\[\]|[^.\[\]]+")


def segments(path: str) -> list[str]:
    """``a.b[]./re/`` -> ``["a", "b", "[]", "/re/"]``."""
    return [] if path == BODY else _SEGMENT.findall(path)


def _types() -> dict[str, Callable[[Any], bool]]:
    def integer(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def text(pattern: str) -> Callable[[Any], bool]:
        match = re.compile(pattern).fullmatch
        return lambda value: isinstance(value, str) and len(value) <= 40 and match(value) is not None

    integer_text, number_text = text(r"-?[0-9]+"), text(r"-?[0-9]+(\.[0-9]+)?")
    return {
        "any": lambda value: True,
        "null": lambda value: value is None,
        "boolean": lambda value: isinstance(value, bool),
        "string": lambda value: isinstance(value, str),
        "object": lambda value: isinstance(value, dict),
        "array": lambda value: isinstance(value, list),
        "integer": integer,
        "number": number,
        "integer_like": lambda value: integer(value) or integer_text(value),
        "number_like": lambda value: number(value) or number_text(value),
        "boolean_like": lambda value: isinstance(value, bool) or (isinstance(value, str) and value in BOOLEANS),
    }


_TYPES = _types()
_SPOKEN = {"integer_like": "an integer", "number_like": "a number", "null": "null", "any": "anything",
           "boolean_like": "a boolean (true, false, or one of the texts true, on, yes, 1, false, off, no, 0)",
           "string": "a string", "object": "an object", "array": "an array", "integer": "an integer",
           "number": "a number", "boolean": "true or false"}
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "integer_like": int,
    "number_like": float,
    "boolean_like": lambda value: value if isinstance(value, bool) else BOOLEANS[value],
}


def _converted(spec: Spec, value: Any) -> Any:
    for kind in spec.types:
        if kind in _CONVERT and value is not None and _TYPES[kind](value):
            return _CONVERT[kind](value)
    return value


def _text_problem(spec: Spec, value: str) -> str | None:
    if spec.min_length is not None and len(value) < spec.min_length:
        return f"It is too short: at least {spec.min_length} characters."
    if spec.max_length is not None and len(value) > spec.max_length:
        return f"It is too long: at most {spec.max_length} characters."
    if spec.pattern is not None and not expression(spec.pattern).search(value):
        return f"It does not match the pattern {spec.pattern}"
    if spec.format in FORMATS and not FORMATS[spec.format][0](value):
        return f"It must be {FORMATS[spec.format][1]}."
    return None


def _number_problem(spec: Spec, value: float) -> str | None:
    if spec.min is not None and value < spec.min:
        return f"It is less than the minimum of {spec.min}."
    if spec.max is not None and value > spec.max:
        return f"It is greater than the maximum of {spec.max}."
    if spec.above is not None and value <= spec.above:
        return f"It must be greater than {spec.above}."
    return None


def _size_problem(size: int, least: int | None, most: int | None, what: str) -> str | None:
    if least is not None and size < least:
        return f"It has too few {what}: at least {least}."
    if most is not None and size > most:
        return f"It has too many {what}: at most {most}."
    return None


def _array_problem(spec: Spec, value: list[Any]) -> str | None:
    problem = _size_problem(len(value), spec.min_items, spec.max_items, "items")
    if problem is None and spec.unique_items and any(value.count(item) > 1 for item in value):
        return "Its items must differ from each other."
    if problem is None and spec.items is not None:
        return next(filter(None, (_problem(spec.items, item) for item in value)), None)
    return problem


def _problem(spec: Spec, value: Any) -> str | None:
    """What is wrong with ``value`` by ``spec`` alone, and what would be accepted; None when nothing is."""
    kinds = spec.types
    if not any(_TYPES[kind](value) for kind in kinds):
        return f"It must be {' or '.join(_SPOKEN[kind] for kind in kinds)}."
    if spec.allowed and not any(value == choice and isinstance(value, bool) == isinstance(choice, bool)
                                for choice in spec.allowed):
        return f"It must be one of: {', '.join(map(str, spec.allowed))}."
    converted, problem = _converted(spec, value), None
    if isinstance(value, str):
        problem = _text_problem(spec, value)
    if problem is None and isinstance(converted, (int, float)) and not isinstance(converted, bool):
        problem = _number_problem(spec, converted)
    if problem is None and isinstance(value, list):
        problem = _array_problem(spec, value)
    if problem is None and isinstance(value, dict):
        problem = _size_problem(len(value), spec.min_keys, spec.max_keys, "keys")
    if problem is None and spec.one_of:
        wrong = [_problem(choice, value) for choice in spec.one_of]
        problem = None if None in wrong else " Or: ".join(str(reason) for reason in wrong)
    return problem


@dataclass
class Node:
    """A field of the compiled tree: what it may be itself, and what may be in it."""

    spec: Spec = field(default_factory=Spec)
    required: bool = False
    unknown: str = ACCEPT
    or_: tuple[Spec, ...] = ()
    keys: dict[str, Node] = field(default_factory=dict)
    patterns: list[tuple[re.Pattern[str], Node]] = field(default_factory=list)
    item: Node | None = None

    def check(self, value: Any, where: str, lenient: bool) -> Any:
        """A converted copy of ``value``. BadInput names the field, the value and what would be accepted."""
        problem = _problem(self.spec, value)
        if problem is not None:
            if any(_problem(other, value) is None for other in self.or_):
                return value
            raise BadInput(field=where, value=shown(value), reason=problem)
        if isinstance(value, dict) and (self.keys or self.patterns or self.unknown == REFUSE):
            return self._check_object(value, where, lenient)
        if isinstance(value, list) and self.item is not None:
            return [self.item.check(item, f"{where}[{index}]", lenient) for index, item in enumerate(value)]
        return _converted(self.spec, value)

    def _check_object(self, value: dict[str, Any], where: str, lenient: bool) -> dict[str, Any]:
        if self.spec.types == ("any",):
            return value
        for name, node in self.keys.items():
            if node.required and name not in value:
                raise BadInput(field=where, value=shown(value), reason=f"'{name}' is a required property.")
        result = {}
        for key, item in value.items():
            node = self._node_of(key)
            if node is not None:
                result[key] = node.check(item, key if where == BODY else f"{where}.{key}", lenient)
            elif self.unknown == ACCEPT:
                result[key] = item
            elif not lenient:
                raise BadInput(field=where, value=shown(value), reason=self._unexpected(key))
        return result

    def _node_of(self, key: str) -> Node | None:
        return self.keys.get(key) or next((node for pattern, node in self.patterns if pattern.search(key)), None)

    def _unexpected(self, key: str) -> str:
        known = ", ".join([*sorted(self.keys), *(f"keys matching {pattern.pattern}" for pattern, _ in self.patterns)])
        return f"Additional properties are not allowed ('{key}' was unexpected). Known: {known or 'none'}."


def shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def compile_fields(fields: Iterable[Field], version: int) -> Node:
    """The tree for one version. ValueError when two rows of one path hold at it."""
    root, seen = Node(), set()
    for entry in fields:
        if not versions.within(version, entry.since, entry.until):
            continue
        if entry.path in seen:
            raise ValueError(f"{entry.path} has two rows at {versions.text(version)}")
        seen.add(entry.path)
        node = root
        for segment in segments(entry.path):
            node = _step(node, segment)
        node.spec, node.required, node.unknown, node.or_ = entry.spec, entry.required, entry.unknown, entry.or_
    return root


def _step(node: Node, segment: str) -> Node:
    if segment == "[]":
        node.item = node.item or Node()
        return node.item
    if segment.startswith("/"):
        pattern = expression(segment[1:-1])
        for known, child in node.patterns:
            if known == pattern:
                return child
        node.patterns.append((pattern, Node()))
        return node.patterns[-1][1]
    return node.keys.setdefault(segment, Node())


class Body:
    """A request body's table. ``legacy``: rows that replace those of the same path under /v2.

    The body itself is an object that refuses unknown keys, unless a row for ``(body)`` says otherwise.
    """

    def __init__(self, *fields: Field, legacy: tuple[Field, ...] = ()) -> None:
        own = any(entry.path == BODY for entry in fields)
        self.fields = fields if own else (row(BODY, "object"), *fields)
        self.legacy = legacy
        self.compiled = functools.cache(self._compile)

    def _compile(self, version: int, legacy: bool) -> Node:
        if not legacy:
            return compile_fields(self.fields, version)
        replaced = {entry.path for entry in self.legacy}
        return compile_fields([*(entry for entry in self.fields if entry.path not in replaced), *self.legacy], version)

    def check(self, body: Any, version: int, legacy: bool = False) -> Any:
        """A converted copy of ``body``, or BadInput. Under /v2 unknown keys are taken out, not refused."""
        return self.compiled(version, legacy).check(body, BODY, legacy)


@dataclass(frozen=True)
class Param:
    """A query parameter; ``name`` in slashes is a pattern. ``repeat``: it may come several times."""

    name: str
    spec: Spec
    repeat: bool = True
    since: str | None = None
    until: str | None = None


def param(name: str, type: str = "string", *, repeat: bool = True, since: str | None = None,
          until: str | None = None, **rules: Any) -> Param:
    return Param(name, Spec(type=type, **rules), repeat, since, until)


LIMIT = param("limit", "integer_like", min_length=1, min=0)
MARKER = param("marker")


class Values:
    """A checked query string: name -> values, in order."""

    def __init__(self, values: Mapping[str, list[Any]]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Any:
        return iter(self._values)

    def all(self, name: str) -> list[Any]:
        return self._values.get(name, [])

    def one(self, name: str, default: Any = None) -> Any:
        """The last value given."""
        values = self._values.get(name)
        return values[-1] if values else default


class Query:
    """A query string's table. Unknown parameters are dropped, and refused from ``refuse_unknown`` on."""

    def __init__(self, *params: Param, refuse_unknown: str | None = None) -> None:
        self.params = params
        self.refuse_unknown = refuse_unknown
        self.compiled = functools.cache(self._compile)

    def _compile(self, version: int) -> tuple[dict[str, Param], list[tuple[re.Pattern[str], Param]], bool]:
        names: dict[str, Param] = {}
        patterns = []
        for entry in self.params:
            if not versions.within(version, entry.since, entry.until):
                continue
            if entry.name in names:
                raise ValueError(f"{entry.name} has two rows at {versions.text(version)}")
            if entry.name.startswith("/"):
                patterns.append((expression(entry.name[1:-1]), entry))
            else:
                names[entry.name] = entry
        return names, patterns, self.refuse_unknown is not None and version >= versions.number(self.refuse_unknown)

    def check(self, pairs: Iterable[tuple[str, str]], version: int) -> Values:
        """The known parameters, converted. BadInput names the parameter."""
        names, patterns, refuse = self.compiled(version)
        values: dict[str, list[Any]] = {}
        for name, value in pairs:
            entry = names.get(name) or next((found for pattern, found in patterns if pattern.search(name)), None)
            if entry is None:
                if refuse:
                    raise BadInput(field=name, value=shown(value), reason=self._unexpected(name, names))
                continue
            problem = "It may hold no NUL character." if "\0" in value else _problem(entry.spec, value)
            if problem is None and name in values and not entry.repeat:
                problem = "It may be given once only."
            if problem is not None:
                raise BadInput(field=name, value=shown(value), reason=problem)
            values.setdefault(name, []).append(_converted(entry.spec, value))
        return Values(values)

    def _unexpected(self, name: str, names: Mapping[str, Param]) -> str:
        known = ", ".join(sorted(names))
        return f"Additional properties are not allowed ('{name}' was unexpected). Known: {known or 'none'}."


#: Operations whose query takes nothing: unknown parameters are refused from 2.102.
NO_QUERY = Query(refuse_unknown="2.102")
