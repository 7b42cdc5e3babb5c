"""Our tables of bodies and queries accept and refuse what the contract's rows do, at every version that differs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.api.schema import BadInput
from tests.contract import rows

pytestmark = rows.needs_contract

#: One of each kind of value, right or wrong: every field is tried with all of them.
PROBES: tuple[Any, ...] = (
    None, True, "true", "Maybe", 0, 1, -1, -2, "0", "2", "-1", "07", 1.5, "1.5", 2**31, "", "a", " a", "a ", "a b", "x" * 64,
    "x" * 256, "é", "a\x00b", "a:b", "a,b", "host.example", "-a", "/1.2.3.4", "YWJj", "%%%", "192.0.2.1", "2001:db8::1",
    "192.0.2.0/24", "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "2020-01-01T00:00:00Z", "[", "AUTO", "HARD", "soft", "auto",
    "none", "image", "local", "asc", "name", "ssh", "x509", [], ["a"], ["a", "a"], {}, {"a": "b"}, {"a b": 1}, {"é": "b"},
    {"uuid": "a"})


def served(part: str) -> list[Any]:
    found = {route.id: route for route in ROUTES if getattr(route, part) is not None and route.until is None
             or getattr(route, part) is not None and route.path.count("/os-volumes_boot") == 0}
    return [pytest.param(route, id=route.id) for route in sorted(found.values(), key=lambda route: route.id)]


def turning_points(table: list[dict[str, Any]], first: int, last: int) -> list[int]:
    """The versions from which something else holds."""
    points = {first, last}
    for row in table:
        points.add(rows.minor(row.get("since"), first))
        points.add(rows.minor(row.get("until"), last - 1) + 1)
    return sorted(point for point in points if first <= point <= last)


def span(route: Route) -> tuple[int, int]:
    return rows.minor(route.since, 1), rows.minor(route.until, 104)


def minimal(table: dict[str, dict[str, Any]]) -> Any:
    """The smallest body that passes: what is required, made of the first probe that fits."""
    body: dict[str, Any] = {}
    for field, row in table.items():
        steps = rows._split(field)
        if row.get("required") and not any(step == "[]" or step.startswith("/") for step in steps) and steps:
            parent = place(body, steps[:-1])
            if parent is not None and steps[-1] not in parent:
                kinds = row.get("type", "any")
                parent[steps[-1]] = {} if "object" in kinds and row.get("min_keys", 0) == 0 else fitting(table, field, row)
    return body


def fitting(table: dict[str, dict[str, Any]], field: str, row: dict[str, Any]) -> Any:
    kinds = row.get("type", "any")
    if "object" in kinds:
        key = next((name for name in table if name.startswith(f"{field}./")), None)
        return {"a": fitting(table, key, table[key])} if key else {}
    allowed = row.get("allowed")
    return allowed[0] if allowed else next(probe for probe in PROBES if probe is not None and not rows.problems(row, probe))


def place(body: Any, steps: list[str]) -> Any:
    """The object at a path, made where it is missing; lists get one item, patterns the key ``a``."""
    for index, step in enumerate(steps):
        following = steps[index + 1] if index + 1 < len(steps) else None
        empty: Any = [] if following == "[]" else {}
        if step == "[]":
            if not body:
                body.append(empty)
            body = body[0]
        else:
            name = "a" if step.startswith("/") else step
            if not isinstance(body, dict):
                return None
            if not isinstance(body.get(name), type(empty)):
                body[name] = empty
            body = body[name]
    return body


def bodies(table: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """(what was changed, body): the smallest one, and it with each field set to each probe, taken out, or beside a stranger."""
    base = minimal(table)
    yield "nothing", base
    for field in table:
        steps = rows._split(field)
        if not steps:
            continue
        for probe in PROBES:
            body = copy.deepcopy(base)
            parent = place(body, steps[:-1] if steps[-1] != "[]" else steps)
            if steps[-1] == "[]":
                parent = place(body, steps[:-1])
                if not isinstance(parent, list):
                    parent = _as_list(body, steps[:-1])
                if parent is None:
                    continue
                parent[:] = [copy.deepcopy(probe)]
            elif isinstance(parent, dict):
                parent["a" if steps[-1].startswith("/") else steps[-1]] = copy.deepcopy(probe)
            yield f"{field} = {probe!r}", body
        if steps[-1] != "[]" and not steps[-1].startswith("/"):
            body = copy.deepcopy(base)
            parent = place(body, steps[:-1])
            if isinstance(parent, dict):
                parent.pop(steps[-1], None)
                yield f"without {field}", body
                parent["stranger"] = 1
                yield f"a stranger beside {field}", body


def _as_list(body: Any, steps: list[str]) -> list[Any] | None:
    parent = place(body, steps[:-1])
    if not isinstance(parent, dict):
        return None
    parent[steps[-1]] = []
    return parent[steps[-1]]


#: Where ours is knowingly narrower or wider than the contract's patterns.
def excused(what: str) -> bool:
    return False


@pytest.mark.parametrize("route", served("body"))
def test_body_schema_agrees_with_the_contract(route: Route) -> None:
    table = rows.shapes(route.id).get("body")
    assert table, f"{route.id} has no body in the contract"
    differences = []
    for version in turning_points(table, *span(route)):
        for what, body in bodies(rows.at(table, version)):
            theirs = rows.judge(table, body, version)
            ours = refusal(route, body, version)
            if bool(theirs) != bool(ours) and not excused(what):
                differences.append(f"2.{version} {what}: contract {theirs}, ours {ours}")
    assert not differences, "\n".join(differences[:20])


def refusal(route: Route, body: Any, version: int) -> str | None:
    assert route.body is not None
    try:
        route.body.check(body, version)
    except BadInput as error:
        return str(error)
    return None


@pytest.mark.parametrize("route", served("query"))
def test_query_schema_agrees_with_the_contract(route: Route) -> None:
    table = rows.shapes(route.id).get("query")
    assert table is not None, f"{route.id} has no query in the contract"
    assert route.query is not None
    differences = []
    for version in turning_points(table, *span(route)):
        held = rows.at([row for row in table if not row["name"].startswith("(")], version)
        refuses = any(row.get("handling") == "refuse" for row in table if row["name"].startswith("(") and rows.holds(row, version))
        for name, row in held.items():
            if name.startswith("/"):
                continue
            for probe in (text for text in PROBES if isinstance(text, str)):
                theirs = rows.problems(row, probe)
                ours = query_refusal(route, [(name, probe)], version)
                if bool(theirs) != bool(ours) and "\x00" not in probe:
                    differences.append(f"2.{version} {name}={probe!r}: contract {theirs}, ours {ours}")
        if bool(query_refusal(route, [("stranger", "1")], version)) != refuses:
            differences.append(f"2.{version}: a stranger should {'not ' if not refuses else ''}be refused")
    assert not differences, "\n".join(differences[:20])


def query_refusal(route: Route, pairs: list[tuple[str, str]], version: int) -> str | None:
    assert route.query is not None
    try:
        route.query.check(pairs, version)
    except BadInput as error:
        return str(error)
    return None
