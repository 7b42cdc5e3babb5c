"""Values of any shape against the decoder and the tables of bodies and queries: a value, or a clear refusal."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nova import errors
from nova.api import versions
from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.errors import Invalid
from nova.web import bodies
from tests import sampling

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
FUZZ = settings(max_examples=sampling.examples(50, 200), deadline=None, suppress_health_check=list(HealthCheck),
                derandomize=True)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.sampled_from(["", " ", UUID, "1", "-1", "true", "10.0.0.1", "::1", "YQ==", "9" * 40, "\U0001f600"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4), max_leaves=12)


@FUZZ
@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_a_value_or_invalid(raw: bytes) -> None:
    try:
        value = bodies.decode(raw)
    except Invalid:
        return
    msgspec.json.encode(value)


@FUZZ
@given(JSON, st.booleans())
def test_json_of_any_shape_is_its_value_or_invalid(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    try:
        assert bodies.decode(raw) == value
    except Invalid:
        assert not _harmless(value)


def _harmless(value: Any) -> bool:
    """Nothing in it that the door has a reason to refuse."""
    if isinstance(value, dict):
        return all(_harmless(key) and _harmless(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_harmless, value))
    if isinstance(value, str):
        return "\0" not in value and all(not "\ud800" <= letter <= "\udfff" for letter in value)
    return not (isinstance(value, int) and abs(value) > bodies.MAX_INTEGER)


def fields_of(route: Route) -> Iterator[str]:
    """Names that lead the fuzzer into the table's branches."""
    for field in route.body.fields if route.body else ():
        yield from (part.strip("[]") for part in field.path.split(".") if not part.startswith("/"))


WITH_BODY = [route for route in ROUTES if route.body is not None]
WITH_QUERY = [route for route in ROUTES if route.query is not None and route.query.params]


@FUZZ
@given(st.data(), st.sampled_from(WITH_BODY), st.integers(versions.MIN, versions.MAX), st.booleans())
def test_body_of_any_shape_is_checked_or_bad_input(data: st.DataObject, route: Route, version: int,
                                                   legacy: bool) -> None:
    names = st.sampled_from(sorted({*fields_of(route), "x"}))
    deeper = st.recursive(JSON, lambda inner: st.dictionaries(names, inner, max_size=5) | st.lists(inner, max_size=3),
                          max_leaves=20)
    body = data.draw(st.dictionaries(names, deeper, max_size=4))
    try:
        msgspec.json.encode(route.body.check(body, version, legacy))
    except errors.api.BadInput as error:
        assert len(error.message) < 6000
    except UnicodeEncodeError:
        pass  # a surrogate of the fuzzer's, that no decoder lets through


@FUZZ
@given(st.data(), st.sampled_from(WITH_QUERY), st.integers(versions.MIN, versions.MAX))
def test_query_of_any_shape_is_checked_or_bad_input(data: st.DataObject, route: Route, version: int) -> None:
    known = st.sampled_from([*(entry.name for entry in route.query.params), "x"])
    names = known | st.text(string.printable, max_size=5)
    pairs = data.draw(st.lists(st.tuples(names, st.text(max_size=20) | st.sampled_from(["1", "-1", "[", "9" * 30])),
                               max_size=5))
    try:
        values = route.query.check(pairs, version)
    except errors.api.BadInput:
        return
    for name in values:
        assert values.all(name)
