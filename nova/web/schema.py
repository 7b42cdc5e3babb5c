"""Tables of fields for request bodies and query strings, compiled to JSON Schema per version.

A row names a path: ``server.networks[].uuid`` descends into an object at ``.``, and into a list's items at ``[]``;
``/regex/`` matches every such key. Rows apply from ``since`` to ``until``; at one version a path has at most one row.
Validation returns a converted copy: spellings of booleans become bool, numbers in texts become numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar, Unpack, overload

from nova import errors
from nova.model.base import JsonValue
from nova.web.ranges import minor, within
from nova.web.specs import Rules, Spec, any_of, converted, expression, number, of_spec, shown
from nova.web.validation import Problem, Schema, SchemaValidator

REFUSE, ACCEPT = "refuse", "accept"  # the treatment of keys without a row
BODY = "(body)"

T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """A field: a row of a table of fields."""

    path: str
    spec: Spec
    required: bool = False
    since: str | None = None
    until: str | None = None
    unknown: str = REFUSE
    or_: tuple[Spec, ...] = ()


def row(path: str, type: str | tuple[str, ...] = "any", *, required: bool = False, since: str | None = None,
        until: str | None = None, unknown: str = REFUSE, or_: tuple[Spec, ...] = (), **rules: Unpack[Rules]) -> Field:
    """Return a row of a table; ``rules`` are fields of :class:`Spec`."""
    return Field(path, Spec(type=type, **rules), required, since, until, unknown, or_)


class NameRules(TypedDict):
    """The rules of names."""

    min_length: int
    max_length: int
    format: str


NAME: NameRules = {"min_length": 1, "max_length": 255, "format": "name"}
LOOSE_NAME: NameRules = {**NAME, "format": "name_with_leading_trailing_spaces"}
MAX_INT = 0x7FFFFFFF


_SEGMENT = re.compile(r"/(?:[^/\\]|\\.)+/(?![^.\[])|\[\]|[^.\[\]]+")


def segments(path: str) -> list[str]:
    """Split a path: ``a.b[]./re/`` -> ``["a", "b", "[]", "/re/"]``."""
    return [] if path == BODY else _SEGMENT.findall(path)


@dataclass
class SchemaNode:
    """A field of the compiled tree: the specification of its value, and its children."""

    spec: Spec = field(default_factory=Spec)
    required: bool = False
    unknown: str = ACCEPT
    or_: tuple[Spec, ...] = ()
    keys: dict[str, SchemaNode] = field(default_factory=dict)
    patterns: list[tuple[re.Pattern[str], SchemaNode]] = field(default_factory=list)
    item: SchemaNode | None = None
    elsewhere: dict[str, list[str]] = field(default_factory=dict)  # key -> versions that have it

    def converted(self, value: JsonValue) -> JsonValue:
        """Return a copy with texts of numbers and booleans converted. Other values stay unchanged, for the
        validator."""
        if isinstance(value, dict) and self._looks_in():
            found = ((key, item, self.node_of(key)) for key, item in value.items())
            return {key: item if node is None else node.converted(item) for key, item, node in found}
        if isinstance(value, list) and self.item is not None:
            return [self.item.converted(item) for item in value]
        return converted(self.spec, value)

    def known(self, value: JsonValue) -> JsonValue:
        """Return a copy without the keys that have no row."""
        if isinstance(value, dict) and self._looks_in():
            found = ((key, item, self.node_of(key)) for key, item in value.items())
            return {key: item if node is None else node.known(item) for key, item, node in found
                    if node is not None or self.unknown == ACCEPT}
        if isinstance(value, list) and self.item is not None:
            return [self.item.known(item) for item in value]
        return value

    def _looks_in(self) -> bool:
        return bool(self.keys or self.patterns or self.unknown == REFUSE) and self.spec.types != ("any",)

    def schema(self, lenient: bool) -> Schema:
        """Return the JSON Schema. ``lenient``: for /v2, where unknown keys are dropped."""
        schema = of_spec(self.spec)
        for place in [schema, *schema.get("anyOf", ()), *schema.get("allOf", ())]:
            if place.get("type") == "object":
                place.update(self._keys_schema(lenient))
            elif place.get("type") == "array" and self.item is not None:
                place["items"] = self.item.schema(lenient)
        return any_of([schema, *(of_spec(other) for other in self.or_)])

    def _keys_schema(self, lenient: bool) -> Schema:
        found: Schema = {}
        if self.keys:
            found["properties"] = {name: child.schema(lenient) for name, child in self.keys.items()}
        if required := [name for name, child in self.keys.items() if child.required]:
            found["required"] = required
        if self.patterns:
            found["patternProperties"] = {pattern.pattern.replace("\\Z", "$"): child.schema(lenient)
                                          for pattern, child in self.patterns}
        if self.unknown == REFUSE and not lenient:
            found["additionalProperties"] = False
        return found

    def refusal(self, body: JsonValue, problem: Problem) -> errors.Invalid:
        """Return the problem as an error with the field's path. For a list of plain items the list is the field."""
        node: SchemaNode | None = self
        where, text = BODY, problem.text
        value: Any = body  # the path fits it
        for step in problem.path:
            if isinstance(step, int) and (node is None or node.item is None):
                return _refused(where, value, f"Item {step}: {text}")
            value = value[step]
            where = f"{where}[{step}]" if isinstance(step, int) else step if where == BODY else f"{where}.{step}"
            node = None if node is None else node.item if isinstance(step, int) else node.node_of(step)
        if problem.unexpected and node is not None:
            text = node._unexpected(next(key for key in value if node.node_of(key) is None))
        return _refused(where, value, text)

    def node_of(self, key: str) -> SchemaNode | None:
        """Return the node at ``key``; None if no row has it."""
        return self.keys.get(key) or next((node for pattern, node in self.patterns if pattern.search(key)), None)

    def _unexpected(self, key: str) -> str:
        return unexpected(key, [*sorted(self.keys), *(f"keys that match {pattern.pattern}"
                                                      for pattern, _ in self.patterns)], self.elsewhere)


def _refused(where: str, value: object, reason: str) -> errors.Invalid:
    return errors.api.BadInput(field="body" if where == BODY else where, value=shown(value), reason=reason)


def unexpected(name: str, known: Iterable[str], elsewhere: Mapping[str, list[str]]) -> str:
    """Return why a key or parameter is refused. ``elsewhere``: name -> the versions that have it."""
    text = f"Additional properties are not allowed ('{shown(name)}' was unexpected)."
    if name in elsewhere:
        return f"{text} It is known {' and '.join(elsewhere[name])}, not at the version of this request."
    return f"{text} Known: {', '.join(known) or 'none'}."


def span(since: str | None, until: str | None) -> str:
    """Return a range of versions as text: ``from 2.32 to 2.36``, ``from 2.42 on``, ``up to 2.56``."""
    if until is None:
        return f"from {since} on"
    return f"up to {until}" if since is None else f"at {since}" if since == until else f"from {since} to {until}"


def compile_fields(fields: Iterable[Field], version: int) -> SchemaNode:
    """Return the tree for one version. Raises ValueError if two rows of one path apply to it."""
    root, seen, others = SchemaNode(), set(), []
    for entry in fields:
        if not within(version, entry.since, entry.until):
            others.append(entry)
            continue
        if entry.path in seen:
            raise ValueError(f"{entry.path} has two rows at minor version {version}")
        seen.add(entry.path)
        node = root
        for segment in segments(entry.path):
            node = _step(node, segment)
        node.spec, node.required, node.unknown, node.or_ = entry.spec, entry.required, entry.unknown, entry.or_
    for entry in others:
        _note(root, entry)
    return root


def _note(root: SchemaNode, entry: Field) -> None:
    """Record a row of other versions at the node where its key would be looked up."""
    *parents, last = segments(entry.path) or [""]
    node: SchemaNode | None = root
    for segment in parents:
        node = None if node is None else node.item if segment == "[]" else node.keys.get(segment)
    if node is not None and last and last[0] not in "/[":
        node.elsewhere.setdefault(last, []).append(span(entry.since, entry.until))


def _step(node: SchemaNode, segment: str) -> SchemaNode:
    if segment == "[]":
        node.item = node.item or SchemaNode()
        return node.item
    if segment.startswith("/"):
        pattern = expression(segment[1:-1])
        for known, child in node.patterns:
            if known == pattern:
                return child
        node.patterns.append((pattern, SchemaNode()))
        return node.patterns[-1][1]
    return node.keys.setdefault(segment, SchemaNode())


class Body:
    """The table of a request body. ``legacy``: rows that replace those of the same path under /v2.

    The body itself is an object that refuses unknown keys, unless a row for ``(body)`` says otherwise.
    """

    def __init__(self, *fields: Field, legacy: tuple[Field, ...] = ()) -> None:
        own = any(entry.path == BODY for entry in fields)
        self.fields = fields if own else (row(BODY, "object"), *fields)
        self.may_be_missing = any(entry.path == BODY and "null" in entry.spec.types for entry in fields)
        self.legacy = legacy
        self.compiled = functools.cache(self._compile)
        self.validator_for = functools.cache(self._validator_for)

    def _compile(self, version: int, legacy: bool) -> SchemaNode:
        if not legacy:
            return compile_fields(self.fields, version)
        replaced = {entry.path for entry in self.legacy}
        return compile_fields([*(entry for entry in self.fields if entry.path not in replaced), *self.legacy], version)

    def check(self, body: JsonValue, version: int, legacy: bool = False) -> JsonValue:
        """Return a converted copy of ``body``. Raises api.BadInput. Under /v2 unknown keys are dropped, not refused."""
        node, validator = self.validator_for(version, legacy)
        made = node.converted(body)
        problem = validator.problem(made)
        if problem is not None:
            raise node.refusal(made, problem)
        return node.known(made) if legacy else made

    def schema(self, version: int, legacy: bool = False) -> Schema:
        """Return the JSON Schema of bodies, as a copy that may be modified."""
        return self.compiled(version, legacy).schema(legacy)

    def _validator_for(self, version: int, legacy: bool) -> tuple[SchemaNode, SchemaValidator]:
        node = self.compiled(version, legacy)
        return node, SchemaValidator.of(node.schema(legacy))


@dataclass(frozen=True)
class Param:
    """A query parameter; a ``name`` in slashes is a pattern. ``repeat``: it may be given several times."""

    name: str
    spec: Spec
    repeat: bool = True
    since: str | None = None
    until: str | None = None

    def schema(self) -> Schema:
        """Return the schema for the OpenAPI document."""
        return {"type": "array", "items": self.of_one()} if self.repeat else self.of_one()

    def of_one(self) -> Schema:
        """Return the schema of one value. Numbers in a query are always text, so one form of them is enough."""
        if "integer_like" in self.spec.types and not self.spec.allowed:
            return number(self.spec, "integer")
        if "number_like" in self.spec.types and not self.spec.allowed:
            return number(self.spec, "number")
        return of_spec(self.spec)

    def problem(self, value: object) -> str | None:
        """Return the fault of one converted value; None if it is valid."""
        found = _validator_of_one(self).problem(value)
        return None if found is None else found.text


@functools.cache
def _validator_of_one(entry: Param) -> SchemaValidator:
    return SchemaValidator.of(entry.of_one())


def param(name: str, type: str | tuple[str, ...] = "string", *, repeat: bool = True, since: str | None = None,
          until: str | None = None, **rules: Unpack[Rules]) -> Param:
    """Return a row of a query's table; ``rules`` are fields of :class:`~nova.web.specs.Spec`."""
    return Param(name, Spec(type=type, **rules), repeat, since, until)


LIMIT = param("limit", "integer_like", min_length=1, min=0, huge=True)
MARKER = param("marker")


QueryValue = str | int | float | bool


class Values:
    """A checked query string: name -> values, in order."""

    def __init__(self, values: Mapping[str, list[QueryValue]]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def all(self, name: str) -> list[str]:
        """Return all given values of a text, in their order; empty if the parameter is absent."""
        return [str(value) for value in self._values.get(name, ())]

    @overload
    def one(self, name: str) -> str | None:
        """Return the last given value of a text."""

    @overload
    def one(self, name: str, default: T) -> T:
        """Return the last given value, of the type of ``default``."""

    def one(self, name: str, default: object = None) -> object:
        """Return the last given value; its row converts it to the type of ``default``, or leaves it as text."""
        values = self._values.get(name)
        return values[-1] if values else default

    def number(self, name: str) -> int | None:
        """Return the last given value of an integer; None if the parameter is absent."""
        values = self._values.get(name)
        return int(values[-1]) if values else None


class Query:
    """The table of a query string. Unknown parameters are dropped, and refused from version ``refuse_unknown`` on."""

    def __init__(self, *params: Param, refuse_unknown: str | None = None) -> None:
        self.params = params
        self.refuse_unknown = refuse_unknown
        self.compiled = functools.cache(self._compile)

    def _compile(self, version: int) -> tuple[dict[str, Param], list[tuple[re.Pattern[str], Param]], bool]:
        """Return (parameters by name, by pattern, True if others are refused)."""
        names: dict[str, Param] = {}
        patterns = []
        for entry in self.params:
            if not within(version, entry.since, entry.until):
                continue
            if entry.name in names:
                raise ValueError(f"{entry.name} has two rows at minor version {version}")
            if entry.name.startswith("/"):
                patterns.append((expression(entry.name[1:-1]), entry))
            else:
                names[entry.name] = entry
        return names, patterns, self.refuse_unknown is not None and version >= minor(self.refuse_unknown)

    def may_repeat(self, name: str, version: int) -> bool:
        """Return whether the parameter may be given several times; True for unknown ones."""
        names, patterns, _ = self.compiled(version)
        entry = names.get(name) or next((found for pattern, found in patterns if pattern.search(name)), None)
        return entry is None or entry.repeat

    def check(self, pairs: Iterable[tuple[str, str]], version: int) -> Values:
        """Return the known parameters, converted. Raises api.BadInput, which names the parameter."""
        names, patterns, refuse = self.compiled(version)
        values: dict[str, list[Any]] = {}
        for name, value in pairs:
            entry = names.get(name) or next((found for pattern, found in patterns if pattern.search(name)), None)
            if entry is None:
                if refuse:
                    raise errors.api.BadInput(field=shown(name), value=shown(value),
                                              reason=self._unexpected(name, names))
                continue
            made = converted(entry.spec, value)
            problem = "It must not contain a NUL character." if "\0" in value else entry.problem(made)
            if problem is None and name in values and not entry.repeat:
                problem = "It may be given only once."
            if problem is not None:
                raise errors.api.BadInput(field=name, value=shown(value), reason=problem)
            values.setdefault(name, []).append(made)
        return Values(values)

    def _unexpected(self, name: str, names: Mapping[str, Param]) -> str:
        elsewhere: dict[str, list[str]] = {}
        for entry in self.params:
            elsewhere.setdefault(entry.name, []).append(span(entry.since, entry.until))
        return unexpected(name, sorted(names), elsewhere)
