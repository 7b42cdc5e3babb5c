"""The reference of the compute API: one entry for each operation, from the tables that serve it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nova.api import openapi, versions
from nova.api.openapi_schemas import Schema, of_field, of_shape, of_type
from nova.api.routing import Route
from nova.api.view import During, Free, View
from nova.web.formats import FORMATS
from nova.web.schema import BODY, REFUSE, Body, Field, Query
from nova.web.specs import Spec
from tests.docs_parts import rst

Row = tuple[str, ...]

#: Texts of a Spec's rules; ``{}`` is the rule's value.
RULES = {"min": "at least {}", "max": "at most {}", "above": "more than {}", "min_length": "at least {} characters",
         "max_length": "at most {} characters", "min_items": "at least {} items", "max_items": "at most {} items",
         "min_keys": "at least {} keys", "max_keys": "at most {} keys"}
TYPES = {"boolean_like": "boolean, or text of one", "integer_like": "integer, or text of one",
         "number_like": "number, or text of one", "any": "anything"}
SOMETIMES = "sometimes"


class DocumentedField(NamedTuple):
    """One field of an answer."""

    path: str
    type: str
    since: str | None = None
    until: str | None = None
    sometimes: bool = False


def entries(routes: Iterable[Route]) -> str:
    """Return all entries; an operation that is served like another one refers to it."""
    parts, first = [], {}  # type: list[str], dict[Any, Route]
    for route in routes:
        same = first.setdefault((route.handler, route.body, route.query, route.code), route)
        parts += [rst.heading(route.id, "~"), *(entry(route) if same is route else [as_other(route, same)])]
    return "\n".join(parts)


def as_other(route: Route, other: Route) -> str:
    return rst.paragraph(f"As {rst.literal(other.id)}; {spanned(route.since, route.until)}.") + "\n"


def entry(route: Route) -> Iterator[str]:
    words = (route.handler.__doc__ or "").strip()
    if words:
        yield rst.paragraph(rst.plain(" ".join(words.split()))) + "\n"
    yield "\n".join(facts(route)) + "\n"
    if route.query is not None:
        yield from query(route.query)
    if route.body is not None:
        yield from body(route.body)
    yield from answer(route)


def facts(route: Route) -> Iterator[str]:
    yield f":Versions: {spanned(route.since, route.until)}"
    yield f":Access rule: {rst.literal(route.policy) if route.policy else 'none: every valid token'}"
    yield f":Success: {codes(route)}"
    yield f":Errors: {', '.join(map(str, openapi.errors_of(route)))}"


def codes(route: Route) -> str:
    rows = ((None, None, route.code),) if isinstance(route.code, int) else route.code
    codes = [f"{code}" + (f" ({spanned(since, until)})" if since or until else "") for since, until, code in rows]
    return ", ".join([*codes, *map(str, getattr(route.handler, "codes", ()))])


def spanned(since: str | None, until: str | None) -> str:
    first, last = since or versions.text(versions.MIN), until or versions.text(versions.MAX)
    return f"at {first}" if first == last else f"{first} to {last}" if until else f"from {first}"


def within(since: str | None, until: str | None) -> str:
    return "" if since is None and until is None else spanned(since, until)


def table(headings: Row, rows: Iterable[Row], widths: tuple[int, ...]) -> str:
    return rst.compact_table(headings, [tuple(cell.replace('"', '""') for cell in row) for row in rows], widths)


# -- requests


def query(asked: Query) -> Iterator[str]:
    note = f"Unknown parameters are refused from {asked.refuse_unknown}." if asked.refuse_unknown else \
        "Unknown parameters are ignored."
    if asked.params:
        yield f"Query parameters. {note}\n"
        rows = [(rst.literal(one.name), spelled(one.spec) + ("" if one.repeat else "; once"),
                 within(one.since, one.until)) for one in asked.params]
        yield table(("Parameter", "What it may be", "Versions"), rows, (24, 60, 16))
    else:
        yield f"No query parameters. {note}\n"


def body(asked: Body) -> Iterator[str]:
    yield "Body:\n"
    yield table(("Field", "What it may be", "Versions"), map(_field, asked.fields), (30, 54, 16))
    if asked.legacy:
        yield "Under ``/v2`` instead:\n"
        yield table(("Field", "What it may be", "Versions"), map(_field, asked.legacy), (30, 54, 16))


def _field(one: Field) -> Row:
    words = [spelled(one.spec), *(f"or {spelled(other)}" for other in one.or_)]
    if "object" in one.spec.types and one.unknown != REFUSE:
        words.append("other keys are accepted")
    name = "the body itself" if one.path == BODY else rst.literal(one.path)
    return name + (" (required)" if one.required else ""), "; ".join(words), within(one.since, one.until)


def spelled(spec: Spec) -> str:
    """Return the text of a Spec."""
    if spec.allowed:
        return f"one of {', '.join(rst.literal(str(one) or '(empty)') for one in spec.allowed)}"
    words = [" or ".join(TYPES.get(kind, kind) for kind in spec.types)]
    words += [ruled(rule, getattr(spec, rule)) for rule in RULES if getattr(spec, rule) is not None]
    if spec.unique_items:
        words.append("each item once")
    if spec.format is not None and spec.format in FORMATS:
        words.append(FORMATS[spec.format][1])
    if spec.pattern is not None:
        words.append(f"matching {rst.literal(spec.pattern)}")
    if spec.any_key:
        words.append(f"with at least one of {', '.join(map(rst.literal, spec.any_key))}")
    if spec.items is not None:
        words.append(f"each item {spelled(spec.items)}")
    if spec.one_of:
        words.append(" or ".join(f"({spelled(choice)})" for choice in spec.one_of))
    return "; ".join(words)


def ruled(rule: str, value: Any) -> str:
    if (rule, value) == ("min_length", 1):
        return "not empty"
    text = RULES[rule].format(value)
    return text.removesuffix("s") if value == 1 and text.endswith("s") else text


# -- answers


def answer(route: Route) -> Iterator[str]:
    shape, since = getattr(route.handler, "answer", "any"), route.since
    note = ""
    if isinstance(shape, During):
        shape, since, note = shape.shape, shape.since or since, f" ({spanned(shape.since, shape.until)}; else no body)"
    if openapi.answer_of(route, route.success(versions.number(since)), versions.number(since)) is None:
        yield "The answer has no body.\n"
        return
    rows = merged(documented_fields(shape, "", versions.number(since)))
    yield f"Answer{note}:\n"
    yield table(("Field", "Type", "Versions"), [
        (rst.literal(one.path or "(body)") + (f" ({SOMETIMES})" if one.sometimes else ""), one.type,
         within(one.since, one.until)) for one in rows], (44, 40, 16))


def merged(rows: Iterable[DocumentedField]) -> list[DocumentedField]:
    """Merge the alternatives of a field, which depend on a policy or a value, into one row."""
    found: dict[tuple[str, str | None, str | None], DocumentedField] = {}
    for one in rows:
        key = one.path, one.since, one.until
        before = found.get(key)
        if before is not None and one.type not in before.type.split(" or "):
            one = one._replace(type=f"{before.type} or {one.type}")
        elif before is not None:
            one = before
        found[key] = one
    return list(found.values())


def documented_fields(shape: Any, path: str, version: int, since: str | None = None, until: str | None = None,
                      sometimes: bool = False) -> Iterator[DocumentedField]:
    """Yield the fields of a shape (see ``nova.api.view.answers``), each before the fields of its parts."""
    if isinstance(shape, tuple):
        for choice in shape:
            yield from documented_fields(choice, path, version, since, until, sometimes)
        return
    if path or not isinstance(shape, (View, dict)):
        yield DocumentedField(path, kind(shape, version), since, until, sometimes)
    if isinstance(shape, list):
        yield from inner(shape[0], f"{path}[]", version)
    elif isinstance(shape, Free):
        yield from inner(shape.values, f"{path}.*" if path else "*", version)
    elif isinstance(shape, dict):
        for key, value in shape.items():
            yield from documented_fields(value, _under(path, key.removesuffix("?")), version,
                                         sometimes=key.endswith("?"))
    elif isinstance(shape, View):
        for row in shape.fields:
            at = versions.number(row.since or row.until) if row.since or row.until else version
            where, seldom = _under(path, row.name), row.optional or row.flag is not None
            if row.type is not None and not isinstance(row.type, str):
                yield from documented_fields(row.type, where, at, row.since, row.until, seldom)
            else:
                yield DocumentedField(where, words(of_field(row, shape.of, at)), row.since, row.until, seldom)


def inner(shape: Any, path: str, version: int) -> Iterator[DocumentedField]:
    """Yield the fields within a list or a map; plain items are described by the list's own row."""
    if isinstance(shape, (View, dict, list, Free, tuple)):
        yield from (one for one in documented_fields(shape, path, version) if one.path != path)


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def kind(shape: Any, version: int) -> str:
    if isinstance(shape, (View, dict)):
        return "object"
    if isinstance(shape, type):
        return words(of_type(shape))
    return words(of_shape(shape, version))


def words(schema: Schema) -> str:
    """Return a short text for the schema of a field."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(words(choice) for choice in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"array of {words(schema['items'])}" if schema.get("items") else "array"
    if schema.get("type") == "object" and schema.get("additionalProperties"):
        return f"object of {words(schema['additionalProperties'])}"
    return "one of " + ", ".join(map(str, schema["enum"])) if "enum" in schema else schema.get("type", "any")
